// RandAugment: some operations, drawn from a list, each as strong as a level says.
#pragma once

#include <sylvit/data.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

#include "augment/affine.hpp"
#include "augment/boxes.hpp"

namespace sylvit::augment {

enum class Operation : std::uint8_t {
  autocontrast,
  equalize,
  invert,
  rotate,
  posterize,
  solarize,
  solarize_add,
  color,
  contrast,
  brightness,
  sharpness,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  cutout
};
/// timm has all but the last.
inline constexpr std::int64_t operations = 16;

/// An operation with all that was drawn for it.
struct Step {
  Operation operation = Operation::invert;
  double level = 0;
  bool negative = false;                         ///< of operations with a direction
  Resampling resampling = Resampling::bilinear;  ///< of timm's geometric ones
  std::int64_t x = 0;                            ///< of cutout: the middle
  std::int64_t y = 0;                            ///< of cutout
};

/// What a level means to an operation: degrees, bits, a factor, … Pixels of translations in the width or height `size`.
double argument_of(const RandAugment& options, const Step& step, std::int64_t size);

/// The image after the step. `fill` is what timm puts where there was no image; big_vision has 128.
void apply(Image& image, const RandAugment& options, const Step& step, const Fill& fill);

/// All steps for an image.
template <class Draws>
std::vector<Step> draw_steps(const RandAugment& options, std::int64_t height, std::int64_t width, Draws& draws,
                             double (*normal)(Draws&)) {
  std::vector<Step> steps;
  for (std::int64_t i = 0; i < options.operations; ++i) {
    const bool timm = options.form == RandAugmentForm::timm;
    Step step{.operation = static_cast<Operation>(below(draws, timm ? operations - 1 : operations)),
              .level = options.level};
    if (timm) {
      if (draws.uniform() >= options.probability) continue;
      if (std::isinf(options.level_deviation))
        step.level *= draws.uniform();
      else if (options.level_deviation > 0)
        step.level += options.level_deviation * normal(draws);
      step.level = std::clamp(step.level, 0.0, options.level_limit);
      step.resampling = draws.uniform() < 0.5 ? Resampling::bilinear : Resampling::bicubic;
    }
    step.negative = draws.uniform() < 0.5;
    if (step.operation == Operation::cutout) {
      step.y = below(draws, height);
      step.x = below(draws, width);
    }
    steps.push_back(step);
  }
  return steps;
}

}  // namespace sylvit::augment
