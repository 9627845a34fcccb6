// sylvit bench attention: how fast, and how near to what the device can do.
#include <sylvit/attention.hpp>
#include <sylvit/error.hpp>

#include <algorithm>
#include <chrono>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/head_sizes.hpp"
#include "bench/yardstick.hpp"
#include "cli/bench_sweep.hpp"
#include "cli/commands.hpp"
#include "options/attention_options.hpp"
#include "options/numbers.hpp"
#include "options/words.hpp"
#include "terminal/print.hpp"
#include "tuning/estimated.hpp"

namespace sylvit::cli {

namespace {

struct Options {
  AttentionOptions attention;
  SweepOptions sweep{.scores = {"softmax"}, .alphas = {1}};
  std::vector<std::int64_t> shape = {8, 6, 197, 64};
  std::string pass = "forward";
  double seconds = 2;
  bool json = false;
};

struct Result {
  Times times;
  double yardstick_gflops;
  std::string yardstick_provider;
  double flops;
  std::size_t extra_bytes;
  AttentionPlan plan;
};

Result measure(const Device& device, const Options& options) {
  const AttentionDescription description = options.attention.description();
  const DType dtype = parse_dtype(options.attention.dtype);
  const bool forward = options.pass != "backward";
  const bool backward = options.pass != "forward";
  const Shape shape(options.shape);
  DeviceTensors tensors(device, "the benchmark");
  // All memory is asked for before any of it is filled, which takes long where it is much.
  const AttentionInputs inputs{
      .q = tensors.empty(dtype, shape), .k = tensors.empty(dtype, shape), .v = tensors.empty(dtype, shape)};
  const TensorView o = tensors.empty(dtype, shape);
  const bool softmax = description.score == Score::softmax;
  const TensorView lse = softmax ? tensors.empty(DType::f32, Shape{shape[0], shape[1], shape[2]}) : TensorView();
  const TensorView o_gradient = tensors.empty(dtype, shape);
  const AttentionGradients gradients{
      .q = tensors.empty(dtype, shape), .k = tensors.empty(dtype, shape), .v = tensors.empty(dtype, shape)};
  for (const TensorView& view : {inputs.q, inputs.k, inputs.v, o_gradient}) tensors.fill_randomly(view);
  attention_prepare(device, description, inputs, backward);
  const std::size_t forward_bytes = attention_forward_workspace(device, description, inputs);
  const std::size_t backward_bytes =
      backward ? attention_backward_workspace(device, description, inputs, gradients) : 0;
  void* workspace = tensors.scratch(std::max(forward_bytes, backward_bytes));
  const auto run = [&](bool with_forward) {
    if (with_forward) attention_forward(device, description, inputs, o, lse, workspace);
    if (backward) attention_backward(device, description, inputs, o, lse, o_gradient, gradients, workspace);
    device.wait();
  };

  Result result{};
  const double pass_flops = 4.0 * static_cast<double>(shape.elements()) * static_cast<double>(shape[2]);
  result.flops = pass_flops * ((forward ? 1.0 : 0.0) + (backward ? 2.5 : 0.0)) * (description.causal ? 0.5 : 1.0);
  result.extra_bytes = std::max(forward_bytes, backward_bytes) + lse.span_bytes();
  result.plan = forward ? attention_forward_plan(device, description, inputs)
                        : attention_backward_plan(device, description, inputs);
  if (forward && backward) {
    const AttentionPlan other = attention_backward_plan(device, description, inputs);
    result.plan.config += "; " + other.config;
    if (other.source != result.plan.source) result.plan.source += "; " + other.source;
    result.plan.estimated = result.plan.estimated || other.estimated;
  }

  Yardstick yardstick(device);
  run(true);
  run(forward);
  // The two alternate, so that whatever slows the machine down slows both.
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
  while (result.times.count() < 5 || std::chrono::steady_clock::now() < end) {
    result.times.add(milliseconds([&] { run(forward); }));
    if (yardstick.count() < 5 || result.times.count() % 4 == 0) yardstick.measure();
  }
  result.yardstick_gflops = yardstick.gflops();
  result.yardstick_provider = yardstick.provider();
  return result;
}

double gflops_of(const Result& result) { return result.flops / result.times.best() / 1e6; }

nlohmann::ordered_json as_json(const Device& device, const Options& options, const Result& result) {
  return {{"score", options.attention.score},
          {"alpha", options.attention.alpha},
          {"dtype", options.attention.dtype},
          {"pass", options.pass},
          {"shape", options.shape},
          {"ms_best", result.times.best()},
          {"ms_median", result.times.median()},
          {"gflops", gflops_of(result)},
          {"ceiling_gflops", result.yardstick_gflops},  // under the name that scripts know
          {"config", result.plan.config},
          {"config_source", result.plan.source},
          {"estimated", result.plan.estimated},
          {"extra_bytes", result.extra_bytes},
          {"device", device.name()},
          {"toolchain", name_of(device.info().toolchain)}};
}

void print(const Device& device, const Options& options, const Result& result) {
  const double gflops = gflops_of(result);
  terminal::print("{} {} {} on {} ({})\n", variant_name(options.attention.score, options.attention.alpha), options.pass,
                  options.attention.dtype, device.name(), name_of(device.info().toolchain));
  terminal::print("  time      {:.3f} ms best, {:.3f} ms median of {}\n", result.times.best(), result.times.median(),
                  result.times.count());
  terminal::print("  speed     {:.1f} GFLOP/s (at the best time)\n", gflops);
  terminal::print("  yardstick {:.1f} GFLOP/s (GEMM {}, {}), of which {:.0f} %\n", result.yardstick_gflops,
                  Yardstick::size, result.yardstick_provider, 100 * gflops / result.yardstick_gflops);
  terminal::print("  memory    {} beside inputs and outputs\n", readable_bytes(result.extra_bytes));
  terminal::print("  config    {}\n  from      {}\n", result.plan.config, result.plan.source);
  if (result.plan.estimated) terminal::print("  {}\n", tuning::estimated_note);
}

void bench(Options options) {
  if (!base::is_head_size(options.shape[3]))
    wrong_command_line(
        fmt::format("--shape: the head size is {}, and must be {}", options.shape[3], base::head_size_rule()));
  const Device device = Device::open(options.attention.device);
  std::vector<nlohmann::ordered_json> all;
  options.sweep.each([&](const auto& score, const auto& alpha, const std::string& dtype) {
    options.attention.score = *score;
    options.attention.alpha = *alpha;
    options.attention.dtype = dtype;
    const Result result = measure(device, options);
    if (options.json)
      all.push_back(as_json(device, options, result));
    else
      print(device, options, result);
  });
  if (options.json) print_runs(all);
}

}  // namespace

void add_bench_attention(CLI::App& program) {
  CLI::App* command = program.add_subcommand("attention", "Time attention beside the device's GEMM");
  auto options = std::make_shared<Options>();
  options->sweep.add_to(*command);
  options->attention.add_variations_to(*command);
  command->add_option("--shape", options->shape, "B,H,L,d")
      ->delimiter(',')
      ->expected(4)
      ->check(positive_whole_number)
      ->capture_default_str();
  command->add_option("--pass", options->pass, "forward, backward or both")
      ->check(CLI::IsMember({"forward", "backward", "both"}))
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "How long to measure")
      ->check(number_from_zero)
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print a JSON object, or for lists an array of them");
  command->callback([options] { bench(*options); });
}

}  // namespace sylvit::cli
