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

/// Bicubic taps with antialiasing (Keys' cubic, a = -0.5, as in Pillow and in PyTorch's antialiased interpolation) from
/// `from` samples to `to`, for the outputs [begin, begin + count).
std::vector<Taps> bicubic_taps(std::int64_t from, std::int64_t to, std::int64_t begin, std::int64_t count);

/// For every output.
inline std::vector<Taps> bicubic_taps(std::int64_t from, std::int64_t to) { return bicubic_taps(from, to, 0, to); }

}  // namespace sylvit::resample
