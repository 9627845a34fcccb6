// Built kernels on disk. An entry is a file that holds the text it was made from (its key) and the device binary, with
// lengths and a checksum, so that a truncated, damaged or mixed-up file is noticed before anything is done with it.
// Against malice, only the system's permissions protect: what others than the user and root can have written is not
// used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"

namespace sylvit::runtime {

/// FNV-1a: names cache files and notices damage; it is no protection against malice.
std::uint64_t fnv1a(std::string_view bytes, std::uint64_t seed = 0xcbf29ce484222325U);
/// 32 hexadecimal digits.
std::string fingerprint(std::string_view text);

class KernelCache {
 public:
  /// SYLVIT_CACHE_DIR, else $XDG_CACHE_HOME/sylvit/kernels, else ~/.cache/sylvit/kernels; empty (no cache) when there
  /// is no home directory either. SYLVIT_CACHE_LIMIT_MB bounds it, 256 by default, 0 keeps nothing on disk.
  static KernelCache from_environment(std::function<void(std::string_view)> warn);

  KernelCache(std::filesystem::path directory, std::uintmax_t limit_bytes, std::function<void(std::string_view)> warn);

  /// The binary stored under the key, or nothing. Never throws for a bad entry: it is as if it were not there. One that
  /// others can have written, or all of them in a directory that others can write to, is warned of, too.
  std::optional<std::vector<char>> load(std::string_view key) const;
  /// Written to a temporary file and renamed, so that another process sees all of it or nothing. What does not work
  /// (unwritable, full, another's directory) is a warning, not an error. Then the oldest entries beyond the limit are
  /// removed. Directories and entries are made for this user alone.
  void store(std::string_view key, std::string_view binary) const;

  std::filesystem::path path_of(std::string_view key) const;
  const std::filesystem::path& directory() const noexcept { return directory_; }

 private:
  void go_without(const std::string& reason) const;
  /// -1: there is none, or it is warned of.
  base::FileDescriptor trusted_directory() const;
  void remove_oldest(const base::FileDescriptor& directory, const std::string& keep) const;

  std::filesystem::path directory_;
  std::uintmax_t limit_bytes_;
  std::function<void(std::string_view)> warn_;
};

}  // namespace sylvit::runtime
