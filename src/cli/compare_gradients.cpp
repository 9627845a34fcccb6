#include "cli/compare_gradients.hpp"

#include <cmath>
#include <fmt/core.h>

#include "cli/compare_accuracy.hpp"
#include "cli/compare_errors.hpp"
#include "cli/compare_inputs.hpp"
#include "cli/device_tensors.hpp"
#include "nn/loss.hpp"
#include "nn/vit_init.hpp"

namespace sylvit::cli::compare {

Model tiny_like(const Model& model) {
  Model tiny;
  VitConfig& config = tiny.config = model.config;
  config.width = 2 * model.config.head_size();
  config.heads = 2;
  config.depth = 2;
  config.mlp = 3 * config.width;
  config.patch = 8;
  config.image_height = config.image_width = 40;
  config.classes = 10;
  const std::vector<VitParameter> parameters = vit_parameters(config);
  tiny.values = nn::initial_parameters(config, 1);
  // The initial weights of a layer this narrow are so small that hardly anything but the residual path would be tested.
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].shape.rank() == 2) {
      const float factor = 50.0F / std::sqrt(static_cast<float>(parameters[i].shape[1]));
      for (float& value : tiny.values[i]) value *= factor;
    }
  tiny.judged = 3;
  tiny.images = synthetic_images(config, tiny.judged);
  tiny.labels = synthetic_labels(config, tiny.judged);
  tiny.report.label =
      fmt::format("a small one of width {}, depth {}, {} tokens", config.width, config.depth, config.tokens());
  return tiny;
}

reference::VitGradients judge_gradients(const Model& model) {
  reference::VitLoss loss;
  loss.labels.assign(model.labels.begin(), model.labels.begin() + model.judged);
  return reference::vit_backward(model.config, exact_parameters(model),
                                 {model.images.begin(), model.images.begin() + model.judged * model.image_values()},
                                 loss);
}

Gradients gradients_of(const Device& device, const Model& model, DType dtype, const reference::VitGradients& judge) {
  const VitConfig& config = model.config;
  const VitParameters parameters = parameters_on(device, model, dtype);
  Vit vit(device, config, {.dtype = dtype, .batch = model.judged, .use = VitUse::training});
  const VitBuffer gradients(device, config, "the gradients");
  DeviceTensors tensors(device, "the images and their logits");
  const std::span<const float> pixels =
      std::span(model.images).first(static_cast<std::size_t>(model.judged * model.image_values()));
  const TensorView images = tensors.upload(std::as_bytes(pixels), DType::f32,
                                           {model.judged, config.channels, config.image_height, config.image_width});
  const TensorView targets = tensors.upload(
      std::as_bytes(std::span(model.labels).first(static_cast<std::size_t>(model.judged))), DType::i64, {model.judged});
  const TensorView logits = tensors.empty(DType::f32, {model.judged, config.classes});
  const TensorView logits_gradient = tensors.empty(dtype, logits.shape());
  const TensorView losses = tensors.empty(DType::f32, {model.judged});
  const TensorView mean = tensors.empty(DType::f32, {1});
  const float scale = nn::loss_scale(dtype);
  vit.forward(parameters, images, logits);
  nn::cross_entropy(device, logits, targets, losses, mean, logits_gradient, {.gradient_scale = scale});
  vit.backward(parameters, images, logits_gradient, gradients);

  Gradients result;
  result.model = model.report.label;
  result.loss = static_cast<double>(tensors.download(mean).front());
  result.reference_loss = judge.loss;
  for (const VitParameter& parameter : gradients.parameters()) {
    std::vector<float> values = gradients.read(parameter.name);
    for (float& value : values) value /= scale;
    result.parameters.push_back(
        {parameter.name,
         errors_of(std::span<const float>(values), std::span<const double>(judge.gradients.at(parameter.name)))});
  }
  return result;
}

}  // namespace sylvit::cli::compare
