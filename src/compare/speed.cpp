#include "compare/speed.hpp"

#include <sylvit/training.hpp>

#include "bench/profile.hpp"
#include "compare/accuracy.hpp"
#include "compare/inputs.hpp"
#include "runtime/rehearsal.hpp"

namespace sylvit::compare {

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
  VitParameters parameters;
  DeviceTensors tensors;
  std::optional<Vit> vit = {};
  std::optional<TrainingStep> step = {};
  TensorView images = {}, logits = {}, targets = {};

  Parts(const Device& on, const Model& model, DType dtype, std::int64_t batch, Pass pass)
      : device(on), parameters(parameters_on(on, model, dtype)), tensors(on, "the images and their logits") {
    const VitConfig& config = model.config;
    if (pass == Pass::forward)
      vit.emplace(device, config, VitOptions{.dtype = dtype, .batch = batch, .constant = true});
    else
      step.emplace(device, config, TrainingOptions{.dtype = dtype, .batch = batch});
    images = tensors.random(DType::f32, {batch, config.channels, config.image_height, config.image_width});
    if (step) {
      const std::vector<std::int64_t> labels = synthetic_labels(config, batch);
      targets = tensors.upload(std::as_bytes(std::span(labels)), DType::i64, {batch});
    } else {
      logits = tensors.empty(DType::f32, {batch, config.classes});
    }
  }

  Vit& model() { return step ? step->model() : *vit; }
};

SpeedBench::SpeedBench(const Device& device, const Model& model, DType dtype, std::int64_t largest_batch, Pass pass)
    : parts_(std::make_unique<Parts>(device, model, dtype, largest_batch, pass)) {}
SpeedBench::~SpeedBench() = default;

void SpeedBench::run(std::int64_t batch) {
  Parts& parts = *parts_;
  const auto some = [&](const TensorView& view) { return view.slice(0, 0, batch); };
  if (parts.step)
    parts.step->forward_backward(parts.parameters, some(parts.images), some(parts.targets));
  else
    parts.vit->forward(parts.parameters, some(parts.images), some(parts.logits));
  parts.device.wait();
}

std::vector<VitStep> SpeedBench::observed(std::int64_t batch) {
  std::vector<VitStep> steps;
  parts_->model().observe([&](const VitStep& step) { steps.push_back(step); });
  run(batch);
  parts_->model().observe({});
  return steps;
}

std::size_t bench_bytes(const Device& device, const Model& model, DType dtype, std::int64_t largest_batch, Pass pass) {
  const runtime::Rehearsal rehearsal(device);
  const SpeedBench bench(rehearsal.device(), model, dtype, largest_batch, pass);
  return rehearsal.bytes();
}

// ---- its layers

LayerBench::LayerBench(const Device& profiling, const Model& model, DType dtype, std::int64_t batch) {
  SpeedBench bench(profiling, model, dtype, batch, Pass::forward);
  bench.run(batch);
  constexpr int passes = 3;
  for (int pass = 0; pass < passes; ++pass) passes_.push_back(bench.observed(batch));
}

std::vector<LayerTime> LayerBench::times() const {
  std::vector<LayerTime> layers;
  std::vector<Times> times;
  for (const std::vector<VitStep>& steps : passes_) {
    const std::vector<LayerTotals> totals = layer_totals(steps);
    times.resize(totals.size());
    for (std::size_t i = 0; i < totals.size(); ++i) {
      times[i].add(totals[i].ms);
      if (layers.size() < totals.size())
        layers.push_back({totals[i].kind, totals[i].count, unknown, totals[i].flops, totals[i].bytes});
    }
  }
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i].ms = times[i].median();
  return layers;
}

}  // namespace sylvit::compare
