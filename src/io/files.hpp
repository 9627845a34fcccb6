// Files of the system: reading them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/files.hpp"

namespace sylvit::io {

/// Bytes that can be read from any position: those of an open file, or those of memory. Copies share the open file, and
/// any number of threads may read at once. A file is never mapped: one that another program truncates while it is read
/// must end in an Error, not in SIGBUS.
class ByteSource {
 public:
  /// Throws Error with a sentence when there is no such regular file, or when it is empty. `kind` is what it should be:
  /// "a safetensors file".
  static ByteSource open(const std::filesystem::path& path, std::string_view kind);
  /// Of memory, which must outlive the result. `name` stands for it in errors.
  static ByteSource of(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const noexcept { return name_; }
  /// As it was when the file was opened.
  std::uint64_t size() const noexcept { return size_; }
  /// Fills all of it with what begins at the position, or throws Error.
  void read(std::uint64_t position, std::span<std::byte> into) const;

 private:
  ByteSource() = default;

  std::string name_;
  std::uint64_t size_ = 0;
  std::shared_ptr<const base::FileDescriptor> file_;  // null when the bytes are those of memory
  std::span<const std::byte> memory_;
};

/// All of a regular file, which may be empty. Throws Error with a sentence when there is none, or when it is larger
/// than so many bytes: devices and pipes, which may have no end or no beginning, are refused.
std::string read_text(const std::filesystem::path& path, std::string_view kind, std::uint64_t most_bytes);

}  // namespace sylvit::io
