// TensorFlow's bilinear resize without antialiasing (ResizeBilinear with half_pixel_centers), whose float arithmetic is
// repeated operation by operation, and its cast to bytes.
#include <sylvit/error.hpp>

#include <algorithm>
#include <cmath>

#include "images/resize.hpp"

namespace sylvit {

namespace {

/// What an output is made of, along one axis.
struct Neighbours {
  std::size_t lower;
  std::size_t upper;
  float share;  // of the upper
};

std::vector<Neighbours> neighbours(std::int64_t from, std::int64_t to) {
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  std::vector<Neighbours> all;
  for (std::int64_t i = 0; i < to; ++i) {
    const float at = (static_cast<float>(i) + 0.5F) * scale - 0.5F;
    const float below = std::floor(at);
    all.push_back({static_cast<std::size_t>(std::max<std::int64_t>(static_cast<std::int64_t>(below), 0)),
                   static_cast<std::size_t>(std::min(static_cast<std::int64_t>(std::ceil(at)), from - 1)), at - below});
  }
  return all;
}

Image plain_bilinear(const Image& image, const ImageBox& part, std::int64_t height, std::int64_t width) {
  const std::vector<Neighbours> across = neighbours(part.width, width);
  const auto channels = static_cast<std::size_t>(image.channels);
  const std::size_t stride = static_cast<std::size_t>(image.width) * channels;
  const std::uint8_t* first =
      &image.pixels[static_cast<std::size_t>(part.y) * stride + static_cast<std::size_t>(part.x) * channels];
  Image result{height, width, std::vector<std::uint8_t>(static_cast<std::size_t>(height * width) * channels),
               image.channels};
  std::uint8_t* to = result.pixels.data();
  for (const Neighbours& y : neighbours(part.height, height)) {
    const std::uint8_t* upper_row = first + y.lower * stride;
    const std::uint8_t* lower_row = first + y.upper * stride;
    for (const Neighbours& x : across)
      for (std::size_t c = 0; c < channels; ++c) {
        const auto at = [&](const std::uint8_t* row, std::size_t column) {
          return static_cast<float>(row[column * channels + c]);
        };
        const float top = at(upper_row, x.lower) + (at(upper_row, x.upper) - at(upper_row, x.lower)) * x.share;
        const float bottom = at(lower_row, x.lower) + (at(lower_row, x.upper) - at(lower_row, x.lower)) * x.share;
        *to++ = static_cast<std::uint8_t>(top + (bottom - top) * y.share);
      }
  }
  return result;
}

}  // namespace

Image resized(const Image& image, const ImageBox& part, std::int64_t height, std::int64_t width,
              Resampling resampling) {
  images::check_part(image, part);
  if (height < 1 || width < 1 || height > image_pixel_limit / width)
    throw Error("an image cannot be resized to " + std::to_string(width) + " x " + std::to_string(height) + " pixels");
  if (resampling == Resampling::plain_bilinear) return plain_bilinear(image, part, height, width);
  return images::resampled(image, part, {height, 0, height}, {width, 0, width},
                           resampling == Resampling::bilinear ? resample::Filter::bilinear : resample::Filter::bicubic);
}

}  // namespace sylvit
