#include "resample/resample.hpp"

#include <algorithm>
#include <cmath>

namespace sylvit::resample {

namespace {

double cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

double triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }

}  // namespace

// The order of the operations is Pillow's: resized images are to have the same bits.
std::vector<Taps> taps(Filter filter, std::int64_t from, std::int64_t to, std::int64_t begin, std::int64_t count) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  // Downwards the filter widens, upwards it does not.
  const double filter_scale = std::max(scale, 1.0);
  const double inverse = 1 / filter_scale;
  const double support = (filter == Filter::bicubic ? 2 : 1) * filter_scale;
  std::vector<Taps> all;
  for (std::int64_t i = begin; i < begin + count; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(centre - support + 0.5)));
    const auto end = std::min(from, static_cast<std::int64_t>(std::floor(centre + support + 0.5)));
    Taps taps{first, {}};
    double sum = 0;
    for (std::int64_t j = first; j < end; ++j) {
      const double x = (static_cast<double>(j) - centre + 0.5) * inverse;
      taps.weights.push_back(filter == Filter::bicubic ? cubic(x) : triangle(x));
      sum += taps.weights.back();
    }
    for (double& weight : taps.weights) weight /= sum;
    all.push_back(std::move(taps));
  }
  return all;
}

}  // namespace sylvit::resample
