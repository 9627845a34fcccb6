// Position embeddings for another grid.
#pragma once

#include <cstdint>
#include <vector>

namespace sylvit::vit {

/// Bicubic resampling with antialiasing of [height, width, channels], as PyTorch's interpolate(mode="bicubic",
/// antialias=True), which timm uses.
std::vector<float> resized_positions(const std::vector<float>& from, std::int64_t height, std::int64_t width,
                                     std::int64_t new_height, std::int64_t new_width, std::int64_t channels);

}  // namespace sylvit::vit
