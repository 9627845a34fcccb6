// Pillow's resampling of 8-bit images (and TensorFlow's, in plain_resize.cpp).
#pragma once

#include <span>

#include "images/images.hpp"
#include "resample/resample.hpp"

namespace sylvit::images {

/// Of the result of a resize along one axis: the outputs [begin, begin + count) of `to`.
struct Outputs {
  std::int64_t to;
  std::int64_t begin;
  std::int64_t count;
};

/// A part of the image as `down.to` x `across.to` pixels, of which the outputs are computed.
Image resampled(const Image& image, const ImageBox& part, const Outputs& down, const Outputs& across,
                resample::Filter filter);

/// Throws Error unless the part lies in the image.
void check_part(const Image& image, const ImageBox& part);

}  // namespace sylvit::images
