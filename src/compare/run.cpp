// The order of a comparison: per model the reference, then each device's outputs, gradients and layers; then the
// speeds, interleaved. What fails is noted, and the rest goes on. The same code also counts the stages, and goes over a
// device's work in a rehearsal, so that its kernels can be built in one batch.
#include <sylvit/error.hpp>

#include <algorithm>
#include <fmt/core.h>

#include "compare/accuracy.hpp"
#include "compare/gradients.hpp"
#include "compare/host.hpp"
#include "compare/speed.hpp"
#include "report/errors.hpp"
#include "report/summary.hpp"
#include "runtime/rehearsal.hpp"

namespace sylvit::compare {

namespace {

/// How a comparison is gone over.
enum class Way : std::uint8_t {
  measure,   ///< for its report
  rehearse,  ///< on a rehearsal's device: kernels are wanted, and nothing is checked
  count      ///< without devices: for the number of its stages
};

/// A model in a type on a device, and where its result goes.
struct Variant {
  std::optional<Device> device;  ///< none while counting
  std::size_t device_position;
  const Model* model;
  DType dtype;
  Result* result;
};

class Comparison {
 public:
  Comparison(const Request& request, Way way) : request_(request), way_(way) {
    run_.batch = request.batch;
    for (const Model& model : request.models) run_.models.push_back(model.report);
  }

  Report run() {
    run_.seconds = milliseconds([&] {
                     open_devices();
                     compare();
                   }) /
                   1000;
    Report report;
    report.runs.push_back(std::move(run_));
    report.pairs = std::move(pairs_);
    return report;
  }

  /// The number of stages, if nothing fails.
  std::size_t stages() {
    open_devices();
    compare();
    return stages_;
  }

  /// Goes over all that one device does.
  void rehearse(const Device& device) {
    add_device(device.info());
    devices_.back() = device;
    add_variants();
    compare();
  }

 private:
  /// Says that a stage begins.
  void begin(const Stage& stage) {
    ++stages_;
    if (way_ == Way::measure) request_.at_stage(stage);
  }

  void add_device(const DeviceInfo& info) {
    run_.devices.push_back(device_report(info));
    device_infos_.push_back(info);
    devices_.emplace_back();
    kernels_.emplace_back();
  }

  /// Of the last device.
  void add_variants() {
    for (std::size_t m = 0; m < request_.models.size(); ++m)
      for (const DType dtype : dtypes_of(request_, device_infos_.back())) {
        Result& result = results_.emplace_back();
        result.device = static_cast<std::int64_t>(devices_.size()) - 1;
        result.model = static_cast<std::int64_t>(m);
        result.dtype = name_of(dtype);
        result.tolerance = request_.tolerances.at(dtype);
        variants_.push_back({devices_.back(), devices_.size() - 1, &request_.models[m], dtype, &result});
      }
  }

  void open_devices() {
    for (const DeviceInfo& info : request_.devices) {
      add_device(info);
      DeviceReport& report = run_.devices.back();
      if (way_ == Way::measure) report.tuning = tuning_uses(info, request_.models, dtypes_of(request_, info));
      try {
        begin({info.name, "", "", "opening"});
        if (way_ == Way::measure) devices_.back() = Device::open(std::to_string(info.index));
      } catch (const std::exception& error) {
        report.error = error.what();
        continue;
      }
      build_kernels(report);
      add_variants();
    }
    // Results stand in the order of the variants.
    if (variants_.empty()) {
      std::string reasons;
      for (const DeviceReport& device : run_.devices) reasons += fmt::format("; {}: {}", device.name, device.error);
      throw Error("no device could be opened" + reasons);
    }
  }

  /// All of the last device's at once: most of the time of building kernels goes into starting the compiler. Should
  /// that fail, each combination builds its own, and the one that cannot says why.
  void build_kernels(DeviceReport& report) try {
    begin({report.name, "", "", "building kernels"});
    if (way_ != Way::measure) return;
    const Device& device = *devices_.back();
    const runtime::Rehearsal rehearsal(device);
    Comparison(request_, Way::rehearse).rehearse(rehearsal.device());
    kernels_.back() = rehearsal.kernels();
    report.kernels = static_cast<std::int64_t>(kernels_.back().size());
    report.kernels_seconds = milliseconds([&] { runtime::prepare(device, kernels_.back()); }) / 1000;
  } catch (const std::exception&) {
    report.kernels_seconds = unknown;
  }

  void compare() {
    for (std::size_t m = 0; m < request_.models.size(); ++m) compare_outputs(m);
    measure_speeds();
  }

  /// Does a variant's work unless it has failed before, and, unless this is a rehearsal, evaluates what came out; false
  /// if it has failed, or does now.
  template <class Work, class Evaluate>
  bool attempt(const Variant& variant, const std::string& what, const Work& work, const Evaluate& evaluate) {
    Result& result = *variant.result;
    if (!result.error.empty()) return false;
    try {
      begin({device_infos_[variant.device_position].name, variant.model->report.label, result.dtype, what});
      if (way_ != Way::count) work();
      if (way_ == Way::measure) evaluate();
      return true;
    } catch (const std::exception& error) {
      result.error = error.what();
      result.failed_in = what;
      return false;
    }
  }

  void compare_outputs(std::size_t m) {
    const Model& model = request_.models[m];
    begin({"", model.report.label, "", "fp64 reference"});
    Reference expected;
    reference::VitGradients expected_gradients;
    std::optional<Model> tiny;
    if (request_.gradients == GradientsOf::tiny) tiny = tiny_like(model);
    const Model& differentiated = tiny ? *tiny : model;
    if (way_ == Way::measure) {
      expected = reference_of(model);
      if (request_.gradients != GradientsOf::none) expected_gradients = reference_gradients(differentiated);
    }

    std::vector<std::optional<Outputs>> outputs(variants_.size());
    for (std::size_t i = 0; i < variants_.size(); ++i) {
      const Variant& variant = variants_[i];
      if (variant.model != &model) continue;
      Result& result = *variant.result;
      const bool computed = attempt(
          variant, "outputs", [&] { outputs[i] = outputs_of(*variant.device, model, variant.dtype); },
          [&] {
            result.accuracy = accuracy_of(model, *outputs[i], expected, result.tolerance);
            result.top1 = top_classes_of(std::span<const float>(outputs[i]->logits), model.config.classes);
            result.logits.assign(outputs[i]->checked_logits.begin(), outputs[i]->checked_logits.end());
          });
      if (!computed) outputs[i].reset();
      if (request_.gradients != GradientsOf::none) {
        DeviceGradients gradients;
        attempt(
            variant, "gradients", [&] { gradients = gradients_of(*variant.device, differentiated, variant.dtype); },
            [&] { result.gradients = gradient_errors(differentiated, gradients, expected_gradients); });
      }
      std::optional<LayerBench> layers;
      attempt(
          variant, "layers", [&] { layers.emplace(profiling(variant), model, variant.dtype, request_.batch); },
          [&] {
            result.layers = layers->times();
            result.layers_batch = request_.batch;
          });
    }
    if (way_ != Way::measure) return;
    for (std::size_t a = 0; a < outputs.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (outputs[a] && outputs[b]) pairs_.push_back(pair_of(a, *outputs[a], b, *outputs[b]));
  }

  Pair pair_of(std::size_t a, const Outputs& outputs_a, std::size_t b, const Outputs& outputs_b) const {
    Pair pair;
    pair.result_a = static_cast<std::int64_t>(a);
    pair.result_b = static_cast<std::int64_t>(b);
    pair.logits = errors_of(std::span<const float>(outputs_a.logits), std::span<const float>(outputs_b.logits));
    pair.top1_agreement = agreement(results_[a].top1, results_[b].top1);
    pair.layers = step_errors(outputs_a.steps, outputs_b.steps);
    return pair;
  }

  /// The same device with times of its kernels; opened when it is first wanted.
  const Device& profiling(const Variant& variant) {
    if (way_ == Way::rehearse) return *variant.device;
    auto found = profiling_.find(variant.device_position);
    if (found == profiling_.end()) {
      const std::string index = std::to_string(variant.device->info().index);
      const Device device = Device::open(index, {.warn = {}, .profiling = true});
      runtime::prepare(device, kernels_[variant.device_position]);
      found = profiling_.emplace(variant.device_position, device).first;
    }
    return found->second;
  }

  // ---- speeds

  void measure_speeds() {
    profiling_.clear();
    open_yardsticks();
    std::vector<std::string> names;
    for (const Model& model : request_.models)
      if (std::ranges::find(names, model.report.name) == names.end()) names.push_back(model.report.name);
    for (const std::string& name : names) {
      std::vector<std::int64_t> batches = request_.sweep;
      batches.push_back(request_.batch);
      std::ranges::sort(batches);
      batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
      by_turns(name, batches, Pass::forward);
      if (request_.backward) by_turns(name, {request_.batch}, Pass::forward_backward);
    }
    if (way_ != Way::measure) return;
    for (auto& [device, yardsticks] : yardsticks_) yardsticks.write_to(run_.devices[device]);
    for (Result& result : results_)
      for (Speed& speed : result.speeds) take_shares(speed, result);
    for (Result& result : results_) run_.results.push_back(std::move(result));
  }

  void open_yardsticks() {
    for (std::size_t d = 0; d < devices_.size(); ++d) try {
        if (devices_[d]) yardsticks_.try_emplace(d, *devices_[d], dtypes_of(request_, device_infos_[d]));
      } catch (const std::exception& error) {
        note_lost_yardsticks(d, error);
      }
    measure_yardsticks();
  }

  void measure_yardsticks() {
    for (auto at = yardsticks_.begin(); at != yardsticks_.end();) try {
        at->second.measure();
        ++at;
      } catch (const std::exception& error) {
        note_lost_yardsticks(at->first, error);
        at = yardsticks_.erase(at);
      }
  }

  void note_lost_yardsticks(std::size_t device, const std::exception& error) {
    run_.devices[device].error = fmt::format("its yardsticks could not be measured: {}", error.what());
  }

  /// All variants of a model's scores, types and devices; as many at once as half of each device's memory holds.
  void by_turns(const std::string& name, const std::vector<std::int64_t>& batches, Pass pass) {
    std::vector<std::vector<const Variant*>> groups(1);
    std::map<std::size_t, std::size_t> bytes;
    for (const Variant& variant : variants_) {
      if (variant.model->report.name != name || !variant.result->error.empty()) continue;
      std::size_t wanted = 0;
      const bool planned = attempt(
          variant, pass_text(pass) + " speed",
          [&] { wanted = bench_bytes(*variant.device, *variant.model, variant.dtype, batches.back(), pass); }, [] {});
      if (!planned) continue;
      const std::size_t most = device_infos_[variant.device_position].memory_bytes / 2;
      if (!groups.back().empty() && bytes[variant.device_position] + wanted > most) {
        groups.emplace_back();
        bytes.clear();
      }
      bytes[variant.device_position] += wanted;
      groups.back().push_back(&variant);
    }
    for (std::size_t g = 0; g < groups.size(); ++g) measure_group(groups[g], batches, pass, name, g == 0);
  }

  struct Turn {
    const Variant* variant;
    std::unique_ptr<SpeedBench> bench;
    double bytes = 0;
    Times times = {};
  };

  /// Runs something for a turn; a failure is the variant's own.
  template <class Work>
  static void take_turn(Turn& turn, const std::string& what, const Work& work) {
    if (!turn.bench) return;
    try {
      work();
    } catch (const std::exception& error) {
      turn.variant->result->error = error.what();
      turn.variant->result->failed_in = what;
      turn.bench.reset();
    }
  }

  /// A batch size is one stage, however many groups it takes.
  void measure_group(const std::vector<const Variant*>& group, const std::vector<std::int64_t>& batches, Pass pass,
                     const std::string& name, bool first) {
    std::vector<Turn> turns;
    for (const Variant* variant : group) {
      if (way_ == Way::count) continue;
      turns.push_back({variant, nullptr});
      try {
        turns.back().bench =
            std::make_unique<SpeedBench>(*variant->device, *variant->model, variant->dtype, batches.back(), pass);
      } catch (const std::exception& error) {
        variant->result->error = error.what();
        variant->result->failed_in = pass_text(pass) + " speed";
      }
    }
    for (const std::int64_t batch : batches) {
      const std::string what = fmt::format("{} passes over {} images", pass_text(pass), batch);
      if (first) begin({"", name, "", what});
      measure_batch(turns, batch, pass, what);
    }
  }

  void measure_batch(std::vector<Turn>& turns, std::int64_t batch, Pass pass, const std::string& what) {
    // The warm-up.
    for (Turn& turn : turns) {
      turn.times = {};
      take_turn(turn, what, [&] {
        turn.bytes = 0;
        Observed seen = turn.bench->observed(batch);
        for (const VitStep& step : seen.steps) turn.bytes += step.bytes;
        if (batch == request_.batch) std::ranges::move(seen.engines, std::back_inserter(turn.variant->result->engines));
      });
    }
    if (way_ != Way::measure) return;
    ++turns_;
    const auto start = std::chrono::steady_clock::now();
    const auto enough = [&](int rounds) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      return rounds >= request_.least_rounds && spent.count() > request_.seconds * static_cast<double>(turns.size());
    };
    for (int round = 0; !turns.empty() && !enough(round); ++round) {
      for (std::size_t i = 0; i < turns.size(); ++i) {
        // Back and forth, so that nobody always follows the same one.
        Turn& turn = turns[round % 2 == 0 ? i : turns.size() - 1 - i];
        take_turn(turn, what, [&] { turn.times.add(milliseconds([&] { turn.bench->run(batch); })); });
      }
      measure_yardsticks();
    }
    for (Turn& turn : turns)
      take_turn(turn, what, [&] { turn.variant->result->speeds.push_back(speed_of_turn(turn, batch, pass, turns_)); });
  }

  static Speed speed_of_turn(const Turn& turn, std::int64_t batch, Pass pass, std::int64_t turns) {
    const Times& times = turn.times;
    const Variant& variant = *turn.variant;
    Speed speed;
    speed.pass = pass;
    speed.batch = batch;
    speed.ms = {times.median(),
                times.best(),
                times.quantile(0.25),
                times.quantile(0.75),
                static_cast<std::int64_t>(times.count()),
                times.all()};
    speed.turns = turns;
    const auto images = static_cast<double>(batch);
    const double seconds = times.median() / 1000;
    speed.images_per_s = images / seconds;
    speed.gflops = variant.model->report.forward_flops * images * forward_passes_of(pass) / seconds / 1e9;
    // For now GB/s; its share is known when the bandwidth is.
    speed.bandwidth_share = turn.bytes / seconds / 1e9;
    speed.peak_bytes =
        static_cast<std::int64_t>(bench_bytes(*variant.device, *variant.model, variant.dtype, batch, pass));
    return speed;
  }

  void take_shares(Speed& speed, const Result& result) const {
    const DeviceReport& device = run_.devices[static_cast<std::size_t>(result.device)];
    const auto yardstick = std::ranges::find(device.yardsticks, result.dtype, &YardstickRate::dtype);
    speed.compute_share = yardstick == device.yardsticks.end() ? unknown : speed.gflops / yardstick->gflops;
    speed.bandwidth_share /= device.bandwidth_gbs;
  }

  const Request& request_;
  Way way_;
  std::size_t stages_ = 0;
  std::int64_t turns_ = 0;  // how often contestants have taken turns
  Run run_;
  std::vector<Pair> pairs_;
  // Of each device.
  std::vector<DeviceInfo> device_infos_;
  std::vector<std::optional<Device>> devices_;
  std::vector<std::vector<runtime::KernelName>> kernels_;
  std::map<std::size_t, Device> profiling_;
  std::map<std::size_t, Yardsticks> yardsticks_;
  std::deque<Result> results_;  // whose variants point to them
  std::vector<Variant> variants_;
};

}  // namespace

std::vector<DType> dtypes_of(const Request& request, const DeviceInfo& device) {
  if (!request.dtypes.empty()) return request.dtypes;
  std::vector<DType> dtypes{DType::f32};
  if (device.bf16) dtypes.push_back(DType::bf16);
  if (device.fp16) dtypes.push_back(DType::f16);
  return dtypes;
}

std::size_t stages_of(const Request& request) { return Comparison(request, Way::count).stages(); }

Report run(const Request& request) { return Comparison(request, Way::measure).run(); }

}  // namespace sylvit::compare
