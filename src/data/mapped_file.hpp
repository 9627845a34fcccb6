// A file of a data set in the address space: shards may be larger than the memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace sylvit::data {

/// The bytes of a file, there as long as `owner` is. As with any mapped file, another program that truncates the file
/// while it is in use makes later reads of the lost pages fail with SIGBUS.
struct MappedFile {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Throws Error with a sentence when there is no such regular file. `kind` is what it should be: "a tar file".
MappedFile map_file(const std::filesystem::path& path, std::string_view kind);

}  // namespace sylvit::data
