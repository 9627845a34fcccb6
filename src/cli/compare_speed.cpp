#include "cli/compare_speed.hpp"

#include <algorithm>

#include "cli/compare_accuracy.hpp"
#include "cli/compare_inputs.hpp"
#include "cli/vit_profile.hpp"
#include "nn/loss.hpp"

namespace sylvit::cli::compare {

namespace {

VitOptions options_of(DType dtype, std::int64_t batch, bool backward) {
  return {.dtype = dtype, .batch = batch, .use = backward ? VitUse::training : VitUse::inference, .constant = true};
}

Shape image_shape(const VitConfig& config, std::int64_t batch) {
  return {batch, config.channels, config.image_height, config.image_width};
}

std::size_t parameter_bytes(const VitConfig& config) {
  std::size_t bytes = 0;
  for (const VitParameter& parameter : vit_parameters(config))
    bytes += static_cast<std::size_t>(parameter.shape.elements()) * sizeof(float);
  return bytes;
}

}  // namespace

// ---- a device's limits

Ceilings::Ceilings(const Device& device, const std::vector<DType>& dtypes) : bandwidth_(device) {
  for (const DType dtype : dtypes) compute_.try_emplace(dtype, device, dtype);
}

void Ceilings::measure() {
  for (auto& [dtype, ceiling] : compute_) ceiling.measure();
  bandwidth_.measure();
}

void Ceilings::write_to(DeviceReport& report) const {
  for (const auto& [dtype, ceiling] : compute_)
    report.ceilings.push_back({std::string(name_of(dtype)), ceiling.gflops(), ceiling.provider()});
  report.bandwidth_gbs = bandwidth_.gbytes_per_s();
}

// ---- a model

struct SpeedBench::Parts {
  Device device;
  VitConfig config;
  DType dtype;
  VitParameters parameters;
  Vit vit;
  DeviceTensors tensors;
  TensorView images, logits;
  // For backward passes.
  std::optional<VitBuffer> gradients = {};
  TensorView targets = {}, losses = {}, mean = {}, logits_gradient = {};

  Parts(const Variant& variant, std::int64_t batch, bool backward)
      : device(variant.device),
        config(variant.model->config),
        dtype(variant.dtype),
        parameters(parameters_on(device, *variant.model, dtype)),
        vit(device, config, options_of(dtype, batch, backward)),
        tensors(device, "the images and their logits"),
        images(tensors.random(DType::f32, image_shape(config, batch))),
        logits(tensors.empty(DType::f32, {batch, config.classes})) {
    if (!backward) return;
    gradients.emplace(device, config, "the gradients");
    const std::vector<std::int64_t> labels = synthetic_labels(config, batch);
    targets = tensors.upload(std::as_bytes(std::span(labels)), DType::i64, {batch});
    losses = tensors.empty(DType::f32, {batch});
    mean = tensors.empty(DType::f32, {1});
    logits_gradient = tensors.empty(dtype, {batch, config.classes});
  }
};

SpeedBench::SpeedBench(const Variant& variant, std::int64_t largest_batch, bool backward)
    : parts_(std::make_unique<Parts>(variant, largest_batch, backward)) {}
SpeedBench::~SpeedBench() = default;

void SpeedBench::run(std::int64_t batch) {
  Parts& parts = *parts_;
  const auto some = [&](const TensorView& view) { return view.slice(0, 0, batch); };
  parts.vit.forward(parts.parameters, some(parts.images), some(parts.logits));
  if (parts.gradients) {
    nn::cross_entropy(parts.device, some(parts.logits), some(parts.targets), some(parts.losses), parts.mean,
                      some(parts.logits_gradient), {.gradient_scale = nn::loss_scale(parts.dtype)});
    parts.vit.backward(parts.parameters, some(parts.images), some(parts.logits_gradient), *parts.gradients);
  }
  parts.device.wait();
}

double SpeedBench::observed_bytes(std::int64_t batch) {
  double bytes = 0;
  parts_->vit.observe([&](const VitStep& step) { bytes += step.bytes; });
  run(batch);
  parts_->vit.observe({});
  return bytes;
}

std::int64_t SpeedBench::peak_bytes(std::int64_t batch) const {
  const Parts& parts = *parts_;
  std::size_t bytes =
      activation_bytes(parts.device, parts.config, options_of(parts.dtype, batch, parts.gradients.has_value()));
  bytes += parts.parameters.values().flat().span_bytes() + parts.parameters.copy().span_bytes();
  bytes += parts.images.slice(0, 0, batch).span_bytes() + parts.logits.slice(0, 0, batch).span_bytes();
  if (parts.gradients) bytes += parts.gradients->flat().span_bytes();
  return static_cast<std::int64_t>(bytes);
}

std::size_t planned_bytes(const Variant& variant, std::int64_t largest_batch, bool backward) {
  const VitConfig& config = variant.model->config;
  return activation_bytes(variant.device, config, options_of(variant.dtype, largest_batch, backward)) +
         parameter_bytes(config) * (backward ? 3 : 2) +
         static_cast<std::size_t>(image_shape(config, largest_batch).elements()) * sizeof(float);
}

// ---- its layers

std::vector<LayerTime> layer_times(const Device& profiling, const Model& model, DType dtype, std::int64_t batch) {
  const VitConfig& config = model.config;
  const VitParameters parameters = parameters_on(profiling, model, dtype);
  Vit vit(profiling, config, options_of(dtype, batch, false));
  DeviceTensors tensors(profiling, "the images and their logits");
  const TensorView images = tensors.random(DType::f32, image_shape(config, batch));
  const TensorView logits = tensors.empty(DType::f32, {batch, config.classes});
  vit.forward(parameters, images, logits);
  profiling.wait();
  constexpr int passes = 3;
  std::vector<LayerTime> layers;
  std::vector<Times> times;
  for (int pass = 0; pass < passes; ++pass) {
    std::vector<VitStep> steps;
    vit.observe([&](const VitStep& step) { steps.push_back(step); });
    vit.forward(parameters, images, logits);
    profiling.wait();
    const std::vector<LayerTotals> totals = layer_totals(steps);
    times.resize(totals.size());
    for (std::size_t i = 0; i < totals.size(); ++i) {
      times[i].add(totals[i].ms);
      if (pass == 0) layers.push_back({totals[i].kind, totals[i].count, unknown, totals[i].flops, totals[i].bytes});
    }
  }
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i].ms = times[i].median();
  return layers;
}

}  // namespace sylvit::cli::compare
