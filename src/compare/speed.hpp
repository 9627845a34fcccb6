// The speed of models on devices: everything that is compared runs interleaved, so that what slows the machine down
// slows all alike.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "bench/bandwidth.hpp"
#include "bench/yardstick.hpp"
#include "compare/request.hpp"

namespace sylvit::compare {

/// What a device's products and its memory reach, measured while the models are.
class Yardsticks {
 public:
  Yardsticks(const Device& device, const std::vector<DType>& dtypes);
  void measure();
  void write_to(DeviceReport& report) const;

 private:
  std::map<DType, Yardstick> compute_;
  Bandwidth bandwidth_;
};

/// What is to be seen of one pass.
struct Observed {
  std::vector<VitStep> steps;      ///< of its model
  std::vector<EngineUse> engines;  ///< of its products and its attention
};

/// A model on a device, ready for passes over batches up to a size.
class SpeedBench {
 public:
  /// `pass`: forward, or forward_backward.
  SpeedBench(const Device& device, const Model& model, DType dtype, std::int64_t largest_batch, Pass pass);
  ~SpeedBench();
  SpeedBench(const SpeedBench&) = delete;
  SpeedBench& operator=(const SpeedBench&) = delete;

  /// One pass, to its end.
  void run(std::int64_t batch);
  /// One pass that is looked at.
  Observed observed(std::int64_t batch);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// What a SpeedBench allocates.
std::size_t bench_bytes(const Device& device, const Model& model, DType dtype, std::int64_t largest_batch, Pass pass);

/// The time of each kind of layer in a forward pass, on a device that was opened with profiling.
class LayerBench {
 public:
  LayerBench(const Device& profiling, const Model& model, DType dtype, std::int64_t batch);
  /// Reads the device's clock: not in a rehearsal.
  std::vector<LayerTime> times() const;

 private:
  std::vector<std::vector<VitStep>> passes_;
};

}  // namespace sylvit::compare
