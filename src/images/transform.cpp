#include "images/transform.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "images/resize.hpp"

namespace sylvit {

namespace {

/// The middle `size` of `to` outputs.
images::Outputs middle(std::int64_t to, std::int64_t size) {
  // A half is rounded to the even number, as Python's round() does.
  const std::int64_t half = (to - size) / 2;
  return {to, (to - size) % 2 == 0 ? half : half + half % 2, size};
}

}  // namespace

Image resized_and_cropped(const Image& image, std::int64_t size, double crop_pct) {
  if (size < 1 || !(crop_pct >= 0.01 && crop_pct <= 1))
    throw Error("an image cannot be cropped to " + std::to_string(size) + " pixels, " + std::to_string(crop_pct) +
                " of its shorter side");
  const auto shorter = static_cast<std::int64_t>(std::floor(static_cast<double>(size) / crop_pct));
  // The longer side is torchvision's int(shorter * long / short).
  const auto side = [&](std::int64_t own, std::int64_t other) {
    return own <= other ? shorter
                        : static_cast<std::int64_t>(static_cast<double>(shorter * own) / static_cast<double>(other));
  };
  const std::int64_t width = side(image.width, image.height);
  const std::int64_t height = side(image.height, image.width);
  return images::resampled(image, {0, 0, image.width, image.height}, middle(height, size), middle(width, size),
                           resample::Filter::bicubic);
}

void transform_image(const Image& image, const ImageTransform& transform, std::span<float> to) {
  const std::int64_t values = image.channels * transform.size * transform.size;
  if (std::cmp_not_equal(to.size(), values))
    throw Error("an image of " + std::to_string(transform.size) + " pixels a side has " + std::to_string(values) +
                " values, and there is room for " + std::to_string(to.size()));
  const Image small = resized_and_cropped(image, transform.size, transform.crop_pct);
  const auto channels = static_cast<std::size_t>(small.channels);
  const std::size_t pixels = small.pixels.size() / channels;
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < pixels; ++i)
      to[c * pixels + i] =
          (static_cast<float>(small.pixels[i * channels + c]) / 255.0F - transform.mean[c]) / transform.deviation[c];
}

}  // namespace sylvit
