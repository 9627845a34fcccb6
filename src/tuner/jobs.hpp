// What `sylvit tune` is asked to tune, as a list of jobs: each ends in one record of the overlay.
#pragma once

#include <sylvit/device.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tuner/candidates.hpp"
#include "tuner/work.hpp"

namespace sylvit::tuner {

struct TuneRequest {
  std::vector<std::string> kernels = {"attention_forward", "attention_backward", "layer_norm", "gemm", "gemm_provider"};
  std::string shapes = "vit";  ///< vit, long, or a file with a shape a line
  std::vector<std::string> dtypes = {"f32"};
  std::vector<std::string> scores = {"relu", "softmax"};
  bool spread = false;  ///< records also serve the head sizes below and the lengths around what is measured
};

struct TuneJob {
  std::string text;    ///< "attention_forward f32 relu 8,6,197,64"
  tuning::Record key;  ///< what its record will serve; without numbers
  Workload workload;
  double work = 0;                      ///< floating-point operations, or bytes
  std::string unit;                     ///< "GFLOP/s" or "GB/s"
  std::vector<tuning::Record> choices;  ///< instead of enumerating tile numbers: the providers
  std::function<std::unique_ptr<Bench>(const Device& device)> bench;
  /// Other work that the record will serve: for point-wise scores, one that is not cheap. Or nothing.
  std::function<std::unique_ptr<Bench>(const Device& device)> other;

  double speed(double ms) const { return work / ms / 1e6; }
};

/// Throws Error for a name or a shape that makes no sense.
std::vector<TuneJob> tune_jobs(const Device& device, const TuneRequest& request);

}  // namespace sylvit::tuner
