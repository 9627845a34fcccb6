// The speed of models on devices: everything that is compared runs by turns, so that what slows the machine down slows
// all alike.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "cli/bandwidth.hpp"
#include "cli/ceiling.hpp"
#include "cli/compare_request.hpp"

namespace sylvit::cli::compare {

/// A model in a type on a device, and where its result goes.
struct Variant {
  Device device;
  std::size_t device_position;
  const Model* model;
  DType dtype;
  Result* result;
};

/// A device's own limits, measured while the models are.
class Ceilings {
 public:
  Ceilings(const Device& device, const std::vector<DType>& dtypes);
  void measure();
  void write_to(DeviceReport& report) const;

 private:
  std::map<DType, Ceiling> compute_;
  Bandwidth bandwidth_;
};

/// A model on its device, ready for passes over batches up to a size.
class SpeedBench {
 public:
  /// `backward`: each pass is forward and backward, as a step of training without its optimiser.
  SpeedBench(const Variant& variant, std::int64_t largest_batch, bool backward);
  ~SpeedBench();
  SpeedBench(const SpeedBench&) = delete;
  SpeedBench& operator=(const SpeedBench&) = delete;

  /// One pass, to its end.
  void run(std::int64_t batch);
  /// One pass, and the bytes that its steps move at least.
  double observed_bytes(std::int64_t batch);
  /// Of a model that was made for this batch.
  std::int64_t peak_bytes(std::int64_t batch) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// What a SpeedBench will allocate, about.
std::size_t planned_bytes(const Variant& variant, std::int64_t largest_batch, bool backward);

/// The time of each kind of layer in a forward pass, on a device that was opened with profiling.
std::vector<LayerTime> layer_times(const Device& profiling, const Model& model, DType dtype, std::int64_t batch);

}  // namespace sylvit::cli::compare
