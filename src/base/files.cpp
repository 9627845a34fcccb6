#include "base/files.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace sylvit::base {

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileDescriptor::~FileDescriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool FileDescriptor::close() noexcept { return ::close(std::exchange(descriptor_, -1)) == 0; }

std::optional<RegularFile> open_regular_file(int directory, const std::filesystem::path& path, int flags) {
  FileDescriptor descriptor(::openat(directory, path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags));
  struct stat status {};
  if (descriptor.get() < 0 || ::fstat(descriptor.get(), &status) != 0) return {};
  errno = 0;
  if (!S_ISREG(status.st_mode)) return {};
  return RegularFile{std::move(descriptor), status};
}

std::optional<std::string> RegularFile::read() const {
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::pread(descriptor.get(), &bytes[done], bytes.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

bool is_foreign(const struct stat& status) noexcept { return status.st_uid != ::geteuid() && status.st_uid != 0; }

std::string whose(const struct stat& status) {
  return "belongs to user " + std::to_string(status.st_uid) + " and not to user " + std::to_string(::geteuid()) +
         ", who runs this";
}

std::string distrusted(const struct stat& status) {
  if (is_foreign(status)) return "it " + whose(status);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  std::array<char, 16> mode{};
  std::snprintf(mode.data(), mode.size(), "%04o", static_cast<unsigned>(status.st_mode & 07777U));
  return std::string("others may write to it (mode ") + mode.data() + ")";
}

}  // namespace sylvit::base
