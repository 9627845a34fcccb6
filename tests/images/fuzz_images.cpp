// Any bytes are either an image with all of its pixels, which can be resized, or are refused with a sentence. Before an
// input is tried, the checksums of a PNG are made right, and claims of very many pixels are made smaller: what is
// behind them would hardly be reached otherwise.
#include <sylvit/error.hpp>
#include <sylvit/images.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/fuzz.hpp"

namespace {

using sylvit::fuzz::require;

std::uint32_t big_endian(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

/// A PNG's sides are at most 4095, and every chunk that is whole has its checksum.
void repair_png(std::string& file) {
  constexpr std::size_t sides = 16;
  if (file.size() < sides + 8) return;
  for (const std::size_t side : {sides, sides + 4}) {
    file[side] = file[side + 1] = 0;
    file[side + 2] = static_cast<char>(static_cast<unsigned char>(file[side + 2]) & 0x0FU);
  }
  for (std::size_t at = 8; at + 12 <= file.size();) {
    const std::uint32_t length = big_endian(file, at);
    if (length > file.size() - at - 12) return;
    const std::uint32_t crc = crc32(std::string_view(file).substr(at + 4, length + 4));
    for (std::size_t i = 0; i < 4; ++i) file[at + 8 + length + i] = static_cast<char>(crc >> (24 - 8 * i));
    at += 12 + length;
  }
}

/// So are the sides in every header of a JPEG's frame.
void repair_jpeg(std::string& file) {
  for (std::size_t at = 0; at + 9 < file.size(); ++at) {
    const auto kind = static_cast<unsigned char>(file[at + 1]);
    if (file[at] != '\xFF' || kind < 0xC0 || kind > 0xCF) continue;
    for (const std::size_t side : {at + 5, at + 7})
      file[side] = static_cast<char>(static_cast<unsigned char>(file[side]) & 0x0FU);
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  if (file.starts_with("\x89PNG")) repair_png(file);
  if (file.starts_with("\xFF\xD8")) repair_jpeg(file);
  try {
    const sylvit::Image image = sylvit::decode_image(std::as_bytes(std::span(file)), "fuzz");
    require(image.width > 0 && image.height > 0 && image.width * image.height <= sylvit::image_pixel_limit);
    require(image.pixels.size() == static_cast<std::size_t>(3 * image.width * image.height));
    if (image.pixels.size() > 100'000) return 0;
    std::array<float, 3 * 8 * 8> values{};
    sylvit::transform_image(image, {.size = 8, .crop_pct = 0.9}, values);
  } catch (const sylvit::Error& error) {
    sylvit::fuzz::require_sentence(error.what());
  }
  return 0;
}

namespace sylvit::fuzz {

/// The images of the tests, which are of every kind, some kilobytes each.
std::vector<std::string> seeds() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(SYLVIT_IMAGES))
    if (entry.path().extension() == ".png" || entry.path().extension() == ".jpg") paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> result;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    result.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  require(!result.empty());
  return result;
}

std::vector<std::string_view> words() {
  return {"\xFF\xD8",          "\xFF\xD9", "\xFF\xDA", "\xFF\xC0", "\xFF\xC2", "\xFF\xC4", "\xFF\xDB", "\xFF\xDD",
          "\xFF\xEE",          "IHDR",     "PLTE",     "IDAT",     "IEND",     "tRNS",     "iCCP",     "zTXt",
          "\x89PNG\r\n\x1A\n", "\xFF\xFF", "Adobe"};
}

}  // namespace sylvit::fuzz
