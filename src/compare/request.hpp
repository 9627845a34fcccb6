// What is to be compared: devices, models, types, inputs, and how long to measure.
#pragma once

#include <sylvit/vit.hpp>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "reference/vit.hpp"
#include "report/report.hpp"

namespace sylvit::bench {}
namespace sylvit::options {}

namespace sylvit::compare {

// A comparison is made of their words.
using namespace bench;
using namespace options;
using namespace report;

/// A model with its weights, and the images that go through it, in host memory: the same for every device.
struct Model {
  VitConfig config;
  ModelReport report;
  std::vector<std::vector<float>> values;  ///< of vit_parameters(config), in that order
  std::vector<float> images;               ///< [images, channels, height, width]
  std::vector<std::int64_t> labels;        ///< of the images
  std::int64_t judged = 0;                 ///< so many of them, the first, go through the reference too

  std::int64_t image_count() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t image_values() const { return config.channels * config.image_height * config.image_width; }
};

enum class GradientsOf : std::uint8_t { none, tiny, model };

/// Which piece of work begins; `device` and `model` are empty where it is about all of them.
struct Stage {
  std::string device, model, dtype, what;
};

struct Request {
  std::vector<DeviceInfo> devices;
  std::vector<Model> models;
  std::vector<DType> dtypes;  ///< empty: all that a device has
  std::int64_t batch = 4;
  std::vector<std::int64_t> sweep;  ///< batch sizes of forward passes
  bool backward = true;             ///< time forward_backward passes too
  GradientsOf gradients = GradientsOf::tiny;
  std::map<DType, double> tolerances;
  double seconds = 0.5;  ///< of measuring each speed, at least
  int least_rounds = 6;  ///< with fewer, no interval covers a median in 95 of 100 cases
  /// Told before each stage: for showing progress. What it throws counts as a failure of the device that the stage is
  /// about, which is how tests make one fail.
  std::function<void(const Stage&)> at_stage = [](const Stage&) {};
};

/// The types that a device is asked to compute in.
std::vector<DType> dtypes_of(const Request& request, const DeviceInfo& device);

/// The number of stages that a run without failures has.
std::size_t stages_of(const Request& request);

/// Runs everything. A device or combination that fails is in the report with its error, and the others go on. Throws
/// Error only when there is nothing to run.
Report run(const Request& request);

}  // namespace sylvit::compare
