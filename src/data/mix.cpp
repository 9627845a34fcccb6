#include "data/mix.hpp"

#include <algorithm>

#include "augment/boxes.hpp"
#include "augment/random.hpp"
#include "data/augmenter.hpp"
#include "data/require_number.hpp"

namespace sylvit::data {

namespace {

void blend(std::span<float> values, std::span<const float> others, float share) {
  const float rest = 1 - share;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = share * values[i] + rest * others[i];
}

}  // namespace

Mix draw_mix(const Mixing& mixing, std::uint64_t seed, std::int64_t batch, std::int64_t size) {
  if (mixing.mixup == 0 && mixing.cutmix == 0) return {};
  augment::Random random{seed, static_cast<std::uint64_t>(Purpose::mix), static_cast<std::uint64_t>(batch)};
  if (random.uniform() >= mixing.probability) return {};
  const bool cuts = mixing.cutmix > 0 && (mixing.mixup == 0 || random.uniform() < mixing.cutmix_instead);
  double share = augment::beta(random, cuts ? mixing.cutmix : mixing.mixup);
  if (mixing.larger_share) share = std::max(share, 1 - share);
  if (!cuts) return {static_cast<float>(share), std::nullopt};
  const ImageBox box = augment::cutmix_box(size, size, share, random);
  // What really stays: a part of the box may lie outside.
  share = 1 - static_cast<double>(box.width * box.height) / static_cast<double>(size * size);
  return {static_cast<float>(share), box};
}

void mix_pixels(std::span<float> pixels, std::span<const float> neighbour, std::int64_t size, const Mix& mix) {
  if (mix.does_nothing()) return;
  if (!mix.box) return blend(pixels, neighbour, mix.share);
  const std::size_t plane = static_cast<std::size_t>(size * size);
  for (std::size_t begin = 0; begin < pixels.size(); begin += plane)
    for (std::int64_t y = mix.box->y; y < mix.box->y + mix.box->height; ++y) {
      const std::size_t first = begin + static_cast<std::size_t>(y * size + mix.box->x);
      std::copy_n(neighbour.begin() + static_cast<std::ptrdiff_t>(first), mix.box->width,
                  pixels.begin() + static_cast<std::ptrdiff_t>(first));
    }
}

void mix_targets(std::span<float> targets, std::span<const float> neighbour, const Mix& mix) {
  if (!mix.does_nothing()) blend(targets, neighbour, mix.share);
}

}  // namespace sylvit::data

namespace sylvit {

void Mixing::check() const {
  using data::require_number;
  require_number("mixup", mixup, 0, 1000);
  require_number("cutmix", cutmix, 0, 1000);
  require_number("cutmix_instead", cutmix_instead, 0, 1);
  require_number("the probability of mixing", probability, 0, 1);
  require_number("label smoothing", static_cast<double>(smoothing), 0, 1);
}

}  // namespace sylvit
