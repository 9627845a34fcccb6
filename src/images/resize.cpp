#include "images/resize.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace sylvit::images {

namespace {

/// Pillow's fixed point for 8-bit images.
constexpr int fraction_bits = 22;

std::uint8_t rounded(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> fraction_bits, 0, 255)); }

/// resample::Taps whose weights are integers.
struct FixedTaps {
  std::size_t first;
  std::vector<std::int32_t> weights;
};

std::vector<FixedTaps> fixed_taps(resample::Filter filter, std::int64_t from, const Outputs& outputs) {
  std::vector<FixedTaps> all;
  for (const resample::Taps& taps : resample::taps(filter, from, outputs.to, outputs.begin, outputs.count)) {
    FixedTaps fixed{static_cast<std::size_t>(taps.first), {}};
    for (const double weight : taps.weights)
      fixed.weights.push_back(static_cast<std::int32_t>(weight * (1 << fraction_bits) + (weight < 0 ? -0.5 : 0.5)));
    all.push_back(std::move(fixed));
  }
  return all;
}

/// Pixels somewhere in an image.
struct Rows {
  const std::uint8_t* first;
  std::size_t stride;
  const std::uint8_t* row(std::size_t y) const { return first + y * stride; }
};

/// Resamples along x.
template <std::size_t channels>
void resample_row(const std::uint8_t* from, std::span<const FixedTaps> across, std::uint8_t* to) {
  for (const FixedTaps& taps : across) {
    std::array<std::int32_t, channels> sums;
    sums.fill(1 << (fraction_bits - 1));
    const std::uint8_t* sample = from + taps.first * channels;
    for (const std::int32_t weight : taps.weights)
      for (std::int32_t& sum : sums) sum += weight * *sample++;
    for (const std::int32_t sum : sums) *to++ = rounded(sum);
  }
}

/// The rows [first, end) resampled along x.
Image resampled_across(const Rows& rows, std::int64_t channels, std::span<const FixedTaps> across, std::size_t first,
                       std::size_t end) {
  const std::size_t width = across.size() * static_cast<std::size_t>(channels);
  Image result{static_cast<std::int64_t>(end - first), static_cast<std::int64_t>(across.size()),
               std::vector<std::uint8_t>((end - first) * width), channels};
  std::uint8_t* to = result.pixels.data();
  for (std::size_t y = first; y < end; ++y, to += width)
    channels == 1 ? resample_row<1>(rows.row(y), across, to) : resample_row<3>(rows.row(y), across, to);
  return result;
}

/// So many columns resampled along y. The first row is the row `first` that the taps speak of.
Image resampled_down(const Rows& rows, std::int64_t width, std::int64_t channels, std::span<const FixedTaps> down,
                     std::size_t first) {
  const auto row = static_cast<std::size_t>(width * channels);
  Image result{static_cast<std::int64_t>(down.size()), width, std::vector<std::uint8_t>(down.size() * row), channels};
  std::vector<std::int32_t> sums(row);
  std::uint8_t* to = result.pixels.data();
  for (const FixedTaps& taps : down) {
    std::ranges::fill(sums, 1 << (fraction_bits - 1));
    for (std::size_t i = 0; i < taps.weights.size(); ++i) {
      const std::uint8_t* from = rows.row(taps.first - first + i);
      const std::int32_t weight = taps.weights[i];
      for (std::size_t x = 0; x < row; ++x) sums[x] += weight * from[x];
    }
    for (std::size_t x = 0; x < row; ++x) to[x] = rounded(sums[x]);
    to += row;
  }
  return result;
}

Rows rows_of(const Image& image) {
  return {image.pixels.data(), static_cast<std::size_t>(image.width * image.channels)};
}

}  // namespace

Image resampled(const Image& image, const ImageBox& part, const Outputs& down, const Outputs& across,
                resample::Filter filter) {
  const std::vector<FixedTaps> x_taps = fixed_taps(filter, part.width, across);
  const std::vector<FixedTaps> y_taps = fixed_taps(filter, part.height, down);
  const Rows whole = rows_of(image);
  const Rows rows{whole.row(static_cast<std::size_t>(part.y)) + part.x * image.channels, whole.stride};
  // Each pass rounds to bytes, so their order matters. Since version 13 Pillow begins with y where that loses much
  // more.
  const std::int64_t lost_height = part.height - down.to;
  if (lost_height > 0 && lost_height > 2 * (part.width - across.to)) {
    const Image narrow = resampled_down(rows, part.width, image.channels, y_taps, 0);
    return resampled_across(rows_of(narrow), image.channels, x_taps, 0, y_taps.size());
  }
  const std::size_t first = y_taps.front().first;
  const std::size_t end = y_taps.back().first + y_taps.back().weights.size();
  const Image narrow = resampled_across(rows, image.channels, x_taps, first, end);
  return resampled_down(rows_of(narrow), narrow.width, image.channels, y_taps, first);
}

void check_part(const Image& image, const ImageBox& part) {
  if (part.x >= 0 && part.y >= 0 && part.width > 0 && part.height > 0 && part.width <= image.width - part.x &&
      part.height <= image.height - part.y)
    return;
  throw Error("an image of " + std::to_string(image.width) + " x " + std::to_string(image.height) +
              " pixels has no part of " + std::to_string(part.width) + " x " + std::to_string(part.height) + " at " +
              std::to_string(part.x) + ", " + std::to_string(part.y));
}

}  // namespace sylvit::images
