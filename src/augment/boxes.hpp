// Random rectangles: of an image that becomes the whole, and of one that is erased or exchanged. Each repeats the
// arithmetic of the library named; `Draws` has uniform(), in [0, 1), and below(count), so that tests can hand it
// numbers that were drawn there.
#pragma once

#include <sylvit/images.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace sylvit::augment {

/// The share of the area and the ratio of width to height that a box may have.
struct BoxRange {
  double area_min;
  double area_max;
  double aspect_min;
  double aspect_max;
};

/// Python's round(), of numbers that are not negative.
inline std::int64_t rounded(double value) { return std::llrint(value); }

template <class Draws>
std::int64_t below(Draws& draws, std::int64_t count) {
  return static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(count)));
}

/// One try of TensorFlow's sample_distorted_bounding_box (GenerateRandomCrop), in its float arithmetic. The height is
/// uniform between those of the smallest and the largest area.
template <class Draws>
std::optional<ImageBox> try_inception_box(std::int64_t width, std::int64_t height, const BoxRange& range, float aspect,
                                          Draws& draws) {
  const auto round_f = [](float value) { return static_cast<std::int64_t>(std::lrintf(value)); };
  const auto share = [&](double area) {
    return static_cast<float>(area) * static_cast<float>(width) * static_cast<float>(height);
  };
  const float min_area = share(range.area_min);
  const float max_area = share(range.area_max);
  std::int64_t box_height = round_f(std::sqrt(min_area / aspect));
  std::int64_t most = round_f(std::sqrt(max_area / aspect));
  if (round_f(static_cast<float>(most) * aspect) > width) {
    constexpr float small = 0.0000001F;
    most = static_cast<std::int64_t>((static_cast<double>(width) + 0.5 - static_cast<double>(small)) /
                                     static_cast<double>(aspect));
    if (round_f(static_cast<float>(most) * aspect) > width) --most;
  }
  most = std::min(most, height);
  box_height = std::min(box_height, most);
  if (box_height < most) box_height += below(draws, most - box_height + 1);
  const auto width_of = [&](std::int64_t h) { return round_f(static_cast<float>(h) * aspect); };
  const auto area_of = [&](std::int64_t h) { return static_cast<float>(width_of(h) * h); };
  if (area_of(box_height) < min_area) ++box_height;
  if (area_of(box_height) > max_area) --box_height;
  const std::int64_t box_width = width_of(box_height);
  const float area = area_of(box_height);
  if (area < min_area || area > max_area || box_width > width || box_height > height || box_width <= 0 ||
      box_height <= 0)
    return std::nullopt;
  ImageBox box{0, 0, box_width, box_height};
  if (box.height < height) box.y = below(draws, height - box.height);
  if (box.width < width) box.x = below(draws, width - box.width);
  return box;
}

/// BigVision's inception_crop.
template <class Draws>
ImageBox inception_box(std::int64_t width, std::int64_t height, const BoxRange& range, Draws& draws) {
  const auto least = static_cast<float>(range.aspect_min);
  const auto most = static_cast<float>(range.aspect_max);
  for (int attempt = 0; attempt < 100; ++attempt) {
    const float aspect = static_cast<float>(draws.uniform()) * (most - least) + least;
    if (const auto box = try_inception_box(width, height, range, aspect, draws)) return *box;
  }
  return {0, 0, width, height};
}

/// torchvision's and timm's RandomResizedCrop.
template <class Draws>
ImageBox resized_crop_box(std::int64_t width, std::int64_t height, const BoxRange& range, Draws& draws) {
  const auto area = static_cast<double>(width * height);
  const double log_min = std::log(range.aspect_min);
  const double log_max = std::log(range.aspect_max);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = (range.area_min + (range.area_max - range.area_min) * draws.uniform()) * area;
    const double aspect = std::exp(log_min + (log_max - log_min) * draws.uniform());
    ImageBox box{0, 0, rounded(std::sqrt(target * aspect)), rounded(std::sqrt(target / aspect))};
    if (box.width < 1 || box.height < 1 || box.width > width || box.height > height) continue;
    box.y = below(draws, height - box.height + 1);
    box.x = below(draws, width - box.width + 1);
    return box;
  }
  // The middle, of an aspect that is allowed.
  ImageBox box{0, 0, width, height};
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  if (ratio < range.aspect_min)
    box.height = std::max<std::int64_t>(1, rounded(static_cast<double>(width) / range.aspect_min));
  else if (ratio > range.aspect_max)
    box.width = std::max<std::int64_t>(1, rounded(static_cast<double>(height) * range.aspect_max));
  box.x = (width - box.width) / 2;
  box.y = (height - box.height) / 2;
  return box;
}

/// The box of timm's random erasing, if ten tries find one.
template <class Draws>
std::optional<ImageBox> erased_box(std::int64_t width, std::int64_t height, const BoxRange& range, std::int64_t count,
                                   Draws& draws) {
  const auto area = static_cast<double>(width * height);
  const double log_min = std::log(range.aspect_min);
  const double log_max = std::log(range.aspect_max);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target =
        (range.area_min + (range.area_max - range.area_min) * draws.uniform()) * area / static_cast<double>(count);
    // There it is the height over the width.
    const double aspect = std::exp(log_min + (log_max - log_min) * draws.uniform());
    ImageBox box{0, 0, rounded(std::sqrt(target / aspect)), rounded(std::sqrt(target * aspect))};
    if (box.width >= width || box.height >= height) continue;
    box.y = below(draws, height - box.height + 1);
    box.x = below(draws, width - box.width + 1);
    return box;
  }
  return std::nullopt;
}

/// The box of cutmix, by rand_bbox of timm 1.0.30 (older ones lose a pixel of odd sides): `share` of the image stays.
template <class Draws>
ImageBox cutmix_box(std::int64_t width, std::int64_t height, double share, Draws& draws) {
  const double ratio = std::sqrt(1 - share);
  const auto cut_height = static_cast<std::int64_t>(static_cast<double>(height) * ratio);
  const auto cut_width = static_cast<std::int64_t>(static_cast<double>(width) * ratio);
  const std::int64_t y = below(draws, height);
  const std::int64_t x = below(draws, width);
  const std::int64_t top = std::max<std::int64_t>(0, y - cut_height / 2);
  const std::int64_t left = std::max<std::int64_t>(0, x - cut_width / 2);
  return {left, top, std::min(width, x + (cut_width + 1) / 2) - left, std::min(height, y + (cut_height + 1) / 2) - top};
}

}  // namespace sylvit::augment
