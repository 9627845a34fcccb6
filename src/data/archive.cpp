#include "data/archive.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <archive.h>
#include <archive_entry.h>
#include <memory>

#include "base/printable.hpp"
#include "io/messages.hpp"

namespace sylvit::data {

namespace {

class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)), archive_(archive_read_new(), &archive_read_free) {
    if (archive_ == nullptr) throw Error("libarchive could not be started");
  }
  archive* get() const { return archive_.get(); }

  void open(std::span<const std::byte> file) {
    if (archive_read_open_memory(get(), file.data(), file.size()) != ARCHIVE_OK) fail();
  }
  /// The next member's header; null after the last.
  archive_entry* next() {
    archive_entry* entry = nullptr;
    const int result = archive_read_next_header(get(), &entry);
    if (result == ARCHIVE_EOF) return nullptr;
    if (result < ARCHIVE_WARN) fail();
    return entry;
  }
  /// Reads until all of it is filled or the member ends; returns how much that is.
  std::size_t fill(std::span<std::byte> into) {
    std::size_t filled = 0;
    while (filled < into.size()) {
      const la_ssize_t got = archive_read_data(get(), into.data() + filled, into.size() - filled);
      if (got < 0) fail();
      if (got == 0) break;
      filled += static_cast<std::size_t>(got);
    }
    return filled;
  }
  [[noreturn]] void fail() const {
    const char* reason = archive_error_string(get());
    throw Error(name_ + " is corrupt or ends early: " + base::printable(reason != nullptr ? reason : "unknown reason"));
  }

 private:
  std::string name_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
};

}  // namespace

std::vector<std::byte> unpack_gzip(std::span<const std::byte> file, const std::string& name,
                                   const std::function<std::uint64_t(std::span<const std::byte>)>& most) {
  Reader reader(name);
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_format_raw(reader.get());
  reader.open(file);
  if (archive_filter_code(reader.get(), 0) != ARCHIVE_FILTER_GZIP || reader.next() == nullptr)
    throw Error(name + " is no .gz file");
  std::vector<std::byte> bytes(std::size_t{1} << 16U);
  std::size_t filled = reader.fill(bytes);
  const std::uint64_t limit = most(std::span(bytes).first(filled));
  while (filled == bytes.size() && filled <= limit) {
    // One more than the limit, to see whether it goes on.
    bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(2 * filled, limit + 1)));
    filled += reader.fill(std::span(bytes).subspan(filled));
  }
  if (filled > limit)
    throw Error(name + " unpacks to more than the " + std::to_string(limit) + " bytes that it should have");
  bytes.resize(filled);
  return bytes;
}

std::vector<TarMember> tar_members(std::span<const std::byte> file, const std::string& name) {
  constexpr std::size_t block = 512;
  Reader reader(name);
  archive_read_support_format_tar(reader.get());
  // Tar files that were put together with cat; otherwise only the first would be seen.
  archive_read_set_options(reader.get(), "tar:read_concatenated_archives");
  reader.open(file);
  std::vector<TarMember> members;
  std::size_t end = 0;
  while (archive_entry* entry = reader.next()) {
    const char* path = archive_entry_pathname(entry);
    const auto begin = static_cast<std::size_t>(archive_filter_bytes(reader.get(), 0));
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) continue;
    const std::string member = path != nullptr ? path : "";
    if (archive_entry_sparse_count(entry) > 0)
      throw Error(name + ": the member " + io::in_quotes(member) + " is a sparse file, which is not read");
    const auto bytes = static_cast<std::uint64_t>(std::max<la_int64_t>(0, archive_entry_size(entry)));
    if (begin > file.size() || bytes > file.size() - begin)
      throw Error(name + " ends early: its member " + io::in_quotes(member) + " has " + std::to_string(bytes) +
                  " bytes, and " + std::to_string(file.size() - std::min(begin, file.size())) + " are left");
    end = begin + (static_cast<std::size_t>(bytes) + block - 1) / block * block;
    members.push_back({member, begin, static_cast<std::size_t>(bytes)});
  }
  // What ends at a member's end was cut there: a whole one ends with a block of zeros.
  if (end > file.size() || file.size() - end < block)
    throw Error(name + " ends early: there is no end mark after its " + std::to_string(members.size()) + " files");
  return members;
}

}  // namespace sylvit::data
