#include "images/transform.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "resample/resample.hpp"

namespace sylvit::images {

namespace {

/// Pillow's fixed point for 8-bit images.
constexpr int fraction_bits = 22;

/// resample::Taps whose weights are integers.
struct FixedTaps {
  std::size_t first;
  std::vector<std::int32_t> weights;
};

/// For the middle `size` of `to` outputs.
std::vector<FixedTaps> middle_taps(std::int64_t from, std::int64_t to, std::int64_t size) {
  // A half is rounded to the even number, as Python's round() does.
  const std::int64_t half = (to - size) / 2;
  const std::int64_t begin = (to - size) % 2 == 0 ? half : half + half % 2;
  std::vector<FixedTaps> all;
  for (const resample::Taps& taps : resample::bicubic_taps(from, to, begin, size)) {
    FixedTaps fixed{static_cast<std::size_t>(taps.first), {}};
    for (const double weight : taps.weights)
      fixed.weights.push_back(static_cast<std::int32_t>(weight * (1 << fraction_bits) + (weight < 0 ? -0.5 : 0.5)));
    all.push_back(std::move(fixed));
  }
  return all;
}

/// The sum of samples that are `step` apart, rounded to a byte.
std::uint8_t weighted(const std::uint8_t* samples, std::size_t step, const FixedTaps& taps) {
  std::int32_t sum = 1 << (fraction_bits - 1);
  for (const std::int32_t weight : taps.weights) {
    sum += weight * *samples;
    samples += step;
  }
  return static_cast<std::uint8_t>(std::clamp(sum >> fraction_bits, 0, 255));
}

/// Resamples along x: the rows [first, end) of the image.
Image resampled_across(const Image& image, std::span<const FixedTaps> across, std::size_t first, std::size_t end) {
  const auto channels = static_cast<std::size_t>(image.channels);
  Image result{static_cast<std::int64_t>(end - first), static_cast<std::int64_t>(across.size()),
               std::vector<std::uint8_t>((end - first) * across.size() * channels), image.channels};
  const std::size_t row = static_cast<std::size_t>(image.width) * channels;
  std::uint8_t* to = result.pixels.data();
  for (std::size_t y = first; y < end; ++y)
    for (const FixedTaps& taps : across)
      for (std::size_t c = 0; c < channels; ++c)
        *to++ = weighted(&image.pixels[y * row + taps.first * channels + c], channels, taps);
  return result;
}

/// Resamples along y. The image's first row is the row `first` that the taps speak of.
Image resampled_down(const Image& image, std::span<const FixedTaps> down, std::size_t first) {
  const std::size_t row = static_cast<std::size_t>(image.width * image.channels);
  Image result{static_cast<std::int64_t>(down.size()), image.width, std::vector<std::uint8_t>(down.size() * row),
               image.channels};
  std::uint8_t* to = result.pixels.data();
  for (const FixedTaps& taps : down)
    for (std::size_t x = 0; x < row; ++x) *to++ = weighted(&image.pixels[(taps.first - first) * row + x], row, taps);
  return result;
}

}  // namespace

}  // namespace sylvit::images

namespace sylvit {

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
  const std::vector<images::FixedTaps> across = images::middle_taps(image.width, width, size);
  const std::vector<images::FixedTaps> down = images::middle_taps(image.height, height, size);
  // Each pass rounds to bytes, so their order matters. Since version 13 Pillow begins with y where that loses much
  // more.
  const std::int64_t lost_height = image.height - height;
  if (lost_height > 0 && lost_height > 2 * (image.width - width))
    return images::resampled_across(images::resampled_down(image, down, 0), across, 0, down.size());
  const std::size_t first = down.front().first;
  const std::size_t end = down.back().first + down.back().weights.size();
  return images::resampled_down(images::resampled_across(image, across, first, end), down, first);
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
