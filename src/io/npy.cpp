#include "io/npy.hpp"

#include <sylvit/error.hpp>

#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "io/messages.hpp"

namespace sylvit::io {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::uint64_t header_limit = 65535;

struct DescrName {
  std::string_view name;
  DType dtype;
};
// NumPy does not know bfloat16: what it writes for it depends on its version.
constexpr std::array descr_names{DescrName{"<f4", DType::f32},  DescrName{"<f2", DType::f16},
                                 DescrName{"<f8", DType::f64},  DescrName{"<V2", DType::bf16},
                                 DescrName{"|V2", DType::bf16}, DescrName{"|u1", DType::u8},
                                 DescrName{"|i1", DType::i8},   DescrName{"<i2", DType::i16},
                                 DescrName{"<i4", DType::i32},  DescrName{"<i8", DType::i64}};

/// Reads the dict, and nothing else that Python would read.
class DictReader {
 public:
  DictReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  NpyHeader read() {
    expect('{');
    while (!skip('}')) {
      read_entry();
      if (skip(',')) continue;
      expect('}');
      break;
    }
    skip_space();
    if (at_ != text_.size()) malformed();
    if (!has_descr_) fail("its header lacks descr");
    if (!has_order_) fail("its header lacks fortran_order");
    if (!has_shape_) fail("its header lacks shape");
    check_size();
    header_.shape = Shape(std::span(extents_.data(), rank_));
    return header_;
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const {
    throw Error(where_ + what, hint);
  }
  [[noreturn]] void malformed() const {
    fail("its header is not the dict of an .npy array near byte " + std::to_string(at_ + 1) + " of the dict");
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool skip(std::string_view word) {
    skip_space();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  bool skip(char c) { return skip(std::string_view(&c, 1)); }
  void expect(char c) {
    if (!skip(c)) malformed();
  }

  /// Without escapes: no name that can occur has any.
  std::string_view quoted() {
    const char quote = skip('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos || text_.substr(at_, end - at_).find('\\') != std::string_view::npos) malformed();
    const std::string_view text = text_.substr(at_, end - at_);
    at_ = end + 1;
    return text;
  }

  std::int64_t number() {
    skip_space();
    const std::size_t begin = at_;
    std::int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const std::int64_t digit = text_[at_] - '0';
      if (value > (std::numeric_limits<std::int64_t>::max() - digit) / 10)
        fail("an extent of its shape does not fit in 63 bits");
      value = value * 10 + digit;
    }
    if (at_ == begin) malformed();
    return value;
  }

  void once(bool& seen, std::string_view key) const {
    if (std::exchange(seen, true)) fail("its header has " + std::string(key) + " twice");
  }

  void read_entry() {
    const std::string_view key = quoted();
    expect(':');
    if (key == "descr") {
      once(has_descr_, key);
      read_descr();
    } else if (key == "fortran_order") {
      once(has_order_, key);
      if (skip("True")) fail("it is in Fortran order", "save it from numpy.ascontiguousarray");
      if (!skip("False")) malformed();
    } else if (key == "shape") {
      once(has_shape_, key);
      read_shape();
    } else {
      fail("its header has the unknown key " + in_quotes(key));
    }
  }

  void read_descr() {
    const std::string_view text = quoted();
    std::string known_names;
    for (const DescrName& known : descr_names) {
      if (known.name == text) {
        header_.dtype = known.dtype;
        return;
      }
      add_to_list(known_names, known.name);
    }
    fail("its dtype " + in_quotes(text) + " is not one of " + known_names);
  }

  void read_shape() {
    expect('(');
    bool comma = true;
    while (!skip(')')) {
      if (!comma) malformed();
      if (rank_ == Shape::max_rank) fail("its shape has more than " + std::to_string(Shape::max_rank) + " extents");
      extents_[rank_++] = number();
      comma = skip(',');
    }
    if (rank_ == 1 && !comma) malformed();  // (3) is no tuple
  }

  /// The elements' bytes must be a number that can be counted to. An extent of 0 counts as 1 here, as in safetensors
  /// files.
  void check_size() const {
    std::uint64_t bytes = size_of(header_.dtype);
    std::string shape;
    for (std::size_t axis = 0; axis < rank_; ++axis) add_to_list(shape, std::to_string(extents_[axis]));
    for (std::size_t axis = 0; axis < rank_; ++axis) {
      const std::uint64_t factor = extents_[axis] == 0 ? 1 : static_cast<std::uint64_t>(extents_[axis]);
      if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / factor)
        fail("the bytes of " + std::string(name_of(header_.dtype)) + " [" + shape + "] do not fit in 63 bits");
      bytes *= factor;
    }
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
  NpyHeader header_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
  std::array<std::int64_t, Shape::max_rank> extents_{};
  std::size_t rank_ = 0;
};

}  // namespace

NpyHeader read_npy_header(std::uint64_t bytes, const std::function<void(std::span<char>)>& next,
                          const std::string& where) {
  std::uint64_t read = 0;
  const auto take = [&](std::span<char> into) {
    if (into.size() > bytes - read)
      throw Error(where + "it has " + std::to_string(bytes) + " bytes, and its header alone needs " +
                  std::to_string(read + into.size()));
    next(into);
    read += into.size();
  };
  std::array<char, magic.size() + 2> start{};
  take(start);
  const int major = static_cast<unsigned char>(start[magic.size()]);
  const int minor = static_cast<unsigned char>(start[magic.size() + 1]);
  if (std::string_view(start.data(), magic.size()) != magic) throw Error(where + "it is no .npy array");
  if (major < 1 || major > 3 || minor != 0)
    throw Error(where + "it is an .npy array of version " + std::to_string(major) + "." + std::to_string(minor) +
                ", and 1.0 to 3.0 are known");
  std::array<char, 4> length_bytes{};
  take(std::span(length_bytes).first(major == 1 ? 2 : 4));
  std::uint64_t length = 0;
  for (std::size_t i = length_bytes.size(); i-- > 0;)
    length = length * 256 + static_cast<unsigned char>(length_bytes[i]);
  if (length > header_limit)
    throw Error(where + "its header length of " + std::to_string(length) + " bytes is above the limit of " +
                std::to_string(header_limit));
  // Before anything is allocated for it.
  if (length > bytes - read)
    throw Error(where + "its header of " + std::to_string(length) + " bytes is longer than the " +
                std::to_string(bytes - read) + " bytes that are left");
  std::string text(static_cast<std::size_t>(length), '\0');
  take(text);
  NpyHeader header = DictReader(text, where).read();
  header.data_begin = read;
  const std::uint64_t needed = static_cast<std::uint64_t>(header.shape.elements()) * size_of(header.dtype);
  if (needed != bytes - read)
    throw Error(where + std::string(name_of(header.dtype)) + " " + header.shape.text() + " needs " +
                std::to_string(needed) + " bytes but " + std::to_string(bytes - read) + " follow its header");
  return header;
}

}  // namespace sylvit::io
