#include "nn/loss.hpp"

#include "nn/tensor_checks.hpp"
#include "nn/training_kernels.hpp"

namespace sylvit::nn {

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

sycl::event cross_entropy(const Device& device, const TensorView& logits, const TensorView& targets,
                          const TensorView& losses, const TensorView& mean, const TensorView& logits_gradient,
                          const LossOptions& options, Events after) {
  constexpr const char* operation = "cross_entropy";
  require_storage(logits, 2, operation, "logits");
  const std::int64_t batch = logits.extent(0);
  const std::int64_t classes = logits.extent(1);
  if (batch < 1 || classes < 1) throw Error("cross_entropy: there are no logits: " + described(logits));
  if (!(options.smoothing >= 0.0F && options.smoothing <= 1.0F))
    throw Error("cross_entropy: the label smoothing is " + std::to_string(options.smoothing) + ", and must be 0 to 1");
  const bool soft = targets.dtype() == DType::f32;
  const bool labels = targets.dtype() == DType::i64 || targets.dtype() == DType::i32;
  const Shape expected = soft ? Shape{batch, classes} : Shape{batch};
  if (!(soft || labels) || targets.shape() != expected || !targets.is_dense())
    throw Error("cross_entropy: the targets of " + described(logits) +
                " must be dense labels, i64 or i32 [batch], or dense f32 [batch, classes], and are " +
                described(targets));
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
  const auto config = loss_config(tuning::table_for(device));
  const runtime::Grid grid{.groups = {1, 1, static_cast<std::size_t>(batch)},
                           .work_items = static_cast<std::size_t>(config.lanes),
                           .local_floats = static_cast<std::size_t>(config.local_floats())};
  const sycl::event each =
      launch(device, cross_entropy_kernel(options.loss == Loss::softmax, logits.dtype(), type, config), grid,
             {.logits = logits.data(),
              .labels64 = targets.dtype() == DType::i64 ? targets.as<std::int64_t>() : nullptr,
              .labels32 = targets.dtype() == DType::i32 ? targets.as<std::int32_t>() : nullptr,
              .soft = soft ? targets.as<float>() : nullptr,
              .losses = losses.as<float>(),
              .gradient = logits_gradient.data(),
              .classes = narrow(classes, operation, "number of classes"),
              .smoothing = options.smoothing,
              .gradient_factor = options.gradient_scale / static_cast<float>(batch)},
             after);
  return launch(device, loss_mean_kernel(config), {.work_items = grid.work_items, .local_floats = grid.local_floats},
                {.losses = losses.as<float>(), .mean = mean.as<float>(), .batch = narrow(batch, operation, "batch")},
                std::span(&each, 1));
}

}  // namespace sylvit::nn
