// What stands between an image and a model: timm's transform for evaluation.
#pragma once

#include <array>
#include <span>

#include "io/images.hpp"

namespace sylvit::io {

struct ImageTransform {
  std::int64_t size = 224;  ///< height and width that the model takes
  double crop_pct = 0.9;    ///< the share of the resized image's shorter side that is kept, 0.01 to 1
  std::array<float, 3> mean{0.5F, 0.5F, 0.5F};
  std::array<float, 3> deviation{0.5F, 0.5F, 0.5F};
};

/// The shorter side becomes floor(size / crop_pct) by bicubic resampling with antialiasing, and the middle size x size
/// is cut out. The same bytes as torchvision's Resize and CenterCrop of a Pillow image; only what is cut out is
/// computed.
Image resized_and_cropped(const Image& image, std::int64_t size, double crop_pct);

/// That, as (x / 255 - mean) / deviation, [3, size, size].
void transform_image(const Image& image, const ImageTransform& transform, std::span<float> to);

}  // namespace sylvit::io
