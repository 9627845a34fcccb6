// Files of the system: a descriptor that closes itself, what may be opened, and who may have written it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/stat.h>

namespace sylvit::base {

/// Closes what it holds; closing by hand first tells of errors.
class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  FileDescriptor(FileDescriptor&& other) noexcept;
  ~FileDescriptor();
  int get() const noexcept { return descriptor_; }
  bool close() noexcept;

 private:
  int descriptor_;
};

/// A regular file that is open for reading, and what there is to know of it.
struct RegularFile {
  FileDescriptor descriptor;
  struct stat status;

  /// All of its bytes as they were when it was opened; nothing if there are fewer by now, or if it cannot be read.
  std::optional<std::string> read() const;
};

/// Never waits, as for who writes to a named pipe. Nothing if it cannot be opened (errno says why) or is no regular
/// file (errno is 0). A relative path begins in `directory`; with `flags` O_NOFOLLOW, a symbolic link is no file.
std::optional<RegularFile> open_regular_file(int directory, const std::filesystem::path& path, int flags = 0);

/// Why others than this process's user and root can have written a file, or what lies in a directory: "it belongs to
/// user 1000 …", "others may write to it (mode 0777)". Empty: they cannot.
std::string distrusted(const struct stat& status);

/// Has it another owner than this process's user and root?
bool is_foreign(const struct stat& status) noexcept;

/// "belongs to user 1000 and not to user 0, who runs this"
std::string whose(const struct stat& status);

}  // namespace sylvit::base
