// Cross-entropy losses and their gradients.
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/tensor.hpp>
#include <sylvit/training.hpp>

#include <span>

#include "nn/basic.hpp"

namespace sylvit::nn {

/// What else is wanted of a loss. Empty views are not wanted.
struct LossCounts {
  std::int64_t images = 0;  ///< the gradient is that of the sum over the batch divided by this; 0: of the mean
  TensorView right = {};    ///< f32 [batch]: 1 where the largest logit is the label's, or that of a largest target
  TensorView sums = {};     ///< f32 [2]: of the losses, and of `right`, which it wants
};

/// logits: T [batch, classes]. targets: labels, i64 or i32 [batch], or soft targets, f32 [batch, classes]. Writes each
/// image's loss, f32 [batch], their mean, f32 [1], and, unless it is empty, the gradient of the mean, [batch, classes]
/// in the logits' type or, for f32 logits, any storage type. `gradient_scale` is a loss scale: the gradient, not the
/// loss, is multiplied with it. A label that is no class makes NaN; see check_labels.
sycl::event cross_entropy(const Device& device, const TensorView& logits, const TensorView& targets,
                          const TensorView& losses, const TensorView& mean, const TensorView& logits_gradient,
                          const LossOptions& options = {}, float gradient_scale = 1.0F, Events after = {},
                          const LossCounts& counts = {});

/// Throws Error unless these are targets of logits of that shape.
void require_targets(const TensorView& targets, const Shape& logits);

}  // namespace sylvit::nn
