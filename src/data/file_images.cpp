#include "data/file_images.hpp"

#include <sylvit/error.hpp>

#include "data/mapped_file.hpp"

namespace sylvit::data {

std::array<std::int64_t, 2> FileImages::extents(std::int64_t index) const {
  const MappedFile file = map_file(path(index), "an image");
  return image_extents(file.bytes, name(index));
}

void FileImages::add_to(Fingerprint& fingerprint) const {
  for (const std::string& path : paths_) {
    std::error_code error;
    const std::uint64_t bytes = std::filesystem::file_size(folder_ / path, error);
    if (error) throw Error("cannot examine " + (folder_ / path).string() + ": " + error.message());
    fingerprint.add(path);
    fingerprint.add(bytes);
  }
}

}  // namespace sylvit::data
