// Files of the system: a whole file mapped for reading.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace sylvit::io {

/// The bytes of a file, there as long as `owner` is. As with any mapped file, another program that truncates the file
/// while it is in use makes later reads of the lost pages fail with SIGBUS.
struct MappedFile {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Throws Error with a sentence when there is no such regular file. `kind` is what it should be: "a safetensors file".
MappedFile map_file(const std::filesystem::path& path, std::string_view kind);

}  // namespace sylvit::io
