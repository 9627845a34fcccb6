// sylvit bench vit: the speed of a Vision Transformer's passes, beside the device's GEMM.
#include <sylvit/error.hpp>
#include <sylvit/vit.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fmt/core.h>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/ceiling.hpp"
#include "cli/commands.hpp"
#include "cli/estimated.hpp"
#include "cli/numbers.hpp"
#include "cli/vit_options.hpp"
#include "cli/vit_profile.hpp"
#include "nn/loss.hpp"
#include "nn/optimizer.hpp"

namespace sylvit::cli {

namespace {

struct Options {
  VitModelOptions model;
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

/// What a step of training needs beside the model: targets, loss, optimiser.
class Training {
 public:
  Training(const Device& device, const VitConfig& config, DType dtype, std::int64_t batch, DeviceTensors& tensors)
      : device_(device),
        gradients_(device, config, "the gradients"),
        targets_(labels(batch, config.classes, tensors)),
        losses_(tensors.empty(DType::f32, {batch})),
        mean_(tensors.empty(DType::f32, {1})),
        logits_gradient_(tensors.empty(dtype, {batch, config.classes})) {}

  /// Allocated with the first optimiser step only.
  void prepare_optimiser(const VitConfig& config) {
    first_.emplace(device_, config, "the optimiser's moments");
    second_.emplace(device_, config, "the optimiser's moments");
    std::vector<nn::Segment> segments;
    const std::span<const VitParameter> parameters = gradients_.parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::int64_t end =
          i + 1 < parameters.size() ? gradients_.offset(parameters[i + 1].name) : gradients_.flat().shape().elements();
      segments.push_back({end - gradients_.offset(parameters[i].name), parameters[i].shape.rank() > 1});
    }
    segments_.emplace(device_, segments);
    state_.emplace(device_, segments_->total());
  }

  void backward(Vit& model, const VitParameters& parameters, const TensorView& images, const TensorView& logits) {
    const float scale = nn::loss_scale(parameters.dtype());
    nn::cross_entropy(device_, logits, targets_, losses_, mean_, logits_gradient_, {.gradient_scale = scale});
    model.backward(parameters, images, logits_gradient_, gradients_);
  }

  void step(const VitParameters& parameters) {
    const float scale = 1 / nn::loss_scale(parameters.dtype());
    nn::write_step_control(device_, gradients_.flat(), *state_, {.gradient_scale = scale, .max_norm = 1.0F});
    nn::adamw(device_, parameters.values().flat(), gradients_.flat(), first_->flat(), second_->flat(),
              parameters.copy(), *segments_, *state_, {.learning_rate = 1e-5F});
  }

  std::size_t bytes() const { return gradients_.flat().span_bytes() * (first_ ? 3 : 1); }

 private:
  static TensorView labels(std::int64_t batch, std::int64_t classes, DeviceTensors& tensors) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < batch; ++i) values.push_back(i * 7 % classes);
    return tensors.upload(std::as_bytes(std::span(values)), DType::i64, {batch});
  }

  Device device_;
  VitBuffer gradients_;
  TensorView targets_, losses_, mean_, logits_gradient_;
  std::optional<VitBuffer> first_, second_;
  std::optional<nn::Segments> segments_;
  std::optional<nn::StepState> state_;
};

double total_ms(const std::vector<LayerTotals>& layers) {
  double all = 0;
  for (const LayerTotals& layer : layers) all += layer.ms;
  return all;
}

double rate_of(const LayerTotals& layer) { return layer.ms > 0 ? layer.flops / layer.ms / 1e6 : 0; }

nlohmann::ordered_json profile_json(const std::vector<LayerTotals>& layers, double ceiling) {
  const double all = total_ms(layers);
  auto json = nlohmann::ordered_json::array();
  for (const LayerTotals& layer : layers)
    json.push_back({{"name", layer.kind},
                    {"times", layer.count},
                    {"ms", layer.ms},
                    {"share", layer.ms / all},
                    {"gflop", layer.flops / 1e9},
                    {"gflops", rate_of(layer)},
                    {"ceiling_share", rate_of(layer) / ceiling}});
  return json;
}

void print_profile(const std::vector<LayerTotals>& layers, double ceiling) {
  const double all = total_ms(layers);
  fmt::print("\n  {:<36} {:>6} {:>10} {:>8} {:>10} {:>9} {:>9}\n", "layer", "times", "ms", "of all", "GFLOP", "GFLOP/s",
             "ceiling");
  for (const LayerTotals& layer : layers) {
    const double gflops = rate_of(layer);
    fmt::print("  {:<36} {:>6} {:>10.3f} {:>7.1f}% {:>10.3f} {:>9.1f} {:>8.0f}%\n", layer.kind, layer.count, layer.ms,
               100 * layer.ms / all, layer.flops / 1e9, gflops, 100 * gflops / ceiling);
  }
}

void bench(const Options& options) {
  if (options.batch < 1) throw Error(fmt::format("--batch is {}, and must be positive", options.batch));
  const DType dtype = parse_dtype(options.dtype);
  const VitConfig config = options.model.config();
  const bool backward = options.pass != "forward";
  const bool train = options.pass == "train";
  const Device device = Device::open(options.device, {.warn = {}, .profiling = options.profile});
  VitParameters parameters(device, config, dtype);
  parameters.initialise(1);
  Vit model(device, config,
            {.dtype = dtype,
             .batch = options.batch,
             .use = backward ? VitUse::training : VitUse::inference,
             .constant = true,
             .recompute = options.recompute});
  DeviceTensors tensors(device, "the benchmark");
  const TensorView images =
      tensors.random(DType::f32, {options.batch, config.channels, config.image_height, config.image_width});
  const TensorView logits = tensors.empty(DType::f32, {options.batch, config.classes});
  std::optional<Training> training;
  if (backward) training.emplace(device, config, dtype, options.batch, tensors);
  if (train) training->prepare_optimiser(config);
  // "backward" times forward and backward, as a step without its optimiser.
  const auto run = [&] {
    model.forward(parameters, images, logits);
    if (backward) training->backward(model, parameters, images, logits);
    if (train) training->step(parameters);
    device.wait();
  };
  run();
  if (options.turns) {
    for (std::string line; std::getline(std::cin, line);) {
      fmt::print("{:.4f}\n", milliseconds(run));
      std::fflush(stdout);
    }
    return;
  }
  Ceiling ceiling(device);
  Times times;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
  while (times.count() < 3 || std::chrono::steady_clock::now() < end) {
    times.add(milliseconds(run));
    for (int i = 0; i < 3; ++i) ceiling.measure();
  }

  const double flops = vit_computed_flops(config) * static_cast<double>(options.batch) * (backward ? 3 : 1);
  const double gflops = flops / times.best() / 1e6;
  const double images_per_s = static_cast<double>(options.batch) / times.best() * 1000;
  const std::size_t peak_bytes = model.bytes() + parameters.values().flat().span_bytes() +
                                 parameters.copy().span_bytes() + images.span_bytes() + logits.span_bytes() +
                                 (training ? training->bytes() : 0);
  std::vector<LayerTotals> layers;
  if (options.profile) {
    std::vector<VitStep> steps;
    model.observe([&](const VitStep& step) { steps.push_back(step); });
    run();
    layers = layer_totals(steps);
  }
  if (options.json) {
    nlohmann::ordered_json json{
        {"ms_best", times.best()}, {"ms_median", times.median()},         {"images_per_s", images_per_s},
        {"gflops", gflops},        {"ceiling_gflops", ceiling.gflops()},  {"peak_bytes", peak_bytes},
        {"device", device.name()}, {"toolchain", device.info().toolchain}};
    if (options.profile) json["layers"] = profile_json(layers, ceiling.gflops());
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  fmt::print("{} {} {}, batch {}, {} on {} ({})\n", options.model.name(), options.model.score, options.pass,
             options.batch, options.dtype, device.name(), device.info().toolchain);
  fmt::print("  time      {:.1f} ms best, {:.1f} ms median of {}\n", times.best(), times.median(), times.count());
  fmt::print("  speed     {:.1f} images/s, {:.1f} GFLOP/s (at the best time)\n", images_per_s, gflops);
  fmt::print("  ceiling   {:.1f} GFLOP/s (GEMM {}, {}), of which {:.0f} %\n", ceiling.gflops(), Ceiling::size,
             ceiling.provider(), 100 * gflops / ceiling.gflops());
  fmt::print("  memory    {} in all\n", readable_bytes(peak_bytes));
  if (uses_estimates(device.info())) fmt::print("  {}\n", estimated_note);
  if (options.profile) print_profile(layers, ceiling.gflops());
}

}  // namespace

void add_bench_vit(CLI::App& program) {
  CLI::App* command = program.add_subcommand("vit", "Time a Vision Transformer");
  auto options = std::make_shared<Options>();
  options->model.add_to(*command);
  command->add_option("--batch", options->batch, "Images at a time")->check(whole_number)->capture_default_str();
  command->add_option("--pass", options->pass, "forward, backward (with forward) or train (with AdamW)")
      ->check(CLI::IsMember({"forward", "backward", "train"}))
      ->capture_default_str();
  command->add_option("--dtype", options->dtype, "Storage type: f32, bf16 or f16")->capture_default_str();
  command->add_option("--device", options->device, "Index, name part, backend or type");
  command->add_option("--seconds", options->seconds, "How long to measure")
      ->check(number_from_zero)
      ->capture_default_str();
  command->add_flag("--recompute", options->recompute, "Compute activations again in the backward pass");
  command->add_flag("--profile", options->profile, "Also time, work and share of the ceiling of each layer");
  command->add_flag("--json", options->json, "Print a JSON object");
  command
      ->add_flag("--turns", options->turns,
                 "Run a pass for every line of standard input and print its ms: for taking turns with other programs")
      ->excludes("--seconds", "--profile", "--json");
  command->callback([options] { bench(*options); });
}

}  // namespace sylvit::cli
