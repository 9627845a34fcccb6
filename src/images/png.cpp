// libpng's side of images.hpp.
#include <png.h>

#include "images/decoders.hpp"

namespace sylvit::images {

namespace {

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  static_cast<DecoderFailure*>(png_get_error_ptr(png))->raise(message);
}

/// What libpng only warns of does not touch the pixels.
void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto& rest = *static_cast<std::span<const std::byte>*>(png_get_io_ptr(png));
  if (count > rest.size()) png_error(png, "the file ends too early");
  std::copy_n(reinterpret_cast<const png_byte*>(rest.data()), count, to);
  rest = rest.subspan(count);
}

class PngDecoder {
 public:
  PngDecoder(std::span<const std::byte> file, const std::string& name) : rest_(file), name_(name) {}
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  std::array<std::int64_t, 2> extents() {
    guarded(failure_, name_, [this] { read_header(); });
    const std::uint32_t height = png_get_image_height(png_, info_);
    const std::uint32_t width = png_get_image_width(png_, info_);
    check_size(name_, width, height);
    return {height, width};
  }

  Image decode() {
    const auto [rows, columns] = extents();
    const auto height = static_cast<std::size_t>(rows);
    const auto width = static_cast<std::size_t>(columns);
    // No compressed byte makes more than 1032 others, so this need not be allocated to be found wrong.
    if (png_get_rowbytes(png_, info_) * height / 1032 > rest_.size())
      throw Error(name_ + " is corrupt: its last " + std::to_string(rest_.size()) + " bytes cannot hold " +
                  std::to_string(width) + " x " + std::to_string(height) + " pixels");
    guarded(failure_, name_, [this] { choose_layout(); });
    const std::size_t row_bytes = png_get_rowbytes(png_, info_);
    std::vector<std::uint8_t> values(row_bytes * height);
    guarded(failure_, name_, [&] {
      // Not png_read_image(): a pointer for every row may take many times the memory of the pixels.
      for (int pass = 0; pass < passes_; ++pass)
        for (std::size_t y = 0; y < height; ++y) png_read_row(png_, values.data() + y * row_bytes, nullptr);
      png_read_end(png_, nullptr);
    });
    return {static_cast<std::int64_t>(height), static_cast<std::int64_t>(width), to_rgb(std::move(values))};
  }

 private:
  void read_header() {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &failure_, on_error, on_warning);
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
    if (info_ == nullptr) failure_.raise("libpng could not be started");
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_size() has its own
    png_set_read_fn(png_, &rest_, read_bytes);
    png_read_info(png_, info_);
  }

  /// One byte of grey or of a palette's index, two bytes of grey, or three of colour. Transparency is never asked for.
  void choose_layout() {
    const int type = png_get_color_type(png_, info_);
    const int depth = png_get_bit_depth(png_, info_);
    palette_ = type == PNG_COLOR_TYPE_PALETTE;
    wide_grey_ = type == PNG_COLOR_TYPE_GRAY && depth == 16;
    if (palette_)
      png_set_packing(png_);
    else if (depth < 8)
      png_set_expand_gray_1_2_4_to_8(png_);
    if (depth == 16 && !wide_grey_) png_set_strip_16(png_);
    if ((type & PNG_COLOR_MASK_ALPHA) != 0) png_set_strip_alpha(png_);
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  }

  std::vector<std::uint8_t> to_rgb(std::vector<std::uint8_t> values) {
    if (!palette_ && png_get_channels(png_, info_) == 3) return values;
    // An index without a colour is black.
    std::array<png_color, 256> colours{};
    if (palette_) {
      png_colorp entries = nullptr;
      int count = 0;
      png_get_PLTE(png_, info_, &entries, &count);
      std::copy_n(entries, std::min<std::size_t>(static_cast<std::size_t>(count), colours.size()), colours.begin());
    } else {
      for (std::size_t i = 0; i < colours.size(); ++i) {
        const auto value = static_cast<png_byte>(i);
        colours[i] = {value, value, value};
      }
    }
    const std::size_t step = wide_grey_ ? 2 : 1;
    std::vector<std::uint8_t> pixels;
    pixels.reserve(values.size() / step * 3);
    for (std::size_t i = 0; i < values.size(); i += step) {
      // Pillow keeps 16-bit grey as it is until here, and then clips it.
      const std::uint8_t value = !wide_grey_ ? values[i] : values[i] != 0 ? std::uint8_t{255} : values[i + 1];
      const png_color& colour = colours[value];
      pixels.insert(pixels.end(), {colour.red, colour.green, colour.blue});
    }
    return pixels;
  }

  std::span<const std::byte> rest_;
  const std::string& name_;
  DecoderFailure failure_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  bool palette_ = false;
  bool wide_grey_ = false;
  int passes_ = 1;
};

}  // namespace

Image decode_png(std::span<const std::byte> file, const std::string& name) { return PngDecoder(file, name).decode(); }

std::array<std::int64_t, 2> png_extents(std::span<const std::byte> file, const std::string& name) {
  return PngDecoder(file, name).extents();
}

}  // namespace sylvit::images

namespace sylvit {

std::vector<std::byte> encode_png(const Image& image) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  const auto fail = [&] { throw Error(std::string("a PNG file cannot be made: ") + header.message); };
  png_alloc_size_t bytes = 0;
  if (png_image_write_get_memory_size(header, bytes, 0, image.pixels.data(), 0, nullptr) == 0) fail();
  std::vector<std::byte> file(bytes);
  if (png_image_write_to_memory(&header, file.data(), &bytes, 0, image.pixels.data(), 0, nullptr) == 0) fail();
  file.resize(bytes);
  return file;
}

}  // namespace sylvit
