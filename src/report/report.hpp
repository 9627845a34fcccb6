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
};

struct Speed {
  Pass pass = Pass::forward;
  std::int64_t batch = 0;
  Timing ms;
  double images_per_s = unknown;  ///< at the median time, as all that follows
  double gflops = unknown;
  double compute_share = unknown;    ///< of the device's measured GEMM speed in this type
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
  std::vector<std::int64_t> top1;  ///< the class of each image
  std::vector<double> logits;      ///< of the checked images: what merged reports are compared by
};

struct ComputeCeiling {
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
  std::vector<ComputeCeiling> ceilings;
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

/// One call of `sylvit compare`.
struct Run {
  std::string date, command, version, toolchain, compiler, host, system;
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

struct Report {
  std::vector<Run> runs;
  std::vector<Pair> pairs;
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

/// "AMD EPYC (opencl, rtc)"; of several runs also the run: "AMD EPYC (opencl, rtc, run 2)".
std::string device_text(const Report& report, std::size_t run, const DeviceReport& device);
/// "blocks.7.attn" → "block 7, attention output"
std::string layer_text(const std::string& layer);
/// Null if it was not measured.
const Speed* speed_of(const Result& result, Pass pass, std::int64_t batch);
/// A sentence for each device and each combination that failed.
std::vector<std::string> failures_of(const Run& run);

}  // namespace sylvit::report
