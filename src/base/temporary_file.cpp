#include "base/temporary_file.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <random>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace sylvit::base {

namespace {

// Short, for the target's own name may be as long as names can be.
constexpr std::string_view beginning = ".sylvit-";
constexpr std::string_view ending = ".tmp";
constexpr std::size_t digits = 16;

std::string random_name() {
  std::random_device random;
  const std::uint64_t number = std::uint64_t{random()} << 32U | random();
  std::array<char, digits + 1> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(number));
  return std::string(beginning).append(text.data()).append(ending);
}

bool is_random_name(std::string_view name) {
  if (name.size() != beginning.size() + digits + ending.size()) return false;
  const std::string_view number = name.substr(beginning.size(), digits);
  return name.starts_with(beginning) && name.ends_with(ending) &&
         number.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

std::string written(const std::string& called, const std::string& reason) {
  return "cannot write " + called + ": " + reason;
}

/// Through symbolic links, also to what is not there yet: the rename would replace the link. The system follows no
/// links of others in a directory like /tmp; nor does this, anywhere.
std::filesystem::path followed(std::filesystem::path path, const std::string& called) {
  struct stat status {};
  for (int links = 0; links < 40 && ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode); ++links) {
    if (is_foreign(status))
      throw Error(
          written(called, path.string() + " is a symbolic link that belongs to user " + std::to_string(status.st_uid)),
          "name the file that it leads to, if that is meant");
    std::error_code failed;
    const std::filesystem::path next = std::filesystem::read_symlink(path, failed);
    if (failed) break;
    path = directory_of(path) / next;  // an absolute one replaces the directory
  }
  // The rename would replace a device such as /dev/null by a plain file.
  if (::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    throw Error(written(called, path.string() + " is no regular file"));
  return path;
}

/// Was this left behind? The system takes the lock away when the process ends, however it ends.
bool is_left(const RegularFile& file) {
  if (file.status.st_uid != ::geteuid()) return false;
  if (::flock(file.descriptor.get(), LOCK_EX | LOCK_NB) == 0) return true;
  // Some file systems have no locks.
  constexpr std::time_t hour = 3600;
  return errno != EWOULDBLOCK && errno != EINTR && std::time(nullptr) - file.status.st_mtime > hour;
}

}  // namespace

int remove_leftovers(const std::filesystem::path& directory) noexcept try {
  int removed = 0;
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> listing(::opendir(directory.c_str()), close);
  if (!listing) return 0;
  // Nobody shall wait for this where there are millions of files.
  for (int seen = 0; seen < 100000; ++seen) {
    const dirent* entry = ::readdir(listing.get());
    if (entry == nullptr) break;
    const char* name = &entry->d_name[0];
    if (!is_random_name(name)) continue;
    // The lock is held until the name is gone, so who is just about to write to the file notices.
    const auto file = open_regular_file(::dirfd(listing.get()), name, O_NOFOLLOW);
    if (file && is_left(*file) && ::unlinkat(::dirfd(listing.get()), name, 0) == 0) ++removed;
  }
  return removed;
} catch (const std::exception&) {  // out of memory; the next one may have more
  return 0;
}

TemporaryFile::TemporaryFile(const std::filesystem::path& target, const TemporaryFileOptions& options)
    : called_(options.called.empty() ? target.string() : options.called),
      target_(options.follow_links ? followed(target, called_) : target),
      file_(create(options.mode)) {}

TemporaryFile::~TemporaryFile() {
  if (!renamed_) ::unlink(path_.c_str());
}

void TemporaryFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void TemporaryFile::keep_permissions() {
  struct stat status {};
  if (::stat(target_.c_str(), &status) == 0 && ::fchmod(file_.get(), status.st_mode & 07777U) != 0) fail(errno);
}

void TemporaryFile::flush() {
  // Without it, a power cut after the rename could leave a file of the right name with no content.
  if (::fsync(file_.get()) != 0) fail(errno);
  flushed_ = true;
}

void TemporaryFile::rename_into_place() {
  if (::rename(path_.c_str(), target_.c_str()) != 0) fail(errno);
  renamed_ = true;
  if (!flushed_) return;
  // Makes the new name last as well. The file is whole either way, so some file systems' refusal is no failure.
  const FileDescriptor directory(::open(directory_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) static_cast<void>(::fsync(directory.get()));
}

void TemporaryFile::fail(int code) const { throw Error(written(called_, std::generic_category().message(code))); }

/// Not mkstemp, which ignores the umask.
FileDescriptor TemporaryFile::create(mode_t mode) {
  const std::filesystem::path directory = directory_of(target_);
  remove_leftovers(directory);
  for (int attempt = 0; attempt < 100; ++attempt) {
    path_ = directory / random_name();
    FileDescriptor file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (file.get() < 0) {
      if (errno == ENOENT) throw Error(written(called_, "its directory does not exist"));
      if (errno != EEXIST && errno != EINTR) fail(errno);
      continue;
    }
    // Before the lock, another process may take it for left behind, lock it, and remove it.
    const bool taken = ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!taken && ::access(path_.c_str(), F_OK) == 0) return file;
  }
  fail(EEXIST);
}

}  // namespace sylvit::base
