#include "vit/positions.hpp"

#include "resample/resample.hpp"

namespace sylvit::vit {

std::vector<float> resized_positions(const std::vector<float>& from, std::int64_t height, std::int64_t width,
                                     std::int64_t new_height, std::int64_t new_width, std::int64_t channels) {
  const auto at = [&](std::int64_t row, std::int64_t column, std::int64_t columns) {
    return static_cast<std::size_t>((row * columns + column) * channels);
  };
  const auto channel_count = static_cast<std::size_t>(channels);
  // Along x, then along y.
  std::vector<double> wide(static_cast<std::size_t>(height * new_width * channels), 0.0);
  const std::vector<resample::Taps> across = resample::bicubic_taps(width, new_width);
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < new_width; ++x) {
      const resample::Taps& taps = across[static_cast<std::size_t>(x)];
      for (std::size_t j = 0; j < taps.weights.size(); ++j)
        for (std::size_t c = 0; c < channel_count; ++c)
          wide[at(y, x, new_width) + c] +=
              taps.weights[j] * from[at(y, taps.first + static_cast<std::int64_t>(j), width) + c];
    }
  std::vector<double> tall(static_cast<std::size_t>(new_height * new_width * channels), 0.0);
  const std::vector<resample::Taps> down = resample::bicubic_taps(height, new_height);
  for (std::int64_t y = 0; y < new_height; ++y) {
    const resample::Taps& taps = down[static_cast<std::size_t>(y)];
    for (std::size_t j = 0; j < taps.weights.size(); ++j)
      for (std::int64_t x = 0; x < new_width; ++x)
        for (std::size_t c = 0; c < channel_count; ++c)
          tall[at(y, x, new_width) + c] +=
              taps.weights[j] * wide[at(taps.first + static_cast<std::int64_t>(j), x, new_width) + c];
  }
  return {tall.begin(), tall.end()};
}

}  // namespace sylvit::vit
