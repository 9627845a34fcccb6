// The filter of every change of size: images' and position embeddings'.
#pragma once

#include <cstdint>
#include <vector>

namespace sylvit::resample {

/// The input samples that an output sample is made of.
struct Taps {
  std::int64_t first;
  std::vector<double> weights;  ///< their sum is 1
};

enum class Filter : std::uint8_t {
  bilinear,  ///< a triangle
  bicubic    ///< Keys' cubic, a = -0.5
};

/// Taps with antialiasing (as in Pillow and in PyTorch's antialiased interpolation) from `from` samples to `to`, for
/// the outputs [begin, begin + count).
std::vector<Taps> taps(Filter filter, std::int64_t from, std::int64_t to, std::int64_t begin, std::int64_t count);

/// Bicubic ones for every output.
inline std::vector<Taps> bicubic_taps(std::int64_t from, std::int64_t to) {
  return taps(Filter::bicubic, from, to, 0, to);
}

}  // namespace sylvit::resample
