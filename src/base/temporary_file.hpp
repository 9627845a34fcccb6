// Files that appear whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <sys/types.h>

#include "base/files.hpp"

namespace sylvit::base {

struct TemporaryFileOptions {
  std::string called = {};  ///< how errors name the target; its path, if not given
  mode_t mode = 0666;       ///< as in open(), which takes the umask off
  /// Write what a symbolic link leads to, and keep the link? It must be the user's own, and lead to a regular file or
  /// to nothing. If not, whatever has the name is replaced.
  bool follow_links = true;
};

/// A new file beside the target, removed again unless it is renamed into place. All functions throw Error that names
/// the target.
///
/// Its name is random, and it is made only where nothing has that name, so nobody can have put a link there. It is
/// locked as long as it is open. So what a killed process left behind is told from what another one is writing, and the
/// next TemporaryFile in the same directory removes it.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target, const TemporaryFileOptions& options = {});
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  void write(std::span<const std::byte> bytes);
  /// A file that was private stays private.
  void keep_permissions();
  /// All that was written is on the disk afterwards, and so is the name that rename_into_place() gives it.
  void flush();
  void rename_into_place();

 private:
  [[noreturn]] void fail(int code) const;
  FileDescriptor create(mode_t mode);

  std::string called_;
  std::filesystem::path target_;
  std::filesystem::path path_;
  FileDescriptor file_;
  bool flushed_ = false;
  bool renamed_ = false;
};

/// Removes the temporary files of processes that are gone. A name of ours, a regular file, this user's, and nobody has
/// it open; nothing else is touched. Returns how many there were.
int remove_leftovers(const std::filesystem::path& directory) noexcept;

}  // namespace sylvit::base
