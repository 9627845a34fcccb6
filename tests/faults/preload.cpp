// Put before a program with LD_PRELOAD, makes its n-th operation that changes files fail, or ends it there. Only what
// is within one directory counts: opening for writing, writing, flushing to the disk, closing what was written,
// renaming, making directories, changing permissions.
//
//     SYLVIT_FAULT_IN     the directory, without symbolic links in its path
//     SYLVIT_FAULT_AT     n, from 1
//     SYLVIT_FAULT        once: it fails with EIO, and nothing else does
//                         full: the disk is full from there on; a write is cut in half first, as it would be
//                         kill: SIGKILL; a write is cut in half first
//     SYLVIT_FAULT_MARK   a file that is made when there is an n-th operation
//
// What the C library does inside itself, as fwrite() does, does not come by here; C++ streams do.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

/// The C library's own function.
template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_within(const std::string& path) {
  static const std::string directory = setting("SYLVIT_FAULT_IN");
  return !directory.empty() && path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

/// The path without symbolic links, but for its last part, which need not be there.
bool concerns(int directory, const char* path) {
  if (path == nullptr) return false;
  std::string full = path;
  if (path[0] != '/') {
    char start[PATH_MAX] = {};
    if (directory == AT_FDCWD) {
      if (getcwd(start, sizeof(start)) == nullptr) return false;
    } else if (readlink(("/proc/self/fd/" + std::to_string(directory)).c_str(), start, sizeof(start) - 1) < 0) {
      return false;
    }
    full = std::string(start) + "/" + path;
  }
  return is_within(full);
}

bool concerns(int descriptor) {
  char path[PATH_MAX] = {};
  const int keep = errno;
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path, sizeof(path) - 1);
  const bool result = length > 0 && is_within({path, static_cast<std::size_t>(length)});
  errno = keep;
  return result;
}

bool is_written(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && concerns(descriptor);
}

enum class Fate { works, half, fails };

/// What becomes of this operation. `takes_space`: a full disk lets it fail.
Fate next(bool takes_space, bool is_write = false) {
  static const std::string kind = setting("SYLVIT_FAULT");
  static const long at = std::atol(setting("SYLVIT_FAULT_AT"));
  static std::atomic<long> counted = 0;
  const long number = ++counted;
  if (at <= 0 || number < at) return Fate::works;
  if (number == at)
    if (const char* mark = setting("SYLVIT_FAULT_MARK"); *mark != '\0')
      syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, mark, O_WRONLY | O_CREAT, 0600));
  if (kind == "kill" && number == at) {
    if (is_write) return Fate::half;
    raise(SIGKILL);
  }
  if (kind == "once" && number == at) {
    errno = EIO;
    return Fate::fails;
  }
  if (kind == "full" && takes_space) {
    if (is_write && number == at) return Fate::half;
    errno = ENOSPC;
    return Fate::fails;
  }
  return Fate::works;
}

/// Writes the half of what was to be written, and then ends the program if that is what is asked for.
ssize_t write_half(int descriptor, const void* bytes, std::size_t count) {
  const ssize_t written = syscall(SYS_write, descriptor, bytes, count / 2);
  if (setting("SYLVIT_FAULT") == std::string("kill")) raise(SIGKILL);
  if (written != 0) return written;
  errno = ENOSPC;
  return -1;
}

bool opens_for_writing(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0; }

int open_at(int directory, const char* path, int flags, mode_t mode) {
  if (opens_for_writing(flags) && concerns(directory, path) && next((flags & O_CREAT) != 0) == Fate::fails) return -1;
  return static_cast<int>(syscall(SYS_openat, directory, path, flags, mode));
}

mode_t mode_of(int flags, std::va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

std::FILE* open_stream(const char* name, const char* path, const char* mode) {
  const bool writes = std::strpbrk(mode, "wa+") != nullptr;
  if (writes && concerns(AT_FDCWD, path) && next(true) == Fate::fails) return nullptr;
  return real<std::FILE*(const char*, const char*)>(name)(path, mode);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming,readability-inconsistent-declaration-parameter-name): the C library's names
extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(directory, path, flags, mode);
}

int openat64(int directory, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(directory, path, flags, mode);
}

std::FILE* fopen(const char* path, const char* mode) { return open_stream("fopen", path, mode); }
std::FILE* fopen64(const char* path, const char* mode) { return open_stream("fopen64", path, mode); }

ssize_t write(int descriptor, const void* bytes, std::size_t count) {
  if (is_written(descriptor)) {
    const Fate fate = next(true, true);
    if (fate == Fate::fails) return -1;
    if (fate == Fate::half) return write_half(descriptor, bytes, count);
  }
  return syscall(SYS_write, descriptor, bytes, count);
}

ssize_t writev(int descriptor, const iovec* pieces, int count) {
  if (is_written(descriptor)) {
    const Fate fate = next(true, true);
    if (fate == Fate::fails) return -1;
    if (fate == Fate::half && count > 0) return write_half(descriptor, pieces[0].iov_base, pieces[0].iov_len);
  }
  return syscall(SYS_writev, descriptor, pieces, count);
}

int fsync(int descriptor) {
  if (concerns(descriptor) && next(true) == Fate::fails) return -1;
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

int fdatasync(int descriptor) {
  if (concerns(descriptor) && next(true) == Fate::fails) return -1;
  return static_cast<int>(syscall(SYS_fdatasync, descriptor));
}

int close(int descriptor) {
  // Closed in any case, as Linux does it.
  const bool fails = is_written(descriptor) && next(false) == Fate::fails;
  const int code = errno;
  const auto result = static_cast<int>(syscall(SYS_close, descriptor));
  if (!fails) return result;
  errno = code;
  return -1;
}

int fclose(std::FILE* file) {
  const bool fails = file != nullptr && is_written(fileno(file)) && next(false) == Fate::fails;
  const int code = errno;
  const int result = real<int(std::FILE*)>("fclose")(file);
  if (!fails) return result;
  errno = code;
  return EOF;
}

int rename(const char* from, const char* to) {
  if (concerns(AT_FDCWD, to) && next(false) == Fate::fails) return -1;
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0U));
}

int renameat(int from_directory, const char* from, int to_directory, const char* to) {
  if (concerns(to_directory, to) && next(false) == Fate::fails) return -1;
  return static_cast<int>(syscall(SYS_renameat2, from_directory, from, to_directory, to, 0U));
}

int link(const char* from, const char* to) {
  if (concerns(AT_FDCWD, to) && next(true) == Fate::fails) return -1;
  return static_cast<int>(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int mkdir(const char* path, mode_t mode) {
  if (concerns(AT_FDCWD, path) && next(true) == Fate::fails) return -1;
  return static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

int fchmod(int descriptor, mode_t mode) {
  if (concerns(descriptor) && next(false) == Fate::fails) return -1;
  return static_cast<int>(syscall(SYS_fchmod, descriptor, mode));
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming,readability-inconsistent-declaration-parameter-name)
