// timm's random erasing, on an image that is normalised already.
#pragma once

#include <sylvit/data.hpp>

#include <span>

#include "augment/random.hpp"

namespace sylvit::augment {

/// pixels: [channels, size, size].
void erase(std::span<float> pixels, std::int64_t channels, std::int64_t size, const Erasing& erasing, Random& random);

}  // namespace sylvit::augment
