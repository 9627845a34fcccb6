#include "augment/erase.hpp"

#include "augment/boxes.hpp"

namespace sylvit::augment {

void erase(std::span<float> pixels, std::int64_t channels, std::int64_t size, const Erasing& erasing, Random& random) {
  if (random.uniform() >= erasing.probability) return;
  const BoxRange range{erasing.area_min, erasing.area_max, erasing.aspect_min, 1 / erasing.aspect_min};
  for (std::int64_t i = 0; i < erasing.count; ++i) {
    const auto box = erased_box(size, size, range, erasing.count, random);
    if (!box) continue;
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto color = erasing.with == EraseWith::color ? static_cast<float>(normal(random)) : 0.0F;
      for (std::int64_t y = box->y; y < box->y + box->height; ++y)
        for (std::int64_t x = box->x; x < box->x + box->width; ++x)
          pixels[static_cast<std::size_t>((c * size + y) * size + x)] =
              erasing.with == EraseWith::noise ? static_cast<float>(normal(random)) : color;
    }
  }
}

}  // namespace sylvit::augment
