#include "io/temporary_file.hpp"

#include <sylvit/error.hpp>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <random>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "io/messages.hpp"

namespace sylvit::io {

namespace {

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

/// Through symbolic links, also to what is not there yet: the rename would replace the link.
std::filesystem::path followed(std::filesystem::path path) {
  std::error_code failed;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(std::filesystem::symlink_status(path, failed));
       ++links) {
    const std::filesystem::path next = std::filesystem::read_symlink(path, failed);
    if (failed) break;
    path = directory_of(path) / next;  // an absolute one replaces the directory
  }
  return path;
}

}  // namespace

TemporaryFile::TemporaryFile(std::filesystem::path target) : target_(followed(std::move(target))), file_(create()) {}

TemporaryFile::~TemporaryFile() {
  if (!renamed_) ::unlink(path_.c_str());
}

void TemporaryFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void TemporaryFile::keep_permissions() {
  struct stat status {};
  if (::stat(target_.c_str(), &status) == 0 && ::fchmod(file_.get(), status.st_mode & 07777U) != 0) fail(errno);
}

void TemporaryFile::flush() {
  // Without it, a power cut after the rename could leave a file of the right name with no content.
  if (::fsync(file_.get()) != 0) fail(errno);
  if (!file_.close()) fail(errno);
}

void TemporaryFile::rename_into_place() {
  if (::rename(path_.c_str(), target_.c_str()) != 0) fail(errno);
  renamed_ = true;
  // Makes the new name last as well. The file is whole either way, so some file systems' refusal is no failure.
  const FileDescriptor directory(::open(directory_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) static_cast<void>(::fsync(directory.get()));
}

void TemporaryFile::fail(int code) const {
  throw Error("cannot write " + target_.string() + ": " + system_message(code));
}

/// Not mkstemp, which ignores the umask; and a short name, for the target's own may be as long as names can be.
int TemporaryFile::create() {
  std::random_device random;
  for (int attempt = 0; attempt < 100; ++attempt) {
    path_ = directory_of(target_) / (".sylvit-" + std::to_string(::getpid()) + "-" + std::to_string(random()) + ".tmp");
    const int descriptor = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) return descriptor;
    if (errno == ENOENT) throw Error("cannot write " + target_.string() + ": its directory does not exist");
    if (errno != EEXIST && errno != EINTR) fail(errno);
  }
  fail(EEXIST);
}

}  // namespace sylvit::io
