#include "io/safetensors.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/temporary_file.hpp"
#include "io/elements.hpp"
#include "io/messages.hpp"

namespace sylvit::io {
namespace {

constexpr std::size_t length_bytes = 8;
constexpr std::string_view metadata_key = "__metadata__";

struct DTypeName {
  DType dtype;
  std::string_view name;
};
constexpr std::array dtype_names{DTypeName{DType::f64, "F64"}, DTypeName{DType::f32, "F32"},
                                 DTypeName{DType::f16, "F16"}, DTypeName{DType::bf16, "BF16"},
                                 DTypeName{DType::i64, "I64"}, DTypeName{DType::i32, "I32"},
                                 DTypeName{DType::i16, "I16"}, DTypeName{DType::i8, "I8"},
                                 DTypeName{DType::u8, "U8"},   DTypeName{DType::boolean, "BOOL"}};

std::string dtype_name(DType dtype) {
  for (const DTypeName& known : dtype_names)
    if (known.dtype == dtype) return std::string(known.name);
  return "?";
}

/// Types that the format has and nothing here reads. A file may hold such tensors beside those that are wanted.
struct ForeignType {
  std::string_view name;
  std::uint64_t bits;
};
constexpr std::array foreign_types{
    ForeignType{"U16", 16},    ForeignType{"U32", 32},        ForeignType{"U64", 64},    ForeignType{"C64", 64},
    ForeignType{"F8_E4M3", 8}, ForeignType{"F8_E5M2", 8},     ForeignType{"F8_E8M0", 8}, ForeignType{"F8_E4M3FNUZ", 8},
    ForeignType{"F4", 4},      ForeignType{"F8_E5M2FNUZ", 8}, ForeignType{"F6_E2M3", 6}, ForeignType{"F6_E3M2", 6}};

std::string stored_name(const TensorInfo& tensor) {
  return tensor.foreign.empty() ? dtype_name(tensor.dtype) : tensor.foreign;
}

std::string range_text(std::uint64_t begin, std::uint64_t end) {
  // Not as "[" + …: g++ 12 then warns of a copy that does not happen (its bug 105651).
  return std::string(1, '[').append(std::to_string(begin)).append(", ").append(std::to_string(end)).append(")");
}

struct Header {
  std::vector<TensorInfo> tensors;
  SafetensorsMetadata metadata;
};

/// Takes the header token by token. The JSON parser calls it without recursion, and the first token that nests deeper
/// than the format does ends the parse, so a hostile file can neither exhaust the stack nor build a tree in memory.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(const std::string& file, std::uint64_t data_bytes) : file_(file), data_bytes_(data_bytes) {}

  Header take() { return std::move(header_); }

  bool null() override { unexpected("null"); }
  bool boolean(bool value) override { unexpected(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { unexpected(std::to_string(value)); }  // only below zero
  // Also what the parser makes of an integer of more than 64 bits.
  bool number_float(number_float_t, const string_t& text) override { unexpected(in_quotes(text)); }
  bool binary(binary_t&) override { unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape) {
      if (rank_ == Shape::max_rank)
        fail_tensor("its shape has more than " + std::to_string(Shape::max_rank) + " extents");
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        fail_tensor("its extent " + std::to_string(value) + " does not fit in 63 bits");
      extents_[rank_++] = static_cast<std::int64_t>(value);
    } else if (place_ == Place::offsets) {
      if (offset_count_ == offsets_.size()) fail_tensor("its data_offsets are more than 2 numbers");
      offsets_[offset_count_++] = value;
    } else {
      unexpected(std::to_string(value));
    }
    return true;
  }

  bool string(string_t& text) override {
    if (place_ == Place::metadata) {
      header_.metadata[key_] = std::move(text);
    } else if (place_ == Place::entry && key_ == "dtype") {
      set_dtype(text);
    } else {
      unexpected(in_quotes(text));
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::file) {
      place_ = Place::top;
    } else if (place_ == Place::top) {
      place_ = key_ == metadata_key ? Place::metadata : Place::entry;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::entry) finish_tensor();
    place_ = place_ == Place::top ? Place::file : Place::top;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::entry && key_ == "shape") {
      place_ = Place::shape;
    } else if (place_ == Place::entry && key_ == "data_offsets") {
      place_ = Place::offsets;
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    if (place_ == Place::offsets && offset_count_ != offsets_.size())
      fail_tensor("its data_offsets are " + std::to_string(offset_count_) + " numbers instead of 2");
    place_ = Place::entry;
    return true;
  }

  bool key(string_t& text) override {
    if (place_ == Place::top) {
      start_entry(text);
    } else if (place_ == Place::metadata) {
      if (header_.metadata.contains(text)) fail("__metadata__ has the key " + in_quotes(text) + " twice");
    } else {
      mark_field(text);
    }
    key_ = std::move(text);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    fail("its header is not valid UTF-8 JSON near byte " + std::to_string(position) + " of the header");
  }

 private:
  enum class Place : std::uint8_t { file, top, metadata, entry, shape, offsets };

  [[noreturn]] void fail(const std::string& what) const { throw Error(file_ + ": " + what); }
  [[noreturn]] void fail_tensor(const std::string& what) const { fail("tensor " + in_quotes(tensor_) + ": " + what); }

  /// A value of the wrong kind for where it stands.
  [[noreturn]] void unexpected(const std::string& found) const {
    switch (place_) {
      case Place::file:
        fail("its header is " + found + " instead of an object");
      case Place::top:
        fail("the header entry " + in_quotes(key_) + " is " + found + " instead of an object");
      case Place::metadata:
        fail("__metadata__ " + in_quotes(key_) + " is " + found + " instead of a string");
      case Place::entry:
        fail_tensor("its " + key_ + " is " + found + " instead of " + (key_ == "dtype" ? "a string" : "an array"));
      case Place::shape:
        fail_tensor("its shape holds " + found + " instead of a non-negative integer");
      case Place::offsets:
        break;
    }
    fail_tensor("its data_offsets hold " + found + " instead of a non-negative integer");
  }

  void start_entry(const std::string& name) {
    if (name == metadata_key) {
      if (std::exchange(has_metadata_, true)) fail("its header has __metadata__ twice");
      return;
    }
    tensor_ = name;
    has_dtype_ = has_shape_ = has_offsets_ = false;
    rank_ = offset_count_ = 0;
  }

  void mark_field(const std::string& field) {
    bool* seen = field == "dtype"          ? &has_dtype_
                 : field == "shape"        ? &has_shape_
                 : field == "data_offsets" ? &has_offsets_
                                           : nullptr;
    if (seen == nullptr) fail_tensor("its entry has the unknown key " + in_quotes(field));
    if (std::exchange(*seen, true)) fail_tensor("its entry has " + field + " twice");
  }

  void set_dtype(const std::string& text) {
    std::string known_names;
    foreign_.clear();
    for (const DTypeName& known : dtype_names) {
      if (known.name == text) {
        dtype_ = known.dtype;
        element_bits_ = 8 * size_of(known.dtype);
        return;
      }
      add_to_list(known_names, known.name);
    }
    const auto found = std::ranges::find(foreign_types, text, &ForeignType::name);
    if (found == foreign_types.end()) fail_tensor("its dtype " + in_quotes(text) + " is not one of " + known_names);
    foreign_ = text;
    element_bits_ = found->bits;
  }

  void finish_tensor() {
    if (!has_dtype_) fail_tensor("its entry lacks dtype");
    if (!has_shape_) fail_tensor("its entry lacks shape");
    if (!has_offsets_) fail_tensor("its entry lacks data_offsets");

    // An extent of 0 counts as 1 for the overflow check alone: then strides and products of any of the extents fit too.
    std::uint64_t bound = element_bits_;
    bool is_empty = false;
    for (std::size_t axis = 0; axis < rank_; ++axis) {
      is_empty = is_empty || extents_[axis] == 0;
      const std::uint64_t factor = extents_[axis] == 0 ? 1 : static_cast<std::uint64_t>(extents_[axis]);
      if (bound > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / factor)
        fail_tensor("the bits of " + type_text() + " " + shape_text() + " do not fit in 63 bits");
      bound *= factor;
    }
    if (!is_empty && bound % 8 != 0) fail_tensor(type_text() + " " + shape_text() + " is no whole number of bytes");
    const std::uint64_t needed = is_empty ? 0 : bound / 8;
    const auto [begin, end] = offsets_;
    if (begin > end) fail_tensor("its data_offsets " + range_text(begin, end) + " end before they begin");
    if (end > data_bytes_)
      fail_tensor("its data_offsets " + range_text(begin, end) + " lie outside the " + std::to_string(data_bytes_) +
                  " bytes of data in the file");
    if (end - begin != needed)
      fail_tensor(type_text() + " " + shape_text() + " needs " + std::to_string(needed) + " bytes but data_offsets " +
                  range_text(begin, end) + " hold " + std::to_string(end - begin));
    header_.tensors.push_back({tensor_, dtype_, Shape(std::span(extents_.data(), rank_)), begin, end, foreign_});
  }

  std::string type_text() const { return foreign_.empty() ? dtype_name(dtype_) : foreign_; }

  std::string shape_text() const {
    std::string list;
    for (std::size_t axis = 0; axis < rank_; ++axis) add_to_list(list, std::to_string(extents_[axis]));
    return "[" + list + "]";
  }

  const std::string& file_;
  std::uint64_t data_bytes_;
  Header header_;
  Place place_ = Place::file;
  std::string key_;
  bool has_metadata_ = false;
  // The tensor whose entry is being read.
  std::string tensor_;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  DType dtype_ = DType::f32;
  std::string foreign_;
  std::uint64_t element_bits_ = 32;
  std::array<std::int64_t, Shape::max_rank> extents_{};
  std::size_t rank_ = 0;
  std::array<std::uint64_t, 2> offsets_{};
  std::size_t offset_count_ = 0;
};

/// The header, once the lengths are known to agree with the size of the file.
std::string header_text(const ByteSource& file) {
  const std::string& name = file.name();
  if (file.size() == 0) throw Error(name + " is empty, not a safetensors file");
  if (file.size() < length_bytes)
    throw Error(name + " is " + std::to_string(file.size()) + " bytes long, too short for a safetensors file");
  std::uint64_t length = 0;
  file.read(0, std::as_writable_bytes(std::span(&length, 1)));
  const std::uint64_t rest = file.size() - length_bytes;
  if (length > safetensors_header_limit)
    throw Error(name + ": its header length of " + std::to_string(length) + " bytes is above the limit of " +
                    std::to_string(safetensors_header_limit),
                "is it a safetensors file at all?");
  if (length > rest)
    throw Error(name + ": its header of " + std::to_string(length) + " bytes is longer than the " +
                std::to_string(rest) + " bytes that follow its length");
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read(length_bytes, std::as_writable_bytes(std::span(text)));
  if (!text.starts_with('{')) throw Error(name + ": its header does not start with \"{\"");
  // The JSON parser would take a zero byte for the end and ignore whatever follows it.
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos)
    throw Error(name + ": its header is not valid UTF-8 JSON near byte " + std::to_string(zero + 1) + " of the header");
  return text;
}

std::string placed(const TensorInfo& tensor) {
  return "tensor " + in_quotes(tensor.name) + " at " + range_text(tensor.begin, tensor.end);
}

/// Sorted by begin, the tensors must cover the data section without a hole and without an overlap.
void check_coverage(const std::vector<TensorInfo>& sorted, std::uint64_t data_bytes, const std::string& file) {
  std::uint64_t covered = 0;
  const TensorInfo* previous = nullptr;
  const auto fail = [&](const std::string& what) { throw Error(file + ": " + what); };
  for (const TensorInfo& tensor : sorted) {
    if (tensor.begin < covered) fail(placed(tensor) + " overlaps " + placed(*previous));
    if (tensor.begin > covered)
      fail(std::to_string(tensor.begin - covered) + " bytes before " + placed(tensor) + " belong to no tensor");
    covered = tensor.end;
    previous = &tensor;
  }
  if (covered != data_bytes)
    fail("its tensors hold " + std::to_string(covered) + " bytes but its data section has " +
         std::to_string(data_bytes));
}

}  // namespace

SafetensorsFile SafetensorsFile::parse(ByteSource source) {
  SafetensorsFile result(std::move(source));
  const std::string& name = result.name();
  const std::string text = header_text(result.source_);
  result.data_begin_ = length_bytes + text.size();
  const std::uint64_t data_bytes = result.source_.size() - result.data_begin_;

  HeaderReader reader(name, data_bytes);
  nlohmann::json::sax_parse(text, &reader);  // every failure throws
  Header header = reader.take();
  result.metadata_ = std::move(header.metadata);

  auto& tensors = header.tensors;
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  result.tensors_ = TensorList(std::move(tensors), name);
  check_coverage(result.tensors(), data_bytes, name);
  return result;
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> file, std::string name) {
  return parse(ByteSource::of(file, std::move(name)));
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  return parse(ByteSource::open(path, "a safetensors file"));
}

std::vector<std::byte> SafetensorsFile::read_bytes(const TensorInfo& tensor) const {
  if (tensor.begin > tensor.end || tensor.end > source_.size() - data_begin_)
    throw Error(name() + ": " + placed(tensor) + " is not of this file");
  std::vector<std::byte> result(static_cast<std::size_t>(tensor.end - tensor.begin));
  source_.read(data_begin_ + tensor.begin, result);
  return result;
}

std::vector<float> SafetensorsFile::read_f32(std::string_view tensor, const std::optional<Shape>& expected) const {
  const TensorInfo& info = at(tensor, expected);
  if (info.foreign.empty() && info.dtype == DType::f32) {  // most weights: without a copy
    std::vector<float> values(static_cast<std::size_t>(info.shape.elements()));
    source_.read(data_begin_ + info.begin, std::as_writable_bytes(std::span(values)));
    return values;
  }
  if (info.foreign.empty() && is_floating(info.dtype)) return as_f32(info.dtype, read_bytes(info));
  throw Error(name() + ": tensor " + in_quotes(tensor) + " has dtype " + stored_name(info) +
              " instead of F64, F32, F16 or BF16");
}

std::vector<std::int64_t> SafetensorsFile::read_i64(std::string_view tensor,
                                                    const std::optional<Shape>& expected) const {
  const TensorInfo& info = at(tensor, expected);
  if (info.foreign.empty() && is_integer(info.dtype)) return as_i64(info.dtype, read_bytes(info));
  throw Error(name() + ": tensor " + in_quotes(tensor) + " has dtype " + stored_name(info) +
              " instead of I64, I32, I16, I8 or U8");
}

namespace {

std::string json_string(const std::string& text, const char* what) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(std::string(what) + " " + std::to_string(text.size()) + " bytes long is not valid UTF-8");
  }
}

std::string json_entry(const OutputTensor& tensor, std::uint64_t offset) {
  const std::uint64_t size = tensor.bytes.size();
  // Division, because elements x size may overflow where the number of bytes given cannot.
  const std::uint64_t element = size_of(tensor.dtype);
  if (size % element != 0 || size / element != static_cast<std::uint64_t>(tensor.shape.elements()))
    throw Error("tensor " + in_quotes(tensor.name) + " to be written is " + dtype_name(tensor.dtype) + " " +
                tensor.shape.text() + " but has " + std::to_string(size) + " bytes");
  std::string extents;
  for (const std::int64_t extent : tensor.shape.extents()) add_to_list(extents, std::to_string(extent), ",");
  return R"({"dtype":")" + dtype_name(tensor.dtype) + R"(","shape":[)" + extents + R"(],"data_offsets":[)" +
         std::to_string(offset) + "," + std::to_string(offset + size) + "]}";
}

}  // namespace

std::string safetensors_header(std::span<const OutputTensor> tensors, const SafetensorsMetadata& metadata) {
  std::string json = "{";
  if (!metadata.empty()) {
    std::string pairs;
    for (const auto& [key, value] : metadata) {
      add_to_list(pairs, json_string(key, "a metadata key"), ",");
      pairs += ":";
      pairs += json_string(value, "a metadata value");
    }
    json += R"("__metadata__":{)" + pairs + "}";
  }
  std::set<std::string_view> names;
  std::uint64_t offset = 0;
  for (const OutputTensor& tensor : tensors) {
    if (tensor.name == metadata_key)
      throw Error("a tensor to write cannot be named __metadata__: the name is reserved");
    if (!names.insert(tensor.name).second) throw Error("tensor " + in_quotes(tensor.name) + " is to be written twice");
    if (json.size() > 1) json += ",";
    json += json_string(tensor.name, "a tensor name") + ":" + json_entry(tensor, offset);
    offset += tensor.bytes.size();
  }
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  if (json.size() > safetensors_header_limit)
    throw Error("the header of " + std::to_string(tensors.size()) + " tensors to be written is " +
                std::to_string(json.size()) + " bytes, above the limit of " + std::to_string(safetensors_header_limit));
  const std::uint64_t length = json.size();
  std::string result(length_bytes, '\0');
  std::memcpy(result.data(), &length, sizeof length);
  return result + json;
}

void write_safetensors(const std::filesystem::path& path, std::span<const OutputTensor> tensors,
                       const SafetensorsMetadata& metadata) {
  const std::string header = safetensors_header(tensors, metadata);
  std::error_code code;
  const std::filesystem::file_status status = std::filesystem::status(path, code);
  if (std::filesystem::is_directory(status)) throw Error("cannot write " + path.string() + ": it is a directory");
  // The rename would replace a device such as /dev/null by a plain file.
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw Error("cannot write " + path.string() + ": it is not a regular file");
  if (!path.has_filename()) throw Error("cannot write \"" + path.string() + "\": it names no file");

  base::TemporaryFile file(path);
  file.keep_permissions();
  file.write(std::as_bytes(std::span(header)));
  for (const OutputTensor& tensor : tensors) file.write(tensor.bytes);
  file.flush();
  file.rename_into_place();
}

}  // namespace sylvit::io
