#include "compare/speed.hpp"

#include <sylvit/gemm.hpp>
#include <sylvit/training.hpp>

#include <algorithm>

#include "bench/profile.hpp"
#include "compare/accuracy.hpp"
#include "compare/inputs.hpp"
#include "runtime/recording.hpp"
#include "runtime/rehearsal.hpp"

namespace sylvit::compare {

// ---- a device's yardsticks

Yardsticks::Yardsticks(const Device& device, const std::vector<DType>& dtypes) : bandwidth_(device) {
  for (const DType dtype : dtypes) compute_.try_emplace(dtype, device, dtype);
}

void Yardsticks::measure() {
  for (auto& [dtype, yardstick] : compute_) yardstick.measure();
  bandwidth_.measure();
}

void Yardsticks::write_to(DeviceReport& report) const {
  for (const auto& [dtype, yardstick] : compute_)
    report.yardsticks.push_back({std::string(name_of(dtype)), yardstick.gflops(), yardstick.provider()});
  report.bandwidth_gbs = bandwidth_.gbytes_per_s();
}

// ---- a model

namespace {

/// Who computed a step: another library, or the library's own kernels.
std::string engine_of(const std::vector<runtime::Submission>& submissions) {
  std::string functors;
  for (const runtime::Submission& one : submissions) {
    if (one.functor.empty()) return one.name;
    if (one.record == "gemm") return std::string(name_of(GemmProvider::builtin));
    functors += (functors.empty() ? "" : " + ") + one.functor;
  }
  return functors;
}

/// Steps of one kind by one engine are one entry, with all that was submitted for any of them.
void add_engine(std::vector<EngineUse>& engines, Pass pass, const std::string& layer,
                const std::vector<runtime::Submission>& submissions) {
  const std::string engine = engine_of(submissions);
  auto use = std::ranges::find_if(
      engines, [&](const EngineUse& other) { return other.layer == layer && other.engine == engine; });
  if (use == engines.end()) use = engines.insert(engines.end(), {pass, layer, engine, {}});
  for (const runtime::Submission& one : submissions)
    if (std::ranges::find(use->kernels, one.name) == use->kernels.end()) use->kernels.push_back(one.name);
}

}  // namespace

struct SpeedBench::Parts {
  runtime::Recording recording;
  Device device;
  Pass pass;
  VitParameters parameters;
  DeviceTensors tensors;
  std::optional<Vit> vit = {};
  std::optional<TrainingStep> step = {};
  TensorView images = {}, logits = {}, targets = {};

  Parts(const Device& on, const Model& model, DType dtype, std::int64_t batch, Pass of_pass)
      : recording(on),
        device(recording.device()),
        pass(of_pass),
        parameters(parameters_on(device, model, dtype)),
        tensors(device, "the images and their logits") {
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

Observed SpeedBench::observed(std::int64_t batch) {
  Observed seen;
  Parts& parts = *parts_;
  parts.recording.begin();
  parts.model().observe([&](const VitStep& step) {
    // Of the steps without products, the first of the backward pass also has what computed the loss.
    const std::vector<runtime::Submission> submissions = parts.recording.take();
    if (step.flops > 0) add_engine(seen.engines, parts.pass, layer_kind(step.name), submissions);
    seen.steps.push_back(step);
  });
  run(batch);
  parts.model().observe({});
  parts.recording.end();
  return seen;
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
  for (int pass = 0; pass < passes; ++pass) passes_.push_back(bench.observed(batch).steps);
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
