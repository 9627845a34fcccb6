#include "io/npz.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <map>
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

/// What libzip reads the file through, and the sentence of what went wrong in it, which no exception can carry there.
struct Reading {
  ByteSource source;
  std::uint64_t position = 0;
  std::string failure = {};
  zip_error_t error = {};
};

/// libzip's zip_source_callback.
zip_int64_t answer(void* data, void* buffer, zip_uint64_t length, zip_source_cmd_t command) {
  auto& reading = *static_cast<Reading*>(data);
  const auto fail = [&](int code) {
    zip_error_set(&reading.error, code, 0);
    return zip_int64_t{-1};
  };
  switch (command) {
    case ZIP_SOURCE_OPEN:
      reading.position = 0;
      return 0;
    case ZIP_SOURCE_READ: {
      const std::uint64_t some = std::min<std::uint64_t>(length, reading.source.size() - reading.position);
      try {
        reading.source.read(reading.position, {static_cast<std::byte*>(buffer), static_cast<std::size_t>(some)});
      } catch (const Error& error) {
        reading.failure = error.what();
        return fail(ZIP_ER_READ);
      }
      reading.position += some;
      return static_cast<zip_int64_t>(some);
    }
    case ZIP_SOURCE_SEEK: {
      const zip_int64_t to =
          zip_source_seek_compute_offset(reading.position, reading.source.size(), buffer, length, &reading.error);
      if (to < 0) return -1;
      reading.position = static_cast<std::uint64_t>(to);
      return 0;
    }
    case ZIP_SOURCE_TELL:
      return static_cast<zip_int64_t>(reading.position);
    case ZIP_SOURCE_STAT: {
      auto* status = ZIP_SOURCE_GET_ARGS(zip_stat_t, buffer, length, &reading.error);
      if (status == nullptr) return -1;
      zip_stat_init(status);
      status->valid = ZIP_STAT_SIZE;
      status->size = reading.source.size();
      return sizeof(zip_stat_t);
    }
    case ZIP_SOURCE_ERROR:
      return zip_error_to_data(&reading.error, buffer, length);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
      return 0;
    case ZIP_SOURCE_SUPPORTS:
      return ZIP_SOURCE_SUPPORTS_SEEKABLE;
    default:
      return fail(ZIP_ER_OPNOTSUPP);
  }
}

/// One member, read from its start.
class MemberStream {
 public:
  MemberStream(zip_t* archive, const Reading& reading, std::uint64_t index, std::string where)
      : where_(std::move(where)), reading_(reading), file_(zip_fopen_index(archive, index, 0), &zip_fclose) {
    if (file_ == nullptr) fail(zip_strerror(archive));
  }

  /// How many bytes came out.
  std::uint64_t position() const { return position_; }

  /// Fills all of it, or throws.
  void read(std::span<std::byte> into) {
    while (!into.empty()) {
      const std::size_t got = read_some(into);
      if (got == 0)
        throw Error(where_ + "it ends after " + std::to_string(position_) + " bytes, and " +
                    std::to_string(into.size()) + " more are needed");
      into = into.subspan(got);
    }
  }

  void skip(std::uint64_t bytes) {
    std::array<std::byte, 65536> unwanted{};
    while (bytes > 0) {
      const std::size_t some = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, unwanted.size()));
      read(std::span(unwanted).first(some));
      bytes -= some;
    }
  }

  /// Only for a stored member; the checksum is not checked then.
  void seek(std::uint64_t position) {
    if (zip_fseek(file_.get(), static_cast<zip_int64_t>(position), SEEK_SET) != 0) fail(zip_file_strerror(file_.get()));
    position_ = position;
  }

  /// Nothing may be left. This is also when libzip looks at the checksum.
  void expect_end() {
    std::byte more{};
    if (read_some({&more, 1}) != 0)
      throw Error(where_ + "it goes on after the " + std::to_string(position_ - 1) + " bytes that it should have");
  }

 private:
  [[noreturn]] void fail(const char* reason) const {
    if (!reading_.failure.empty()) throw Error(reading_.failure);
    throw Error(where_ + "it cannot be read after " + std::to_string(position_) + " bytes: " + reason);
  }
  std::size_t read_some(std::span<std::byte> into) {
    const zip_int64_t got = zip_fread(file_.get(), into.data(), into.size());
    if (got < 0) fail(zip_file_strerror(file_.get()));
    position_ += static_cast<std::uint64_t>(got);
    return static_cast<std::size_t>(got);
  }

  std::string where_;
  const Reading& reading_;
  std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file_;
  std::uint64_t position_ = 0;
};

}  // namespace

struct NpzFile::Archive {
  explicit Archive(ByteSource source) : reading{std::move(source)} {}

  Reading reading;
  std::unique_ptr<zip_t, decltype(&zip_discard)> zip{nullptr, &zip_discard};
  /// Deflated members of which a part was read, by their index in the zip file.
  std::map<std::uint64_t, std::unique_ptr<MemberStream>> begun;
};

NpzFile NpzFile::parse(ByteSource source) {
  NpzFile result;
  result.name_ = source.name();
  result.file_bytes_ = source.size();
  ZipError error;
  const auto fail = [&](const std::string& what) {
    throw Error(result.name_ + " of " + std::to_string(result.file_bytes_) +
                " bytes cannot be read as a zip file: " + what);
  };
  if (source.size() == 0) fail("it is empty");  // for libzip that is one without members
  result.archive_ = std::make_shared<Archive>(std::move(source));
  Reading& reading = result.archive_->reading;
  zip_source_t* zip_source = zip_source_function_create(&answer, &reading, error.get());
  if (zip_source == nullptr) fail(error.text());
  // With this check, a name that is there twice is refused too.
  zip_t* archive = zip_open_from_source(zip_source, ZIP_RDONLY | ZIP_CHECKCONS, error.get());
  if (archive == nullptr) {
    zip_source_free(zip_source);
    fail(reading.failure.empty() ? error.text() : reading.failure);
  }
  result.archive_->zip.reset(archive);

  std::vector<std::pair<std::string, std::uint64_t>> members;
  const auto count = static_cast<std::uint64_t>(std::max<zip_int64_t>(0, zip_get_num_entries(archive, 0)));
  std::uint64_t left = result.file_bytes_;  // for the members' own bytes
  for (std::uint64_t index = 0; index < count; ++index) {
    zip_stat_t status;
    zip_stat_init(&status);
    if (zip_stat_index(archive, index, 0, &status) != 0 || (status.valid & ZIP_STAT_COMP_SIZE) == 0)
      fail("it does not say how large member " + std::to_string(index) + " is");
    // Members that share bytes would let a small file hold any number of large arrays.
    if (status.comp_size > left) fail("its members are said to take more bytes than it has");
    left -= status.comp_size;
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

NpzFile NpzFile::parse(std::span<const std::byte> file, std::string name) {
  return parse(ByteSource::of(file, std::move(name)));
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
  if (zip_stat_index(archive_->zip.get(), result.index, 0, &status) != 0 || (status.valid & wanted) != wanted)
    fail("the zip file does not say how large it is");
  if (status.encryption_method != ZIP_EM_NONE) fail("it is encrypted");
  if (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE)
    fail("its compression method " + std::to_string(status.comp_method) + " is neither 0 (stored) nor 8 (deflated)");
  result.stored = status.comp_method == ZIP_CM_STORE;
  result.bytes = status.size;
  // So no size can be claimed that the file has not got the bytes for, and memory is asked for only after this.
  const std::uint64_t packed = status.comp_size;
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
  MemberStream stream(archive_->zip.get(), archive_->reading, member.index, where(result.member));
  result.header = read_npy_header(
      member.bytes, [&](std::span<char> into) { stream.read(std::as_writable_bytes(into)); }, where(result.member));
  return result;
}

std::vector<std::byte> NpzFile::read(const NpzArray& array, std::int64_t first, std::int64_t count) const {
  const std::int64_t elements = array.header.shape.elements();
  if (first < 0 || count < 0 || first > elements || count > elements - first)
    throw Error(where(array.member) + "it has no elements " + std::to_string(first) + " to " +
                std::to_string(first + count));
  const Member member = this->member(array.member);
  const std::uint64_t size = size_of(array.header.dtype);
  const std::uint64_t begin = array.header.data_begin + static_cast<std::uint64_t>(first) * size;
  // Taken out while it is used: one that fails is not gone on with.
  auto begun = archive_->begun.extract(member.index);
  std::unique_ptr<MemberStream> stream;
  if (begun && begun.mapped()->position() <= begin) stream = std::move(begun.mapped());
  if (!stream)
    stream = std::make_unique<MemberStream>(archive_->zip.get(), archive_->reading, member.index, where(array.member));
  if (first > 0 && member.stored)
    stream->seek(begin);
  else
    stream->skip(begin - stream->position());
  std::vector<std::byte> bytes(static_cast<std::size_t>(static_cast<std::uint64_t>(count) * size));
  stream->read(bytes);
  if (first + count == elements)
    stream->expect_end();
  else if (!member.stored)
    archive_->begun[member.index] = std::move(stream);
  return bytes;
}

std::vector<float> NpzFile::read_f32(const NpzArray& array, std::int64_t first, std::int64_t count) const {
  if (!is_floating(array.header.dtype))
    throw Error(where(array.member) + "its elements are " + std::string(name_of(array.header.dtype)) +
                ", and floating-point numbers are wanted");
  return as_f32(array.header.dtype, read(array, first, count));
}

}  // namespace sylvit::io
