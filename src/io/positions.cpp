#include "io/positions.hpp"

#include <algorithm>
#include <cmath>

namespace sylvit::io {

namespace {

/// Keys' cubic with a = -0.5, as PIL's and PyTorch's antialiased resampling have it.
double cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

/// The input samples that an output sample is made of.
struct Taps {
  std::int64_t first;
  std::vector<double> weights;
};

std::vector<Taps> taps_of(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  // Downwards the filter widens, upwards it does not.
  const double filter_scale = std::max(scale, 1.0);
  const double support = 2 * filter_scale;
  std::vector<Taps> all;
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = scale * (static_cast<double>(i) + 0.5);
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - support + 0.5));
    const auto end = std::min(from, static_cast<std::int64_t>(centre + support + 0.5));
    Taps taps{first, {}};
    double sum = 0;
    for (std::int64_t j = first; j < end; ++j) {
      taps.weights.push_back(cubic((static_cast<double>(j) - centre + 0.5) / filter_scale));
      sum += taps.weights.back();
    }
    for (double& weight : taps.weights) weight /= sum;
    all.push_back(std::move(taps));
  }
  return all;
}

}  // namespace

std::vector<float> resized_positions(const std::vector<float>& from, std::int64_t height, std::int64_t width,
                                     std::int64_t new_height, std::int64_t new_width, std::int64_t channels) {
  const auto at = [&](std::int64_t row, std::int64_t column, std::int64_t columns) {
    return static_cast<std::size_t>((row * columns + column) * channels);
  };
  const auto channel_count = static_cast<std::size_t>(channels);
  // Along x, then along y.
  std::vector<double> wide(static_cast<std::size_t>(height * new_width * channels), 0.0);
  const std::vector<Taps> across = taps_of(width, new_width);
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < new_width; ++x) {
      const Taps& taps = across[static_cast<std::size_t>(x)];
      for (std::size_t j = 0; j < taps.weights.size(); ++j)
        for (std::size_t c = 0; c < channel_count; ++c)
          wide[at(y, x, new_width) + c] +=
              taps.weights[j] * from[at(y, taps.first + static_cast<std::int64_t>(j), width) + c];
    }
  std::vector<double> tall(static_cast<std::size_t>(new_height * new_width * channels), 0.0);
  const std::vector<Taps> down = taps_of(height, new_height);
  for (std::int64_t y = 0; y < new_height; ++y) {
    const Taps& taps = down[static_cast<std::size_t>(y)];
    for (std::size_t j = 0; j < taps.weights.size(); ++j)
      for (std::int64_t x = 0; x < new_width; ++x)
        for (std::size_t c = 0; c < channel_count; ++c)
          tall[at(y, x, new_width) + c] +=
              taps.weights[j] * wide[at(taps.first + static_cast<std::int64_t>(j), x, new_width) + c];
  }
  return {tall.begin(), tall.end()};
}

}  // namespace sylvit::io
