// An image of a set as a model takes it.
#pragma once

#include <sylvit/data.hpp>

#include <array>
#include <vector>

#include "augment/affine.hpp"

namespace sylvit::data {

/// What random numbers are for; each use has its own, so that one option does not change what another draws.
enum class Purpose : std::uint8_t { order = 1, crop, flip, rand_augment, erase, mix };

class Augmenter {
 public:
  Augmenter(const ImageSet& set, const Augmentation& augmentation);

  /// Values of a result.
  std::size_t values() const { return values_; }
  void run(std::int64_t index, std::uint64_t seed, std::int64_t epoch, std::span<float> to) const;

 private:
  Image cropped(const Image& image, std::int64_t index, std::uint64_t seed, std::int64_t epoch) const;

  ImageSet set_;
  Augmentation augmentation_;
  std::size_t values_ = 0;
  std::vector<std::array<float, 256>> normalised_;  // of each channel
  augment::Fill fill_{};                            // the mean, as bytes
};

}  // namespace sylvit::data
