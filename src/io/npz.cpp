#include "io/npz.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <zip.h>

#include "io/elements.hpp"
#include "io/messages.hpp"

namespace sylvit::io {

namespace {

constexpr std::string_view extension = ".npy";
/// What deflate can make of one byte at most: 258 bytes out of 2 bits.
constexpr std::uint64_t most_inflation = 1032;

/// An error of libzip that frees what it holds.
class ZipError {
 public:
  ZipError() { zip_error_init(&error_); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
  ~ZipError() { zip_error_fini(&error_); }
  zip_error_t* get() { return &error_; }
  std::string text() { return zip_error_strerror(&error_); }

 private:
  zip_error_t error_{};
};

/// One member, read from its start.
class MemberStream {
 public:
  MemberStream(zip_t* archive, std::uint64_t index, std::string where)
      : where_(std::move(where)), file_(zip_fopen_index(archive, index, 0), &zip_fclose) {
    if (file_ == nullptr) throw Error(where_ + "it cannot be read: " + zip_strerror(archive));
  }

  /// Fills all of it, or throws.
  void read(std::span<char> into) {
    while (!into.empty()) {
      const std::size_t got = read_some(into);
      if (got == 0)
        throw Error(where_ + "it ends after " + std::to_string(position_) + " bytes, and " +
                    std::to_string(into.size()) + " more are needed");
      into = into.subspan(got);
    }
  }

  void skip(std::uint64_t bytes) {
    std::array<char, 65536> unwanted{};
    while (bytes > 0) {
      const std::size_t some = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, unwanted.size()));
      read(std::span(unwanted).first(some));
      bytes -= some;
    }
  }

  /// Only for a stored member; the checksum is not checked then.
  void seek(std::uint64_t position) {
    if (zip_fseek(file_.get(), static_cast<zip_int64_t>(position), SEEK_SET) != 0) fail();
    position_ = position;
  }

  /// Nothing may be left. This is also when libzip looks at the checksum.
  void expect_end() {
    char more = 0;
    if (read_some({&more, 1}) != 0)
      throw Error(where_ + "it goes on after the " + std::to_string(position_ - 1) + " bytes that it should have");
  }

 private:
  [[noreturn]] void fail() {
    throw Error(where_ + "it cannot be read after " + std::to_string(position_) +
                " bytes: " + zip_file_strerror(file_.get()));
  }
  std::size_t read_some(std::span<char> into) {
    const zip_int64_t got = zip_fread(file_.get(), into.data(), into.size());
    if (got < 0) fail();
    position_ += static_cast<std::uint64_t>(got);
    return static_cast<std::size_t>(got);
  }

  std::string where_;
  std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file_;
  std::uint64_t position_ = 0;
};

}  // namespace

NpzFile NpzFile::parse(std::span<const std::byte> file, std::string name) {
  NpzFile result;
  result.name_ = std::move(name);
  result.file_bytes_ = file.size();
  ZipError error;
  const auto fail = [&](const std::string& what) {
    throw Error(result.name_ + " of " + std::to_string(file.size()) + " bytes cannot be read as a zip file: " + what);
  };
  if (file.empty()) fail("it is empty");  // for libzip that is one without members
  zip_source_t* source = zip_source_buffer_create(file.data(), file.size(), 0, error.get());
  if (source == nullptr) fail(error.text());
  // With this check, a name that is there twice is refused too.
  zip_t* archive = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, error.get());
  if (archive == nullptr) {
    zip_source_free(source);
    fail(error.text());
  }
  result.zip_ = {archive, &zip_discard};

  std::vector<std::pair<std::string, std::uint64_t>> members;
  const auto count = static_cast<std::uint64_t>(std::max<zip_int64_t>(0, zip_get_num_entries(archive, 0)));
  for (std::uint64_t index = 0; index < count; ++index) {
    const char* text = zip_get_name(archive, index, ZIP_FL_ENC_RAW);
    if (text == nullptr) fail("member " + std::to_string(index) + " has no name");
    std::string_view member = text;
    if (!member.ends_with(extension))
      throw Error(result.name_ + ": member " + in_quotes(member) + " is no .npy array, so this is no .npz file");
    member.remove_suffix(extension.size());
    members.emplace_back(member, index);
  }
  std::sort(members.begin(), members.end());
  for (auto& [member, index] : members) {
    result.names_.push_back(std::move(member));
    result.indices_.push_back(index);
  }
  return result;
}

std::string NpzFile::where(std::size_t position) const {
  return name_ + ": member " + in_quotes(names_.at(position)) + ": ";
}

bool NpzFile::contains(std::string_view array) const noexcept {
  return std::binary_search(names_.begin(), names_.end(), array);
}

NpzFile::Member NpzFile::member(std::size_t position) const {
  const auto fail = [&](const std::string& what) { throw Error(where(position) + what); };
  Member result;
  result.index = indices_.at(position);
  zip_stat_t status;
  zip_stat_init(&status);
  constexpr zip_uint64_t wanted =
      ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if (zip_stat_index(zip_.get(), result.index, 0, &status) != 0 || (status.valid & wanted) != wanted)
    fail("the zip file does not say how large it is");
  if (status.encryption_method != ZIP_EM_NONE) fail("it is encrypted");
  if (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE)
    fail("its compression method " + std::to_string(status.comp_method) + " is neither 0 (stored) nor 8 (deflated)");
  result.stored = status.comp_method == ZIP_CM_STORE;
  result.bytes = status.size;
  // So no size can be claimed that the file has not got the bytes for, and memory is asked for only after this.
  const std::uint64_t packed = status.comp_size;
  if (packed > file_bytes_)
    fail("it is said to take " + std::to_string(packed) + " bytes in a file of " + std::to_string(file_bytes_));
  if (result.stored ? result.bytes != packed : result.bytes / most_inflation > packed)
    fail(std::to_string(packed) + " bytes in the file cannot hold its " + std::to_string(result.bytes) + " bytes");
  return result;
}

NpzArray NpzFile::array(std::string_view array) const {
  const auto found = std::lower_bound(names_.begin(), names_.end(), array);
  if (found == names_.end() || *found != array) throw Error(name_ + ": there is no member " + in_quotes(array));
  NpzArray result;
  result.member = static_cast<std::size_t>(found - names_.begin());
  const Member member = this->member(result.member);
  MemberStream stream(zip_.get(), member.index, where(result.member));
  result.header = read_npy_header(
      member.bytes, [&](std::span<char> into) { stream.read(into); }, where(result.member));
  return result;
}

std::vector<std::byte> NpzFile::read(const NpzArray& array, std::int64_t first, std::int64_t count) const {
  const std::int64_t elements = array.header.shape.elements();
  if (first < 0 || count < 0 || first > elements || count > elements - first)
    throw Error(where(array.member) + "it has no elements " + std::to_string(first) + " to " +
                std::to_string(first + count));
  const Member member = this->member(array.member);
  MemberStream stream(zip_.get(), member.index, where(array.member));
  const std::uint64_t size = size_of(array.header.dtype);
  const std::uint64_t begin = array.header.data_begin + static_cast<std::uint64_t>(first) * size;
  if (first > 0 && member.stored)
    stream.seek(begin);
  else
    stream.skip(begin);
  std::vector<std::byte> bytes(static_cast<std::size_t>(static_cast<std::uint64_t>(count) * size));
  stream.read({reinterpret_cast<char*>(bytes.data()), bytes.size()});
  if (count == elements) stream.expect_end();
  return bytes;
}

std::vector<float> NpzFile::read_f32(const NpzArray& array, std::int64_t first, std::int64_t count) const {
  if (!is_floating(array.header.dtype))
    throw Error(where(array.member) + "its elements are " + std::string(name_of(array.header.dtype)) +
                ", and floating-point numbers are wanted");
  return as_f32(array.header.dtype, read(array, first, count));
}

}  // namespace sylvit::io
