#include "compare/gradients.hpp"

#include <sylvit/training.hpp>

#include <cmath>
#include <fmt/core.h>

#include "bench/device_tensors.hpp"
#include "compare/accuracy.hpp"
#include "compare/inputs.hpp"
#include "report/errors.hpp"
#include "vit/init.hpp"

namespace sylvit::compare {

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
  tiny.values = vit::initial_parameters(config, 1);
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

reference::VitGradients reference_gradients(const Model& model) {
  reference::VitLoss loss;
  loss.labels.assign(model.labels.begin(), model.labels.begin() + model.judged);
  return reference::vit_backward(model.config, exact_parameters(model),
                                 {model.images.begin(), model.images.begin() + model.judged * model.image_values()},
                                 loss);
}

DeviceGradients gradients_of(const Device& device, const Model& model, DType dtype) {
  const VitConfig& config = model.config;
  const VitParameters parameters = parameters_on(device, model, dtype);
  TrainingStep step(device, config, {.dtype = dtype, .batch = model.judged});
  DeviceTensors tensors(device, "the images and their logits");
  const std::span<const float> pixels =
      std::span(model.images).first(static_cast<std::size_t>(model.judged * model.image_values()));
  const TensorView images = tensors.upload(std::as_bytes(pixels), DType::f32,
                                           {model.judged, config.channels, config.image_height, config.image_width});
  const TensorView targets = tensors.upload(
      std::as_bytes(std::span(model.labels).first(static_cast<std::size_t>(model.judged))), DType::i64, {model.judged});
  step.forward_backward(parameters, images, targets);
  DeviceGradients result;
  result.loss = static_cast<double>(tensors.download(step.mean_loss()).front());
  for (const VitParameter& parameter : step.gradients().parameters())
    result.parameters.emplace_back(parameter.name, step.wait_and_read_gradient(parameter.name));
  return result;
}

Gradients gradient_errors(const Model& model, const DeviceGradients& got, const reference::VitGradients& expected) {
  Gradients result;
  result.model = model.report.label;
  result.loss = got.loss;
  result.reference_loss = expected.loss;
  for (const auto& [name, values] : got.parameters)
    result.parameters.push_back(
        {name, errors_of(std::span<const float>(values), std::span<const double>(expected.gradients.at(name)))});
  return result;
}

}  // namespace sylvit::compare
