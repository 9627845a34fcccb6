// What libarchive reads for this room: .gz files and the members of tar files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace sylvit::data {

/// What a .gz file holds. Throws Error when that is corrupt or too much: `most` is given the first bytes (65536, or
/// all), and says how many there may be altogether.
std::vector<std::byte> unpack_gzip(std::span<const std::byte> file, const std::string& name,
                                   const std::function<std::uint64_t(std::span<const std::byte>)>& most);

/// A file in a tar file.
struct TarMember {
  std::string path;
  std::size_t begin = 0;  ///< where its bytes are in the tar file
  std::size_t bytes = 0;
};

/// All plain files of an uncompressed tar file, in its order. Throws Error when the tar file is corrupt or ends early.
std::vector<TarMember> tar_members(std::span<const std::byte> file, const std::string& name);

}  // namespace sylvit::data
