// Mixup and cutmix of a batch.
#pragma once

#include <sylvit/data.hpp>

#include <optional>
#include <span>

namespace sylvit::data {

/// What was drawn for a batch.
struct Mix {
  float share = 1;              ///< of every image and target that stays
  std::optional<ImageBox> box;  ///< cutmix: what becomes the neighbour's

  bool does_nothing() const { return share == 1; }
};

/// For the batch of this number, of images of size x size.
Mix draw_mix(const Mixing& mixing, std::uint64_t seed, std::int64_t batch, std::int64_t size);

/// pixels: [channels, size, size] of an image, `neighbour`'s likewise.
void mix_pixels(std::span<float> pixels, std::span<const float> neighbour, std::int64_t size, const Mix& mix);
void mix_targets(std::span<float> targets, std::span<const float> neighbour, const Mix& mix);

}  // namespace sylvit::data
