// libjpeg-turbo's side of images.hpp.
#include <cstdio>
// Needs size_t and FILE.
#include <jerror.h>
#include <jpeglib.h>

#include "images/decoders.hpp"

namespace sylvit::images {

namespace {

/// A progressive file of a few bytes may ask for any number of passes over all pixels.
constexpr int most_scans = 500;

DecoderFailure& failure_of(j_common_ptr info) { return *static_cast<DecoderFailure*>(info->client_data); }

[[noreturn]] void raise(j_common_ptr info) {
  std::array<char, JMSG_LENGTH_MAX> text{};
  info->err->format_message(info, text.data());
  failure_of(info).raise(text.data());
}

/// Warnings are about data that is missing or makes no sense; the library would go on with grey pixels.
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  // The pixels are whole with these four: files with bytes between their segments are common, and so are baseline
  // files with zeros for a scan's parameters.
  const int code = info->err->msg_code;
  if (code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM ||
      code == JWRN_NOT_SEQUENTIAL)
    return;
  raise(info);
}

void on_progress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > most_scans)
    failure_of(info).raise("more than 500 scans");
}

/// Pillow's a * b / 255.
int scaled(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

/// Inverted CMYK, as Adobe's programs write it.
void cmyk_to_rgb(std::span<const std::uint8_t> from, std::uint8_t* to) {
  for (std::size_t i = 0; i < from.size(); i += 4)
    for (std::size_t c = 0; c < 3; ++c)
      *to++ = static_cast<std::uint8_t>(from[i + 3] - scaled(255 - from[i + c], from[i + 3]));
}

void grey_to_rgb(std::span<const std::uint8_t> from, std::uint8_t* to) {
  for (const std::uint8_t value : from) to = std::fill_n(to, 3, value);
}

class JpegDecoder {
 public:
  JpegDecoder(std::span<const std::byte> file, const std::string& name) : file_(file), name_(name) {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = raise;
    errors_.emit_message = on_message;
    info_.client_data = &failure_;
    progress_.progress_monitor = on_progress;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  std::array<std::int64_t, 2> extents() {
    guarded(failure_, name_, [this] { read_header(); });
    check_size(name_, info_.image_width, info_.image_height);
    return {info_.image_height, info_.image_width};
  }

  Image decode() {
    extents();
    const int components = info_.num_components;
    if (components != 1 && components != 3 && components != 4)
      throw Error(name_ + " has " + std::to_string(components) + " colour components, and 1, 3 or 4 can be read");
    info_.out_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
    guarded(failure_, name_, [this] { jpeg_start_decompress(&info_); });
    const auto width = static_cast<std::size_t>(info_.output_width);
    const auto height = static_cast<std::size_t>(info_.output_height);
    Image image{static_cast<std::int64_t>(height), static_cast<std::int64_t>(width), {}};
    image.pixels.resize(width * height * 3);
    std::vector<std::uint8_t> row(width * static_cast<std::size_t>(components));
    guarded(failure_, name_, [&] { read_rows(row, image.pixels.data()); });
    return image;
  }

 private:
  void read_header() {
    jpeg_create_decompress(&info_);
    info_.progress = &progress_;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file_.data()), file_.size());
    jpeg_read_header(&info_, TRUE);
  }

  void read_rows(std::span<std::uint8_t> row, std::uint8_t* to) {
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW into = row.data();
      jpeg_read_scanlines(&info_, &into, 1);
      if (info_.num_components == 1)
        grey_to_rgb(row, to);
      else if (info_.num_components == 4)
        cmyk_to_rgb(row, to);
      else
        std::copy(row.begin(), row.end(), to);
      to += static_cast<std::size_t>(info_.output_width) * 3;
    }
    jpeg_finish_decompress(&info_);
  }

  std::span<const std::byte> file_;
  const std::string& name_;
  DecoderFailure failure_;
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct info_{};
};

}  // namespace

Image decode_jpeg(std::span<const std::byte> file, const std::string& name) { return JpegDecoder(file, name).decode(); }

std::array<std::int64_t, 2> jpeg_extents(std::span<const std::byte> file, const std::string& name) {
  return JpegDecoder(file, name).extents();
}

}  // namespace sylvit::images
