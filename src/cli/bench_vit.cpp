// sylvit bench vit: the speed of a Vision Transformer's passes, beside the device's GEMM.
#include <sylvit/error.hpp>
#include <sylvit/training.hpp>
#include <sylvit/vit.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fmt/core.h>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/profile.hpp"
#include "bench/yardstick.hpp"
#include "cli/bench_sweep.hpp"
#include "cli/commands.hpp"
#include "options/attention_options.hpp"
#include "options/numbers.hpp"
#include "options/vit_model.hpp"
#include "options/words.hpp"
#include "terminal/print.hpp"
#include "tuning/estimated.hpp"

namespace sylvit::cli {

namespace {

struct Options {
  VitModelOptions model;
  SweepOptions sweep;
  VitWeightOptions source;
  std::int64_t batch = 8;
  std::string pass = "forward";
  std::string dtype = "f32";
  std::string device;
  double seconds = 5;
  bool recompute = false;
  bool profile = false;
  bool turns = false;
  bool json = false;
};

/// The model for a pass, and how it is run.
class Bench {
 public:
  Bench(const Device& device, const VitModel& source, DType dtype, const Options& options)
      : pass_(parse_pass(options.pass)),
        parameters_(source.parameters(device, source.config(), dtype)),
        tensors_(device, "the benchmark") {
    const VitConfig& config = source.config();
    if (pass_ == Pass::forward) {
      model_.emplace(device, config, VitOptions{.dtype = dtype, .batch = options.batch, .constant = true});
    } else {
      TrainingOptions training{.dtype = dtype, .batch = options.batch, .recompute = options.recompute};
      if (pass_ == Pass::train) training.optimizer = AdamWOptions{.learning_rate = 1e-5F};
      step_.emplace(device, config, training);
    }
    images_ = tensors_.random(DType::f32, {options.batch, config.channels, config.image_height, config.image_width});
    if (step_)
      targets_ = labels(options.batch, config.classes);
    else
      logits_ = tensors_.empty(DType::f32, {options.batch, config.classes});
  }

  Pass pass() const { return pass_; }
  Vit& model() { return step_ ? step_->model() : *model_; }
  void run() {
    switch (pass_) {
      case Pass::forward:
        model_->forward(parameters_, images_, logits_);
        break;
      case Pass::forward_backward:
        step_->forward_backward(parameters_, images_, targets_);
        break;
      case Pass::train:
        step_->train(parameters_, images_, targets_, {.max_norm = 1.0F});
        break;
    }
  }
  std::size_t bytes() const {
    return (step_ ? step_->bytes() : model_->bytes() + logits_.span_bytes()) +
           parameters_.values().flat().span_bytes() + parameters_.copy().span_bytes() + images_.span_bytes();
  }

 private:
  TensorView labels(std::int64_t batch, std::int64_t classes) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < batch; ++i) values.push_back(i * 7 % classes);
    return tensors_.upload(std::as_bytes(std::span(values)), DType::i64, {batch});
  }

  Pass pass_;
  VitParameters parameters_;
  DeviceTensors tensors_;
  std::optional<Vit> model_;
  std::optional<TrainingStep> step_;
  TensorView images_, logits_, targets_;
};

double total_ms(const std::vector<LayerTotals>& layers) {
  double all = 0;
  for (const LayerTotals& layer : layers) all += layer.ms;
  return all;
}

double rate_of(const LayerTotals& layer) { return layer.ms > 0 ? layer.flops / layer.ms / 1e6 : 0; }

nlohmann::ordered_json profile_json(const std::vector<LayerTotals>& layers, double yardstick) {
  const double all = total_ms(layers);
  auto json = nlohmann::ordered_json::array();
  for (const LayerTotals& layer : layers)
    json.push_back({{"name", layer.kind},
                    {"times", layer.count},
                    {"ms", layer.ms},
                    {"share", layer.ms / all},
                    {"gflop", layer.flops / 1e9},
                    {"gflops", rate_of(layer)},
                    {"ceiling_share", rate_of(layer) / yardstick}});
  return json;
}

void print_profile(const std::vector<LayerTotals>& layers, double yardstick) {
  const double all = total_ms(layers);
  terminal::print("\n  {:<36} {:>6} {:>10} {:>8} {:>10} {:>9} {:>9}\n", "layer", "times", "ms", "of all", "GFLOP",
                  "GFLOP/s", "yardstick");
  for (const LayerTotals& layer : layers) {
    const double gflops = rate_of(layer);
    terminal::print("  {:<36} {:>6} {:>10.3f} {:>7.1f}% {:>10.3f} {:>9.1f} {:>8.0f}%\n", layer.kind, layer.count,
                    layer.ms, 100 * layer.ms / all, layer.flops / 1e9, gflops, 100 * gflops / yardstick);
  }
}

/// Random weights where none are given.
VitModel model_of(const Options& options) {
  VitWeightOptions weights = options.source;
  if (weights.weights.empty() && !weights.seed) weights.seed = 1;
  return {options.model, weights};
}

/// Measures and prints one run; with --json it is added to `all`.
void bench(const Device& device, const Options& options, std::vector<nlohmann::ordered_json>& all) {
  const VitModel source = model_of(options);
  const VitConfig& config = source.config();
  const std::string score(name_of(config.score));
  const double alpha = options.model.alpha.value_or(config.alpha);
  Bench work(device, source, parse_dtype(options.dtype), options);
  print_warnings(source.warnings());
  const auto run = [&] {
    work.run();
    device.wait();
  };
  run();
  if (options.turns) {
    for (std::string line; std::getline(std::cin, line);) {
      terminal::print("{:.4f}\n", milliseconds(run));
      std::fflush(stdout);
    }
    return;
  }
  Yardstick yardstick(device);
  Times times;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
  while (times.count() < 3 || std::chrono::steady_clock::now() < end) {
    times.add(milliseconds(run));
    for (int i = 0; i < 3; ++i) yardstick.measure();
  }

  const double flops = vit_computed_flops(config) * static_cast<double>(options.batch) * forward_passes_of(work.pass());
  const double gflops = flops / times.best() / 1e6;
  const double images_per_s = static_cast<double>(options.batch) / times.best() * 1000;
  const std::size_t peak_bytes = work.bytes();
  std::vector<LayerTotals> layers;
  if (options.profile) {
    std::vector<VitStep> steps;
    work.model().observe([&](const VitStep& step) { steps.push_back(step); });
    run();
    layers = layer_totals(steps);
  }
  if (options.json) {
    nlohmann::ordered_json json{{"model", source.name()},
                                {"score", score},
                                {"alpha", alpha},
                                {"dtype", options.dtype},
                                {"pass", name_of(work.pass())},
                                {"batch", options.batch},
                                {"ms_best", times.best()},
                                {"ms_median", times.median()},
                                {"images_per_s", images_per_s},
                                {"gflops", gflops},
                                {"ceiling_gflops", yardstick.gflops()},  // under the name that scripts know
                                {"peak_bytes", peak_bytes},
                                {"device", device.name()},
                                {"toolchain", name_of(device.info().toolchain)}};
    if (options.profile) json["layers"] = profile_json(layers, yardstick.gflops());
    all.push_back(std::move(json));
    return;
  }
  terminal::print("{} {} {}, batch {}, {} on {} ({})\n", source.name(), variant_name(score, alpha),
                  name_of(work.pass()), options.batch, options.dtype, device.name(), name_of(device.info().toolchain));
  terminal::print("  time      {:.1f} ms best, {:.1f} ms median of {}\n", times.best(), times.median(), times.count());
  terminal::print("  speed     {:.1f} images/s, {:.1f} GFLOP/s (at the best time)\n", images_per_s, gflops);
  terminal::print("  yardstick {:.1f} GFLOP/s (GEMM {}, {}), of which {:.0f} %\n", yardstick.gflops(), Yardstick::size,
                  yardstick.provider(), 100 * gflops / yardstick.gflops());
  terminal::print("  memory    {} in all\n", readable_bytes(peak_bytes));
  if (tuning::uses_estimates(device.info())) terminal::print("  {}\n", tuning::estimated_note);
  if (options.profile) print_profile(layers, yardstick.gflops());
}

void sweep(Options options) {
  if (options.source.weights.empty() && options.sweep.scores.empty()) options.sweep.scores = {"softmax"};
  if (options.recompute && options.pass == "forward")
    wrong_command_line("--recompute is for --pass train and backward");
  // What cannot be is said before anything is measured.
  std::size_t runs = 0;
  const auto each = [&](const auto& visit) {
    options.sweep.each([&](const auto& score, const auto& alpha, const std::string& dtype) {
      options.model.score = score;
      options.model.alpha = alpha;
      options.dtype = dtype;
      visit();
    });
  };
  each([&] {
    const VitModel source = model_of(options);
    source.check([&] { source.config().check(); });
    ++runs;
  });
  if (options.turns && runs > 1) wrong_command_line("--turns takes one score, alpha and type");
  const Device device = Device::open(options.device, {.warn = {}, .profiling = options.profile});
  std::vector<nlohmann::ordered_json> all;
  each([&] { bench(device, options, all); });
  if (options.json) print_runs(all);
}

}  // namespace

void add_bench_vit(CLI::App& program) {
  CLI::App* command = program.add_subcommand("vit", "Time a Vision Transformer");
  auto options = std::make_shared<Options>();
  options->source.add_to(*command);
  command->add_option("--model", options->model.model, model_help)->check(model_word);
  options->sweep.add_to(*command);
  options->model.add_variations_to(*command);
  command->add_option("--batch", options->batch, "Images at a time")
      ->check(positive_whole_number)
      ->capture_default_str();
  std::vector<std::string> passes{"backward"};  // another word for forward_backward
  for (const Pass pass : all_passes) passes.emplace_back(name_of(pass));
  command->add_option("--pass", options->pass, "forward, forward_backward or train (with AdamW)")
      ->check(CLI::IsMember(passes))
      ->capture_default_str();
  command->add_option("--device", options->device, "Index, name part, backend or type");
  command->add_option("--seconds", options->seconds, "How long to measure")
      ->check(number_from_zero)
      ->capture_default_str();
  command->add_flag("--recompute", options->recompute, "Compute activations again in the backward pass");
  command->add_flag("--profile", options->profile, "Also time, work and share of the yardstick of each layer");
  command->add_flag("--json", options->json, "Print a JSON object, or for lists an array of them");
  command
      ->add_flag("--turns", options->turns,
                 "Run a pass for every line of standard input and print its ms: for taking turns with other programs")
      ->excludes("--seconds", "--profile", "--json");
  command->callback([options] { sweep(*options); });
}

}  // namespace sylvit::cli
