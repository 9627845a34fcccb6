#include "images/images.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "images/decoders.hpp"

namespace sylvit::images {

namespace {

bool begins_with(std::span<const std::byte> file, std::initializer_list<int> start) {
  return file.size() >= start.size() && std::equal(start.begin(), start.end(), file.begin(),
                                                   [](int a, std::byte b) { return a == std::to_integer<int>(b); });
}

bool is_jpeg(std::span<const std::byte> file) { return begins_with(file, {0xFF, 0xD8, 0xFF}); }
bool is_png(std::span<const std::byte> file) {
  return begins_with(file, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'});
}

std::string reason() { return errno != 0 ? std::strerror(errno) : "unknown reason"; }

}  // namespace

void check_size(const std::string& name, std::uint64_t width, std::uint64_t height) {
  const std::string size = std::to_string(width) + " x " + std::to_string(height);
  if (width == 0 || height == 0) throw Error(name + " is an image of " + size + " pixels: there is nothing in it");
  if (height > static_cast<std::uint64_t>(image_pixel_limit) / width)
    throw Error(name + " is an image of " + size + " pixels, and at most " + std::to_string(image_pixel_limit) +
                " are taken");
}

}  // namespace sylvit::images

namespace sylvit {

bool named_as_image(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

Image decode_image(std::span<const std::byte> file, const std::string& name) {
  if (images::is_jpeg(file)) return images::decode_jpeg(file, name);
  if (images::is_png(file)) return images::decode_png(file, name);
  throw Error(name + (file.empty() ? " is empty" : " is neither a JPEG nor a PNG image"));
}

std::array<std::int64_t, 2> image_extents(std::span<const std::byte> file, const std::string& name) {
  if (images::is_jpeg(file)) return images::jpeg_extents(file, name);
  if (images::is_png(file)) return images::png_extents(file, name);
  throw Error(name + (file.empty() ? " is empty" : " is neither a JPEG nor a PNG image"));
}

Image with_channels(Image image, std::int64_t channels) {
  if (channels != 1 && channels != 3)
    throw Error("an image cannot have " + std::to_string(channels) + " channels here: 1 or 3");
  if (image.channels == channels) return image;
  std::vector<std::uint8_t> pixels;
  pixels.reserve(static_cast<std::size_t>(image.height * image.width * channels));
  if (channels == 3) {
    for (const std::uint8_t value : image.pixels) pixels.insert(pixels.end(), 3, value);
  } else {
    // ITU-R 601-2 luma in Pillow's fixed point.
    for (std::size_t i = 0; i + 2 < image.pixels.size(); i += 3)
      pixels.push_back(static_cast<std::uint8_t>(
          (image.pixels[i] * 19595 + image.pixels[i + 1] * 38470 + image.pixels[i + 2] * 7471 + 0x8000) >> 16));
  }
  return {image.height, image.width, std::move(pixels), channels};
}

Image read_image(const std::filesystem::path& path) {
  const std::string name = path.string();
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw Error("cannot open " + name + ": " + images::reason());
  std::vector<std::byte> file;
  // Piece by piece: what is no image is left alone after the first, and what is no plain file has no size.
  std::vector<char> piece(1 << 16);
  while (stream.read(piece.data(), static_cast<std::streamsize>(piece.size())), stream.gcount() > 0) {
    const auto bytes = std::as_bytes(std::span(piece.data(), static_cast<std::size_t>(stream.gcount())));
    file.insert(file.end(), bytes.begin(), bytes.end());
    if (!images::is_jpeg(file) && !images::is_png(file)) break;
    if (file.size() > image_file_limit)
      throw Error(name + " is longer than " + std::to_string(image_file_limit) + " bytes, and no longer file is taken");
  }
  if (stream.bad()) throw Error("cannot read " + name + ": " + images::reason());
  return decode_image(file, name);
}

}  // namespace sylvit
