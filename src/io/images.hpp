// Image files as pixels: JPEG and PNG, told apart by their content. The pixels are those of Pillow's
// Image.open(file).convert("RGB"): grey and palette are expanded, alpha is dropped, 16-bit colours keep their high
// byte, CMYK is taken to be inverted as Adobe writes it. An orientation in the file's EXIF data is not applied. A file
// may come from anywhere: what is truncated or corrupt is an Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace sylvit::io {

struct Image {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;  ///< [height, width, 3]: red, green, blue
};

/// More pixels are refused before they are allocated: where Pillow, too, suspects a decompression bomb.
inline constexpr std::int64_t image_pixel_limit = 178'956'970;
/// So is a longer file.
inline constexpr std::uint64_t image_file_limit = std::uint64_t{1} << 30;

/// Throws Error with one sentence that names the file and the decoder's reason.
Image read_image(const std::filesystem::path& path);
/// The same over a file's bytes. `name` stands for the file in errors.
Image decode_image(std::span<const std::byte> file, const std::string& name);

}  // namespace sylvit::io
