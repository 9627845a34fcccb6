// Cross-entropy losses and their gradients.
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/tensor.hpp>

#include <cstdint>
#include <span>

namespace sylvit::nn {

using Events = std::span<const sycl::event>;

enum class Loss : std::uint8_t {
  softmax,  ///< PyTorch's cross_entropy
  sigmoid   ///< one binary cross-entropy for each class, added up
};

struct LossOptions {
  Loss loss = Loss::softmax;
  float smoothing = 0.0F;       ///< s: targets become (1 - s) t + s / classes
  float gradient_scale = 1.0F;  ///< a loss scale: the gradient, not the loss, is multiplied with it
};

/// A fixed gradient_scale for one pass: a power of two that keeps f16 gradients away from the smallest numbers.
constexpr float loss_scale(DType dtype) { return dtype == DType::f16 ? 1024.0F : 1.0F; }

/// logits: T [batch, classes]. targets: labels, i64 or i32 [batch], or soft targets, f32 [batch, classes]. Writes each
/// image's loss, f32 [batch], their mean, f32 [1], and, unless it is empty, the gradient of the mean, [batch, classes]
/// in the logits' type or, for f32 logits, any storage type. A label that is no class makes NaN; see check_labels.
sycl::event cross_entropy(const Device& device, const TensorView& logits, const TensorView& targets,
                          const TensorView& losses, const TensorView& mean, const TensorView& logits_gradient,
                          const LossOptions& options = {}, Events after = {});

/// Throws Error naming the first image whose label is not 0 to classes - 1. Labels in host memory.
void check_labels(std::span<const std::int64_t> labels, std::int64_t classes);
void check_labels(std::span<const std::int32_t> labels, std::int64_t classes);

}  // namespace sylvit::nn
