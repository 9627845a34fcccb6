// Files that appear whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "io/files.hpp"

namespace sylvit::io {

/// A new file beside the target, removed again unless it is renamed into place. All functions throw Error that names
/// the target.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::filesystem::path target);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  void write(std::span<const std::byte> bytes);
  /// A file that was private stays private.
  void keep_permissions();
  /// All that was written is on the disk afterwards; nothing can be written any more.
  void flush();
  void rename_into_place();

 private:
  [[noreturn]] void fail(int code) const;
  int create();

  std::filesystem::path target_;
  std::filesystem::path path_;
  FileDescriptor file_;
  bool renamed_ = false;
};

}  // namespace sylvit::io
