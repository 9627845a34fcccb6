// Image files as a Vision Transformer takes them: JPEG and PNG, and timm's transform for evaluation. A library of its
// own (sylvit::images, find_package's component `images`), because it needs libjpeg and libpng.
#pragma once

#include <sylvit/export.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace sylvit {

/// An image in memory.
struct Image {
  std::int64_t height = 0;           ///< rows
  std::int64_t width = 0;            ///< columns
  std::vector<std::uint8_t> pixels;  ///< [height, width, channels]: red, green, blue; or grey
  std::int64_t channels = 3;         ///< 3, or 1 for grey
};

/// More pixels are refused before they are allocated: where Pillow, too, suspects a decompression bomb.
inline constexpr std::int64_t image_pixel_limit = 178'956'970;
/// So is a longer file.
inline constexpr std::uint64_t image_file_limit = std::uint64_t{1} << 30;

/// Reads a JPEG or PNG file, told apart by content. The pixels are those of Pillow's Image.open(file).convert("RGB"):
/// grey and palette are expanded, alpha is dropped, 16-bit colours keep their high byte, 16-bit grey is clipped to 255,
/// CMYK is taken to be inverted as Adobe writes it. An orientation in the file's EXIF data is not applied. A file may
/// come from anywhere: what is truncated or corrupt is an Error with one sentence that names the file and the decoder's
/// reason. Any number of threads may read at once.
SYLVIT_API Image read_image(const std::filesystem::path& path);
/// The same over a file's bytes. `name` stands for the file in errors.
SYLVIT_API Image decode_image(std::span<const std::byte> file, const std::string& name);
/// Does the name end in .jpg, .jpeg or .png?
SYLVIT_API bool named_as_image(const std::filesystem::path& path);
/// The height and width that a JPEG or PNG file claims, of which only the beginning is read.
SYLVIT_API std::array<std::int64_t, 2> image_extents(std::span<const std::byte> file, const std::string& name);

/// The image with 1 or 3 channels: grey repeated, or Pillow's grey of colours.
SYLVIT_API Image with_channels(Image image, std::int64_t channels);

/// An image as the bytes of a PNG file.
SYLVIT_API std::vector<std::byte> encode_png(const Image& image);

/// A rectangle of an image.
struct ImageBox {
  std::int64_t x = 0;       ///< its first column
  std::int64_t y = 0;       ///< its first row
  std::int64_t width = 0;   ///< columns
  std::int64_t height = 0;  ///< rows

  /// Both are the same.
  friend bool operator==(const ImageBox&, const ImageBox&) = default;
};

/// How an image becomes larger or smaller.
enum class Resampling : std::uint8_t {
  plain_bilinear,  ///< between the four nearest pixels, also where many are left out: TensorFlow's without antialias
  bilinear,        ///< Pillow's, with antialiasing
  bicubic          ///< Pillow's, with antialiasing
};

/// A part of an image as height x width pixels. The bytes are Pillow's (crop and resize), or TensorFlow's rounded down.
SYLVIT_API Image resized(const Image& image, const ImageBox& part, std::int64_t height, std::int64_t width,
                         Resampling resampling);

/// What stands between an image and a model.
struct ImageTransform {
  std::int64_t size = 224;                           ///< height and width that the model takes
  double crop_pct = 0.9;                             ///< the share of the shorter side that is kept, 0.01 to 1
  std::array<float, 3> mean{0.5F, 0.5F, 0.5F};       ///< of each channel
  std::array<float, 3> deviation{0.5F, 0.5F, 0.5F};  ///< of each channel
};

/// The shorter side becomes floor(size / crop_pct) by bicubic resampling with antialiasing, and the middle size x size
/// is cut out. The same bytes as torchvision's Resize and CenterCrop of a Pillow image; only what is cut out is
/// computed.
SYLVIT_API Image resized_and_cropped(const Image& image, std::int64_t size, double crop_pct);

/// That, as (x / 255 - mean) / deviation, [channels, size, size].
SYLVIT_API void transform_image(const Image& image, const ImageTransform& transform, std::span<float> to);

}  // namespace sylvit
