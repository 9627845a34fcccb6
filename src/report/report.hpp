// What a comparison found: the model of report.json (docs/compare.md says what each number means) and of the page that
// is made of it.
#pragma once

#include <sylvit/pass.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace sylvit::report {

inline constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// How far one tensor is from another, the expected one.
struct Errors {
  double max = unknown;              ///< the largest difference, relative to the largest expected value
  double l2 = unknown;               ///< the difference's norm, relative to that of the expected tensor
  double cosine_distance = unknown;  ///< 1 - cosine of the angle between both
  /// Percentiles of the elements' differences, relative as `max` is.
  double p50 = unknown, p90 = unknown, p99 = unknown, p999 = unknown;
};

struct NamedErrors {
  std::string name;
  Errors errors;
};

/// A forward pass beside the fp64 reference.
struct Accuracy {
  std::int64_t judged = 0;  ///< images that the reference computed too
  Errors logits;
  double top1_agreement = unknown;
  double loss = unknown, reference_loss = unknown;
  std::vector<NamedErrors> layers;  ///< in the order in which they run
  std::string first_outside;        ///< the first of them beyond the tolerance, if any
  double first_outside_error = unknown;
};

/// A backward pass beside the fp64 reference.
struct Gradients {
  std::string model;  ///< which, and over what
  double loss = unknown, reference_loss = unknown;
  std::vector<NamedErrors> parameters;
};

/// Of so many interleaved runs, in ms.
struct Timing {
  double median = unknown, best = unknown, p25 = unknown, p75 = unknown;
  std::int64_t count = 0;
  std::vector<double> samples;  ///< one a round, in their order; reports of schema 1 have none
};

struct Speed {
  Pass pass = Pass::forward;
  std::int64_t batch = 0;
  Timing ms;
  /// Speeds of a run with the same number were timed in the same rounds, one after the other in each; 0: nobody knows.
  std::int64_t turns = 0;
  double images_per_s = unknown;  ///< at the median time, as all that follows
  double gflops = unknown;
  double compute_share = unknown;    ///< of the yardstick: the device's measured GEMM speed in this type
  double bandwidth_share = unknown;  ///< of its measured memory bandwidth; NaN where no pass was observed
  std::int64_t peak_bytes = 0;
};

/// A kind of layer, all blocks of one forward pass together.
struct LayerTime {
  std::string layer;
  std::int64_t times = 0;
  double ms = unknown;
  double flops = 0, bytes = 0;
};

/// Who computed a kind of product or attention.
struct EngineUse {
  Pass pass = Pass::forward;
  std::string layer;
  std::string engine;                ///< the provider of a product ("onemkl"), the kernels of attention
  std::vector<std::string> kernels;  ///< all that was submitted for it: kernels with their numbers, and libraries
};

/// One model in one type on one device.
struct Result {
  std::int64_t device = 0, model = 0;  ///< positions in the run's lists
  std::string dtype;
  std::string error, failed_in;  ///< why the rest is missing, and in which stage; empty if nothing is
  double tolerance = unknown;
  std::optional<Accuracy> accuracy;
  std::optional<Gradients> gradients;
  std::vector<Speed> speeds;
  std::vector<LayerTime> layers;
  std::int64_t layers_batch = 0;
  std::vector<EngineUse> engines;  ///< in batches of the run's size
  std::vector<std::int64_t> top1;  ///< the class of each image
  std::vector<double> logits;      ///< of the checked images: what merged reports are compared by
};

/// The fastest product of 1024 x 1024 matrices, which speeds are compared with.
struct YardstickRate {
  std::string dtype;
  double gflops = unknown;
  std::string provider;
};

/// A tuning record that the models use.
struct TuningUse {
  std::string kernel, what, file;
  std::int64_t record = 0;
  bool estimated = false;
  std::string numbers, origin;
};

struct DeviceReport {
  std::int64_t index = 0;
  std::string name, vendor, backend, type, driver, architecture;
  std::string error;  ///< why nothing could be measured on it; empty if something was
  std::int64_t memory_bytes = 0, local_memory_bytes = 0, compute_units = 0;
  std::vector<std::int64_t> sub_group_sizes;
  bool estimated = false;
  std::string tuning_table, tuning_note;
  std::vector<TuningUse> tuning;
  std::int64_t kernels = 0;          ///< that the comparison needs
  double kernels_seconds = unknown;  ///< until all of them were ready
  std::vector<YardstickRate> yardsticks;
  double bandwidth_gbs = unknown;
};

/// A model as all devices compute it.
struct ModelReport {
  std::string name, score;
  std::string label;        ///< both for people: "S/16 relu/L"
  std::string description;  ///< its sizes and options
  std::int64_t parameters = 0;
  double forward_flops = 0;  ///< that one image takes (vit_computed_flops)
  std::string weights, weights_fingerprint;
  std::string images, images_fingerprint;
  std::int64_t image_count = 0;
};

/// A variable of the environment, or a package with its version.
struct NamedText {
  std::string name, text;
};

/// One call of `sylvit compare`.
struct Run {
  std::string date, command, version, commit, toolchain, compiler;
  std::string machine;       ///< what the report calls it
  std::string host, system;  ///< its processor and its operating system
  std::vector<NamedText> environment, packages;
  std::int64_t cores = 0;  ///< that the process may use
  bool cold = false;       ///< kernels were built anew rather than taken from the cache
  std::int64_t batch = 0;  ///< of the speeds that are shown first
  double seconds = unknown;
  std::vector<DeviceReport> devices;
  std::vector<ModelReport> models;
  std::vector<Result> results;
};

/// Two results of one model beside each other; b counts as the expected one.
struct Pair {
  std::int64_t run_a = 0, result_a = 0, run_b = 0, result_b = 0;
  Errors logits;
  double top1_agreement = unknown;
  std::vector<NamedErrors> layers;  ///< only where both come from one run
};

/// Something of this report beside the same in an earlier one.
struct Change {
  std::string device, model, dtype;
  std::string what;  ///< "forward, batch 4", "error of the logits"
  double before = unknown, now = unknown;
  double ratio = unknown, low = unknown, high = unknown;  ///< of times: how many times as long, and its interval
  std::string verdict;                                    ///< "slower", "not distinguishable", …
  std::string regression;                                 ///< a sentence, where it counts as one
};

struct Baseline {
  std::string file;
  double slowdown_limit = unknown, error_limit = unknown;
  std::int64_t compared = 0;  ///< results that both have
  std::vector<Change> changes;
};

struct Report {
  std::vector<Run> runs;
  std::vector<Pair> pairs;
  std::optional<Baseline> baseline;
};

inline const ModelReport& model_of(const Run& run, const Result& result) {
  return run.models[static_cast<std::size_t>(result.model)];
}
inline const DeviceReport& device_of(const Run& run, const Result& result) {
  return run.devices[static_cast<std::size_t>(result.device)];
}

/// Visits every result with its run.
template <class Visit>
void for_each_result(const Report& report, const Visit& visit) {
  for (std::size_t r = 0; r < report.runs.size(); ++r)
    for (const Result& result : report.runs[r].results) visit(r, report.runs[r], result);
}

// For sentences and headings.

/// What a run is called among all of a report: its machine's name, with its number where several have that name.
std::string run_name(const Report& report, std::size_t run);
/// "AMD EPYC (opencl, rtc)"; of several runs also whose: "laptop: AMD EPYC (opencl, rtc)".
std::string device_text(const Report& report, std::size_t run, const DeviceReport& device);
/// The same where a report has several devices or runs, else nothing.
std::string device_if_several(const Report& report, std::size_t run, const Result& result);
/// "S/16 relu/L, bf16"; with several devices "S/16 relu/L, bf16, AMD EPYC (opencl, rtc)".
std::string result_text(const Report& report, std::size_t run, const Result& result);
/// "blocks.7.attn" → "block 7, attention output"
std::string layer_text(const std::string& layer);
/// Null if it was not measured.
const Speed* speed_of(const Result& result, Pass pass, std::int64_t batch);
/// Who computed a result's products, each once: "onemkl", "builtin".
std::vector<std::string> providers_of(const Result& result);
/// A sentence for each device and each combination that failed.
std::vector<std::string> failures_of(const Run& run);

}  // namespace sylvit::report
