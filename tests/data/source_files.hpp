// Small data sets of every kind, for tests.
#pragma once

#include <sylvit/images.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace sylvit::test {

/// Writes a file, and the folders above it.
void write_file(const std::filesystem::path& path, const std::string& content);

/// An image whose pixels say which it is.
Image numbered_image(int number, std::int64_t height = 5, std::int64_t width = 7, std::int64_t channels = 3);
std::string png_of(const Image& image);

using Files = std::vector<std::pair<std::string, std::string>>;

/// A tar file of these members.
std::string tar_of(const Files& members);
std::string gzip_of(const std::string& content);

/// MNIST's files: bytes of these extents.
std::string idx_of(const std::vector<std::uint32_t>& extents, const std::string& elements);

/// A text of bytes.
template <class... T>
std::string bytes_of(T... values) {
  return {static_cast<char>(values)...};
}

}  // namespace sylvit::test
