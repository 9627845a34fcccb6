#include "data/augmenter.hpp"

#include <sylvit/error.hpp>

#include <cmath>
#include <limits>

#include "augment/boxes.hpp"
#include "augment/erase.hpp"
#include "augment/rand_augment.hpp"
#include "augment/random.hpp"
#include "data/require_number.hpp"

namespace sylvit::data {

namespace {

using augment::Random;

Random random_for(std::uint64_t seed, Purpose purpose, std::int64_t epoch, std::int64_t index) {
  return Random{seed, static_cast<std::uint64_t>(purpose), static_cast<std::uint64_t>(epoch),
                static_cast<std::uint64_t>(index)};
}

Resampling resampling_of(CropResampling choice, Random& random) {
  switch (choice) {
    case CropResampling::plain_bilinear:
      return Resampling::plain_bilinear;
    case CropResampling::bilinear:
      return Resampling::bilinear;
    case CropResampling::bicubic:
      return Resampling::bicubic;
    case CropResampling::random:
      break;
  }
  return random.uniform() < 0.5 ? Resampling::bilinear : Resampling::bicubic;
}

}  // namespace

Augmenter::Augmenter(const ImageSet& set, const Augmentation& augmentation) : set_(set), augmentation_(augmentation) {
  augmentation.check();
  values_ = static_cast<std::size_t>(set.channels() * augmentation.size * augmentation.size);
  for (std::size_t c = 0; c < static_cast<std::size_t>(set.channels()); ++c) {
    auto& table = normalised_.emplace_back();
    for (std::size_t value = 0; value < table.size(); ++value)
      table[value] = (static_cast<float>(value) / 255.0F - augmentation.mean[c]) / augmentation.deviation[c];
    fill_[c] = static_cast<std::uint8_t>(
        std::clamp(std::nearbyint(255 * static_cast<double>(augmentation.mean[c])), 0.0, 255.0));
  }
}

Image Augmenter::cropped(const Image& image, std::int64_t index, std::uint64_t seed, std::int64_t epoch) const {
  const Augmentation& a = augmentation_;
  if (a.crop == Crop::middle) return resized_and_cropped(image, a.size, a.crop_pct);
  Random random = random_for(seed, Purpose::crop, epoch, index);
  if (a.crop == Crop::padded) {
    const std::int64_t right = image.width + 2 * a.padding - a.size;
    const std::int64_t down = image.height + 2 * a.padding - a.size;
    if (right < 0 || down < 0)
      throw Error(set_.name(index) + " is an image of " + std::to_string(image.width) + " x " +
                  std::to_string(image.height) + " pixels, from which with " + std::to_string(a.padding) +
                  " more on each side no " + std::to_string(a.size) + " x " + std::to_string(a.size) +
                  " can be cut out");
    const std::int64_t y = augment::below(random, down + 1) - a.padding;
    const std::int64_t x = augment::below(random, right + 1) - a.padding;
    return augment::cut_out(image, {x, y, a.size, a.size}, a.mirrored);
  }
  const augment::BoxRange range{a.area_min, a.area_max, a.aspect_min, a.aspect_max};
  const ImageBox box = a.crop == Crop::inception ? augment::inception_box(image.width, image.height, range, random)
                                                 : augment::resized_crop_box(image.width, image.height, range, random);
  return resized(image, box, a.size, a.size, resampling_of(a.resampling, random));
}

void Augmenter::run(std::int64_t index, std::uint64_t seed, std::int64_t epoch, std::span<float> to) const {
  if (to.size() != values_)
    throw Error("an image has " + std::to_string(values_) + " values, and there is room for " +
                std::to_string(to.size()));
  const Augmentation& a = augmentation_;
  Image image = cropped(set_.image(index), index, seed, epoch);
  if (a.flip > 0 && random_for(seed, Purpose::flip, epoch, index).uniform() < a.flip) augment::flip(image);
  if (a.rand_augment.form != RandAugmentForm::none) {
    Random random = random_for(seed, Purpose::rand_augment, epoch, index);
    for (const augment::Step& step :
         augment::draw_steps(a.rand_augment, image.height, image.width, random, &augment::normal))
      augment::apply(image, a.rand_augment, step, fill_);
  }
  const auto channels = static_cast<std::size_t>(image.channels);
  const std::size_t plane = image.pixels.size() / channels;
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < plane; ++i) to[c * plane + i] = normalised_[c][image.pixels[i * channels + c]];
  if (a.erasing.probability > 0) {
    Random random = random_for(seed, Purpose::erase, epoch, index);
    augment::erase(to, image.channels, a.size, a.erasing, random);
  }
}

}  // namespace sylvit::data

namespace sylvit {

void Augmentation::check() const {
  using data::require_number;
  constexpr double most_pixels = 16384;
  constexpr double least = 1e-6;
  const double infinite = std::numeric_limits<double>::infinity();
  require_number("size", static_cast<double>(size), 1, most_pixels);
  require_number("crop_pct", crop_pct, 0.01, 1);
  require_number("area_max", area_max, least, 1);
  require_number("area_min", area_min, least, area_max);
  require_number("aspect_max", aspect_max, 0.001, 1000);
  require_number("aspect_min", aspect_min, 0.001, aspect_max);
  require_number("padding", static_cast<double>(padding), 0, most_pixels);
  require_number("the probability of a flip", flip, 0, 1);
  require_number("RandAugment's number of operations", static_cast<double>(rand_augment.operations), 0, 100);
  require_number("RandAugment's level", rand_augment.level, 0, 100);
  require_number("RandAugment's translate", rand_augment.translate, 0, most_pixels);
  require_number("RandAugment's cutout", rand_augment.cutout, 0, most_pixels);
  require_number("RandAugment's probability", rand_augment.probability, 0, 1);
  require_number("RandAugment's level_deviation", rand_augment.level_deviation, 0, infinite);
  require_number("RandAugment's level_limit", rand_augment.level_limit, 0, 100);
  require_number("the probability of erasing", erasing.probability, 0, 1);
  require_number("erasing's area_max", erasing.area_max, 0, 1);
  require_number("erasing's area_min", erasing.area_min, 0, erasing.area_max);
  require_number("erasing's aspect_min", erasing.aspect_min, 0.001, 1);
  require_number("erasing's count", static_cast<double>(erasing.count), 1, 100);
  for (const float value : mean) require_number("a mean", static_cast<double>(value), -1e6, 1e6);
  for (const float value : deviation) require_number("a deviation", static_cast<double>(value), least, 1e6);
}

void augment_image(const ImageSet& set, std::int64_t index, const Augmentation& augmentation, std::uint64_t seed,
                   std::int64_t epoch, std::span<float> to) {
  data::Augmenter(set, augmentation).run(index, seed, epoch, to);
}

}  // namespace sylvit
