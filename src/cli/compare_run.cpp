// The order of a comparison: per model the reference, then each device's outputs, gradients and layers; then the speeds
// by turns. What fails is noted, and the rest goes on.
#include <sylvit/error.hpp>

#include <algorithm>
#include <fmt/core.h>

#include "cli/compare_accuracy.hpp"
#include "cli/compare_errors.hpp"
#include "cli/compare_gradients.hpp"
#include "cli/compare_host.hpp"
#include "cli/compare_kernels.hpp"
#include "cli/compare_speed.hpp"

namespace sylvit::cli::compare {

namespace {

class Comparison {
 public:
  explicit Comparison(const Request& request) : request_(request) {
    run_.batch = request.batch;
    for (const Model& model : request.models) run_.models.push_back(model.report);
  }

  Report run() {
    run_.seconds = milliseconds([&] {
                     open_devices();
                     for (std::size_t m = 0; m < request_.models.size(); ++m) compare_outputs(m);
                     measure_speeds();
                   }) /
                   1000;
    Report report;
    report.runs.push_back(std::move(run_));
    report.pairs = std::move(pairs_);
    return report;
  }

 private:
  void open_devices() {
    for (const DeviceInfo& info : request_.devices) {
      DeviceReport& report = run_.devices.emplace_back(device_report(info));
      const std::vector<DType> dtypes = dtypes_of(request_, info);
      report.tuning = tuning_uses(info, request_.models, dtypes);
      devices_.emplace_back();
      try {
        request_.at_stage({info.name, "", "", "opening"});
        devices_.back() = Device::open(std::to_string(info.index));
      } catch (const std::exception& error) {
        report.error = error.what();
        continue;
      }
      build_kernels(*devices_.back(), dtypes, report);
      for (std::size_t m = 0; m < request_.models.size(); ++m)
        for (const DType dtype : dtypes) {
          Result& result = results_.emplace_back();
          result.device = static_cast<std::int64_t>(devices_.size()) - 1;
          result.model = static_cast<std::int64_t>(m);
          result.dtype = name_of(dtype);
          result.tolerance = request_.tolerances.at(dtype);
          variants_.push_back({*devices_.back(), devices_.size() - 1, &request_.models[m], dtype, &result});
        }
    }
    // Results stand in the order of the variants.
    if (variants_.empty()) {
      std::string reasons;
      for (const DeviceReport& device : run_.devices) reasons += fmt::format("; {}: {}", device.name, device.error);
      throw Error("no device could be opened" + reasons);
    }
  }

  /// All at once. Should that fail, each combination builds its own, and the one that cannot says why.
  void build_kernels(const Device& device, const std::vector<DType>& dtypes, DeviceReport& report) const try {
    request_.at_stage({report.name, "", "", "building kernels"});
    const std::vector<runtime::KernelName> kernels = kernels_of(device, request_, dtypes);
    report.kernels = static_cast<std::int64_t>(kernels.size());
    report.kernels_seconds = milliseconds([&] { runtime::prepare(device, kernels); }) / 1000;
  } catch (const std::exception&) {
    report.kernels_seconds = unknown;
  }

  /// Does a variant's work unless it has failed before; false if it has, or does now.
  template <class Work>
  bool attempt(const Variant& variant, const std::string& what, const Work& work) {
    Result& result = *variant.result;
    if (!result.error.empty()) return false;
    try {
      request_.at_stage({name_of_device(variant), variant.model->report.label, result.dtype, what});
      work();
      return true;
    } catch (const std::exception& error) {
      result.error = error.what();
      result.failed_in = what;
      return false;
    }
  }

  const std::string& name_of_device(const Variant& variant) const {
    return request_.devices[variant.device_position].name;
  }

  void compare_outputs(std::size_t m) {
    const Model& model = request_.models[m];
    request_.at_stage({"", model.report.label, "", "fp64 reference"});
    const Judge judge = judge_of(model);
    std::optional<Model> tiny;
    std::optional<reference::VitGradients> gradients;
    if (request_.gradients == GradientsOf::tiny) tiny = tiny_like(model);
    const Model& differentiated = tiny ? *tiny : model;
    if (request_.gradients != GradientsOf::none) gradients = judge_gradients(differentiated);

    std::vector<std::optional<Outputs>> outputs(variants_.size());
    for (std::size_t i = 0; i < variants_.size(); ++i) {
      const Variant& variant = variants_[i];
      if (variant.model != &model) continue;
      Result& result = *variant.result;
      const bool computed = attempt(variant, "outputs", [&] {
        outputs[i] = outputs_of(variant.device, model, variant.dtype);
        result.accuracy = accuracy_of(model, *outputs[i], judge, result.tolerance);
        result.top1 = top_classes_of(std::span<const float>(outputs[i]->logits), model.config.classes);
        result.logits.assign(outputs[i]->judged_logits.begin(), outputs[i]->judged_logits.end());
      });
      if (!computed) outputs[i].reset();
      if (gradients)
        attempt(variant, "gradients",
                [&] { result.gradients = gradients_of(variant.device, differentiated, variant.dtype, *gradients); });
      attempt(variant, "layers", [&] {
        result.layers = layer_times(profiling(variant), model, variant.dtype, request_.batch);
        result.layers_batch = request_.batch;
      });
    }
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
    auto found = profiling_.find(variant.device_position);
    if (found == profiling_.end()) {
      const std::string index = std::to_string(variant.device.info().index);
      const Device device = Device::open(index, {.warn = {}, .profiling = true});
      const std::vector<DType> dtypes = dtypes_of(request_, request_.devices[variant.device_position]);
      runtime::prepare(device, kernels_of(device, request_, dtypes));
      found = profiling_.emplace(variant.device_position, device).first;
    }
    return found->second;
  }

  // ---- speeds

  void measure_speeds() {
    profiling_.clear();
    open_ceilings();
    std::vector<std::string> names;
    for (const Model& model : request_.models)
      if (std::ranges::find(names, model.report.name) == names.end()) names.push_back(model.report.name);
    for (const std::string& name : names) {
      std::vector<std::int64_t> batches = request_.sweep;
      batches.push_back(request_.batch);
      std::ranges::sort(batches);
      batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
      by_turns(name, batches, false);
      if (request_.backward) by_turns(name, {request_.batch}, true);
    }
    for (auto& [device, ceilings] : ceilings_) ceilings.write_to(run_.devices[device]);
    for (Result& result : results_)
      for (Speed& speed : result.speeds) take_shares(speed, result);
    for (Result& result : results_) run_.results.push_back(std::move(result));
  }

  void open_ceilings() {
    for (std::size_t d = 0; d < devices_.size(); ++d) try {
        if (devices_[d]) ceilings_.try_emplace(d, *devices_[d], dtypes_of(request_, request_.devices[d]));
      } catch (const std::exception& error) {
        note_lost_ceilings(d, error);
      }
    measure_ceilings();
  }

  void measure_ceilings() {
    for (auto at = ceilings_.begin(); at != ceilings_.end();) try {
        at->second.measure();
        ++at;
      } catch (const std::exception& error) {
        note_lost_ceilings(at->first, error);
        at = ceilings_.erase(at);
      }
  }

  void note_lost_ceilings(std::size_t device, const std::exception& error) {
    run_.devices[device].error = fmt::format("its ceilings could not be measured: {}", error.what());
  }

  /// All variants of a model's scores, types and devices; as many at once as half of each device's memory holds.
  void by_turns(const std::string& name, const std::vector<std::int64_t>& batches, bool backward) {
    std::vector<const Variant*> group;
    std::map<std::size_t, std::size_t> bytes;
    for (const Variant& variant : variants_) {
      if (variant.model->report.name != name || !variant.result->error.empty()) continue;
      std::size_t wanted = 0;
      const std::string what = backward ? "backward speed" : "forward speed";
      if (!attempt(variant, what, [&] { wanted = planned_bytes(variant, batches.back(), backward); })) continue;
      std::size_t& used = bytes[variant.device_position];
      if (!group.empty() && used + wanted > variant.device.info().memory_bytes / 2) {
        measure_group(group, batches, backward);
        group.clear();
        bytes.clear();
      }
      bytes[variant.device_position] += wanted;
      group.push_back(&variant);
    }
    measure_group(group, batches, backward);
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

  void measure_group(const std::vector<const Variant*>& group, const std::vector<std::int64_t>& batches,
                     bool backward) {
    const std::string pass = backward ? "backward" : "forward";
    std::vector<Turn> turns;
    for (const Variant* variant : group) {
      turns.push_back({variant, nullptr});
      try {
        turns.back().bench = std::make_unique<SpeedBench>(*variant, batches.back(), backward);
      } catch (const std::exception& error) {
        variant->result->error = error.what();
        variant->result->failed_in = pass + " speed";
      }
    }
    for (const std::int64_t batch : batches) {
      request_.at_stage({"", turns.empty() ? "" : turns.front().variant->model->report.name, "",
                         fmt::format("{} passes over {} images", pass, batch)});
      measure_batch(turns, batch, pass);
    }
  }

  void measure_batch(std::vector<Turn>& turns, std::int64_t batch, const std::string& pass) {
    const std::string what = fmt::format("{} passes over {} images", pass, batch);
    // The warm-up.
    for (Turn& turn : turns) {
      turn.times = {};
      take_turn(turn, what, [&] { turn.bytes = turn.bench->observed_bytes(batch); });
    }
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
      measure_ceilings();
    }
    for (Turn& turn : turns)
      take_turn(turn, what, [&] { turn.variant->result->speeds.push_back(speed_of_turn(turn, batch, pass)); });
  }

  static Speed speed_of_turn(const Turn& turn, std::int64_t batch, const std::string& pass) {
    const Times& times = turn.times;
    Speed speed;
    speed.pass = pass;
    speed.batch = batch;
    speed.ms = {times.median(), times.best(), times.quantile(0.25), times.quantile(0.75),
                static_cast<std::int64_t>(times.count())};
    const auto images = static_cast<double>(batch);
    const double seconds = times.median() / 1000;
    speed.images_per_s = images / seconds;
    speed.gflops = turn.variant->model->report.forward_flops * images * (pass == "backward" ? 3 : 1) / seconds / 1e9;
    // For now GB/s; its share is known when the ceilings are.
    speed.bandwidth_share = turn.bytes / seconds / 1e9;
    speed.peak_bytes = turn.bench->peak_bytes(batch);
    return speed;
  }

  void take_shares(Speed& speed, const Result& result) const {
    const DeviceReport& device = run_.devices[static_cast<std::size_t>(result.device)];
    const auto ceiling = std::ranges::find(device.ceilings, result.dtype, &ComputeCeiling::dtype);
    speed.compute_share = ceiling == device.ceilings.end() ? unknown : speed.gflops / ceiling->gflops;
    speed.bandwidth_share /= device.bandwidth_gbs;
  }

  const Request& request_;
  Run run_;
  std::vector<Pair> pairs_;
  std::vector<std::optional<Device>> devices_;
  std::map<std::size_t, Device> profiling_;
  std::map<std::size_t, Ceilings> ceilings_;
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

std::size_t stages_of(const Request& request) {
  std::size_t variants = 0;
  for (const DeviceInfo& device : request.devices) variants += dtypes_of(request, device).size();
  variants *= request.models.size();
  std::vector<std::string> names;
  for (const Model& model : request.models)
    if (std::ranges::find(names, model.report.name) == names.end()) names.push_back(model.report.name);
  std::vector<std::int64_t> batches = request.sweep;
  if (std::ranges::find(batches, request.batch) == batches.end()) batches.push_back(request.batch);
  const std::size_t of_variant = 3 + (request.gradients != GradientsOf::none ? 1U : 0U) + (request.backward ? 1U : 0U);
  return 2 * request.devices.size() + request.models.size() + variants * of_variant +
         names.size() * (batches.size() + (request.backward ? 1U : 0U));
}

Report run(const Request& request) { return Comparison(request).run(); }

}  // namespace sylvit::cli::compare
