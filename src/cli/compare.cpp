// sylvit compare: accuracy and speed of models across devices, as a page and as JSON.
#include <sylvit/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <fmt/core.h>

#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "compare/host.hpp"
#include "compare/inputs.hpp"
#include "options/attention_options.hpp"
#include "options/numbers.hpp"
#include "options/words.hpp"
#include "report/json.hpp"
#include "report/merge.hpp"
#include "report/summary.hpp"
#include "report/write.hpp"
#include "runtime/platform.hpp"
#include "terminal/print.hpp"

namespace sylvit::cli {

namespace {

using namespace compare;

struct Options {
  InputOptions inputs;
  std::vector<std::string> devices, dtypes, tolerances;
  std::int64_t batch = 4;
  std::vector<std::int64_t> sweep{1, 2};
  double seconds = 0.5;
  std::string gradients = "tiny";
  bool forward_only = false;
  bool cold = false;
  std::string out = "report";
  std::string machine;
  std::vector<std::string> merge;
  std::string baseline;
  RegressionLimits limits;
};

/// Those that are asked for, or all usable ones.
std::vector<DeviceInfo> chosen_devices(const std::vector<std::string>& selectors) {
  const std::vector<DeviceInfo> all = list_devices();
  std::vector<DeviceInfo> chosen;
  const auto add = [&](const DeviceInfo& device) {
    if (std::ranges::none_of(chosen, [&](const DeviceInfo& other) { return other.index == device.index; }))
      chosen.push_back(device);
  };
  for (const std::string& selector : selectors)
    add(all.at(static_cast<std::size_t>(Device::open(selector).info().index)));
  if (selectors.empty())
    for (const DeviceInfo& device : all)
      if (device.usable) add(device);
  if (chosen.empty())
    throw Error((all.empty() ? "no SYCL device was found" : "no device is usable") + runtime::selector_variable_note(),
                runtime::no_device_advice());
  return chosen;
}

/// "bf16=0.1": for CLI::Option::check.
std::string tolerance_word(const std::string& text) {
  const std::size_t equal = text.find('=');
  const bool good = equal != std::string::npos && positive_number(text.substr(equal + 1)).empty();
  return good ? storage_type_word(text.substr(0, equal)) : "'" + text + "' is not of the form f32=1e-4";
}

/// Over defaults that models with random weights keep to with room to spare.
std::map<DType, double> tolerances_of(const std::vector<std::string>& texts) {
  std::map<DType, double> tolerances{{DType::f32, 1e-4}, {DType::bf16, 5e-2}, {DType::f16, 1e-2}};
  for (const std::string& text : texts) {
    const std::size_t equal = text.find('=');
    tolerances[parse_dtype(text.substr(0, equal))] = std::strtod(text.c_str() + equal + 1, nullptr);
  }
  return tolerances;
}

Request request_of(const Options& options) {
  Request request;
  for (const std::string& dtype : options.dtypes) {
    const DType parsed = parse_dtype(dtype);
    if (std::ranges::find(request.dtypes, parsed) == request.dtypes.end()) request.dtypes.push_back(parsed);
  }
  request.tolerances = tolerances_of(options.tolerances);
  request.batch = options.batch;
  request.sweep = options.sweep;
  request.seconds = options.seconds;
  request.backward = !options.forward_only;
  request.gradients = options.gradients == "none"    ? GradientsOf::none
                      : options.gradients == "model" ? GradientsOf::model
                                                     : GradientsOf::tiny;
  InputOptions inputs = options.inputs;
  if (inputs.source.weights.empty() && !inputs.source.seed) inputs.source.seed = 0;
  std::vector<std::string> warnings;
  request.models = make_models(inputs, warnings);
  print_warnings(warnings);
  request.devices = chosen_devices(options.devices);
  return request;
}

Report measured(const Options& options) {
  // Before anything is built: kernels are then made anew, and their time is that of building.
  if (options.cold) setenv("SYLVIT_CACHE_LIMIT_MB", "0", 1);
  Request request = request_of(options);
  Progress progress("stages", stages_of(request));
  std::size_t begun = 0;
  request.at_stage = [&](const Stage& stage) {
    std::string note = stage.what;
    for (const std::string& part : {stage.model, stage.dtype, stage.device})
      if (!part.empty()) note += ", " + part;
    progress.advance(begun++ > 0 ? 1 : 0, note);
  };
  Report report = run(request);
  progress.clear();
  Run& made = report.runs.front();
  describe_host(made);
  made.cold = options.cold;
  if (!options.machine.empty()) made.machine = options.machine;
  return report;
}

Report merged_files(const std::vector<std::string>& paths) {
  std::vector<NamedReport> reports;
  reports.reserve(paths.size());
  for (const std::string& path : paths) reports.push_back({path, read_report(path)});
  return merged(reports);
}

void fail_for_regressions(const Baseline& baseline) {
  const std::vector<std::string> found = regressions(baseline);
  for (const std::string& sentence : found) terminal::print(stderr, "sylvit: {}\n", sentence);
  if (!found.empty())
    throw Error(fmt::format("{} regression{} against {}", found.size(), found.size() == 1 ? "" : "s", baseline.file));
}

void compare_command(const Options& options) {
  // What cannot succeed is said before anything is measured.
  std::optional<NamedReport> baseline;
  if (!options.baseline.empty()) baseline = NamedReport{options.baseline, read_report(options.baseline)};
  std::optional<Report> merged_report;
  if (!options.merge.empty()) merged_report = merged_files(options.merge);
  check_writable(options.out);
  Report report = merged_report ? std::move(*merged_report) : measured(options);
  if (baseline) report.baseline = beside(report, *baseline, options.limits);
  write_report(options.out, report);
  print_summary(report);
  terminal::print("the report is {0}/index.html, with report.json and report.csv beside it\n", options.out);
  // Failures of runs that are merged were told when they ran.
  std::size_t failed = 0;
  if (options.merge.empty()) {
    const std::vector<std::string> failures = failures_of(report.runs.front());
    failed = failures.size();
    for (const std::string& sentence : failures) terminal::print(stderr, "sylvit: {}\n", sentence);
  }
  if (report.baseline) fail_for_regressions(*report.baseline);
  if (failed > 0)
    throw Error(fmt::format("{} combination{} of device, model and type failed, and the others are in the report",
                            failed, failed == 1 ? "" : "s"));
}

}  // namespace

void add_compare(CLI::App& program) {
  CLI::App* command = program.add_subcommand("compare", "Accuracy and speed of one model across devices, as a report");
  auto options = std::make_shared<Options>();
  InputOptions& inputs = options->inputs;
  command
      ->add_option("--devices", options->devices, "Indices, name parts, backends or types (default: every usable one)")
      ->delimiter(',');
  command
      ->add_option("--models", inputs.models,
                   "Ti, S, B or L by patch (S/16), or timm's names (default: S/16, or what the weights are of)")
      ->delimiter(',')
      ->check(model_word);
  command
      ->add_option("--scores", inputs.scores,
                   "Attention scores: " + score_names() +
                       " (default: softmax,relu, or the one that the weights were written for)")
      ->delimiter(',')
      ->check(score_word);
  command
      ->add_option("--alpha", inputs.alphas,
                   "One or more exponents of the divisor, 0 to 2; point-wise scores (default: 1, or the weights')")
      ->delimiter(',')
      ->check(alpha_number);
  command->add_option("--dtypes", options->dtypes, "Storage types: f32, bf16, f16 (default: all that a device has)")
      ->delimiter(',')
      ->check(storage_type_word);
  command->add_option("--batch", options->batch, "Images at a time, for speeds")
      ->check(positive_whole_number)
      ->capture_default_str();
  command->add_option("--sweep", options->sweep, "More batch sizes, for forward passes")
      ->delimiter(',')
      ->check(positive_whole_number)
      ->capture_default_str();
  command->add_flag("--forward-only", options->forward_only, "Do not time backward passes");
  command->add_option("--seconds", options->seconds, "How long to measure each speed, at least")
      ->check(number_from_zero)
      ->capture_default_str();
  command
      ->add_option("--gradients", options->gradients,
                   "Compare the gradients of a tiny model with the same options, of the model itself, or of none")
      ->check(CLI::IsMember({"tiny", "model", "none"}))
      ->capture_default_str();
  inputs.source.add_to(*command);
  command->add_option("--images", inputs.images,
                      "Image files or directories, or a .safetensors with images [B,C,H,W] (default: synthetic ones)");
  command->add_option("--image-count", inputs.image_count, "Images to classify, at most")
      ->check(positive_whole_number)
      ->capture_default_str();
  command->add_option("--judged", inputs.judged, "How many of them go through the fp64 reference too")
      ->check(positive_whole_number)
      ->capture_default_str();
  command
      ->add_option("--tolerance", options->tolerances,
                   "A layer's relative error (L2) is too large beyond this (default: f32=1e-4,f16=1e-2,bf16=5e-2)")
      ->delimiter(',')
      ->check(tolerance_word);
  command->add_flag("--cold", options->cold, "Build all kernels anew, to see how long that takes");
  inputs.variations.add_variations_to(*command);
  const std::vector<CLI::Option*> measuring = command->get_options();
  command->add_option("--machine", options->machine, "What the report calls this machine (default: its host name)");
  command->add_option("--merge", options->merge, "Measure nothing: make one report of these report.json files");
  command->add_option("--out", options->out, "Directory of the report")->capture_default_str();
  command->add_option("--baseline", options->baseline,
                      "A report.json: exit with 1 when something is slower or less accurate than there");
  command->add_option("--max-slowdown", options->limits.slowdown, "How many times as long a pass may take")
      ->check(positive_number)
      ->capture_default_str();
  command->add_option("--max-error", options->limits.error, "How much the logits' relative error may grow")
      ->check(number_from_zero)
      ->capture_default_str();
  command->footer(
      "A device that fails is named in the report and on standard error, the others go on, and the exit code is 1.\n"
      "docs/compare.md explains the numbers.");
  command->callback([options, measuring] {
    for (const CLI::Option* option : measuring)
      if (!options->merge.empty() && option->count() > 0)
        wrong_command_line(option->get_name() + " says how to measure, and with --merge nothing is measured");
    compare_command(*options);
  });
}

}  // namespace sylvit::cli
