#include "nn/loss.hpp"

#include "catalogue/kernel.hpp"
#include "kernels/loss.hpp"
#include "nn/tensor_checks.hpp"
#include "tuning/choice.hpp"

namespace sylvit {

namespace {

template <class Label>
void check(std::span<const Label> labels, std::int64_t classes) {
  for (std::size_t image = 0; image < labels.size(); ++image)
    if (labels[image] < 0 || labels[image] >= classes)
      throw Error("image " + std::to_string(image) + " of the batch has the label " + std::to_string(labels[image]) +
                  ", and the classes are 0 to " + std::to_string(classes - 1));
}

}  // namespace

void check_labels(std::span<const std::int64_t> labels, std::int64_t classes) { check(labels, classes); }
void check_labels(std::span<const std::int32_t> labels, std::int64_t classes) { check(labels, classes); }

namespace nn {

void require_targets(const TensorView& targets, const Shape& logits) {
  const bool soft = targets.dtype() == DType::f32;
  const bool labels = targets.dtype() == DType::i64 || targets.dtype() == DType::i32;
  if ((soft || labels) && targets.shape() == (soft ? logits : Shape{logits[0]}) && targets.is_dense()) return;
  throw Error("cross_entropy: the targets of logits " + logits.text() +
              " must be dense labels, i64 or i32 [batch], or dense f32 [batch, classes], and are " +
              described(targets));
}

sycl::event cross_entropy(const Device& device, const TensorView& logits, const TensorView& targets,
                          const TensorView& losses, const TensorView& mean, const TensorView& logits_gradient,
                          const LossOptions& options, float gradient_scale, Events after, const LossCounts& counts) {
  constexpr const char* operation = "cross_entropy";
  require_storage(logits, 2, operation, "logits");
  const std::int64_t batch = logits.extent(0);
  const std::int64_t classes = logits.extent(1);
  constexpr std::int64_t most_classes = 1 << 24;  // whose numbers are exact in f32
  if (classes > most_classes)
    throw Error("cross_entropy: " + std::to_string(classes) + " classes are more than " + std::to_string(most_classes));
  if (batch < 1 || classes < 1) throw Error("cross_entropy: there are no logits: " + described(logits));
  if (!(options.smoothing >= 0.0F && options.smoothing <= 1.0F))
    throw Error("cross_entropy: the label smoothing is " + std::to_string(options.smoothing) + ", and must be 0 to 1");
  require_targets(targets, logits.shape());
  require_dense(losses, DType::f32, {batch}, operation, "losses");
  require_dense(mean, DType::f32, {1}, operation, "mean loss");
  const DType type = logits_gradient ? logits_gradient.dtype() : logits.dtype();
  if (logits_gradient) {
    require_storage(logits_gradient, 2, operation, "gradient of the logits");
    if (logits.dtype() != DType::f32 && type != logits.dtype())
      throw Error("cross_entropy: the gradient of " + described(logits) + " logits cannot be " +
                  std::string(name_of(type)));
    require_dense(logits_gradient, type, {batch, classes}, operation, "gradient of the logits");
  }
  require_apart(losses, {logits, targets, mean, logits_gradient}, operation, "losses");
  require_apart(mean, {logits, targets, logits_gradient}, operation, "mean loss");
  require_apart(logits_gradient, {logits, targets}, operation, "gradient of the logits");
  if (counts.images < 0) throw Error("cross_entropy: a mean over " + std::to_string(counts.images) + " images");
  if (counts.right) require_dense(counts.right, DType::f32, {batch}, operation, "count of right images");
  require_apart(counts.right, {logits, targets, losses, mean, logits_gradient, counts.sums}, operation,
                "count of right images");
  if (counts.sums) {
    if (!counts.right) throw Error("cross_entropy: sums want a count of right images");
    require_dense(counts.sums, DType::f32, {2}, operation, "sums");
  }
  require_apart(counts.sums, {logits, targets, losses, mean, logits_gradient}, operation, "sums");
  const std::int64_t images = counts.images > 0 ? counts.images : batch;
  const auto config = tuning::config_for<kernels::LossConfig>(tuning::table_for(device));
  const auto kernel = options.loss == Loss::softmax
                          ? catalogue::kernel<kernels::SoftmaxCrossEntropyKernel>(config, logits.dtype(), type)
                          : catalogue::kernel<kernels::SigmoidCrossEntropyKernel>(config, logits.dtype(), type);
  const sycl::event each = launch(device, kernel, {1, 1, static_cast<std::size_t>(batch)},
                                  {.logits = logits.data(),
                                   .labels64 = targets.dtype() == DType::i64 ? targets.as<std::int64_t>() : nullptr,
                                   .labels32 = targets.dtype() == DType::i32 ? targets.as<std::int32_t>() : nullptr,
                                   .soft = targets.dtype() == DType::f32 ? targets.as<float>() : nullptr,
                                   .losses = losses.as<float>(),
                                   .right = counts.right.as<float>(),
                                   .gradient = logits_gradient.data(),
                                   .classes = narrow(classes, operation, "number of classes"),
                                   .smoothing = options.smoothing,
                                   .gradient_factor = gradient_scale / static_cast<float>(images)},
                                  after);
  return launch(device, catalogue::kernel<kernels::LossMeanKernel>(config), {1, 1, 1},
                {.losses = losses.as<float>(),
                 .right = counts.right.as<float>(),
                 .mean = mean.as<float>(),
                 .sums = counts.sums.as<float>(),
                 .batch = narrow(batch, operation, "batch")},
                std::span(&each, 1));
}

}  // namespace nn

}  // namespace sylvit
