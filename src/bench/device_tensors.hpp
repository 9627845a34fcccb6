// Tensors that a command makes on its device, and the way there and back.
#pragma once

#include <sylvit/memory.hpp>

#include <deque>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace sylvit::bench {

/// Values as a storage type keeps them, and back. For f32, bf16 and f16.
std::vector<std::byte> stored(std::span<const float> values, DType dtype);
std::vector<float> widened(std::span<const std::byte> bytes, DType dtype);

/// Allocates on the device and keeps what it allocated. Copies wait for the device.
class DeviceTensors {
 public:
  /// `purpose` completes "cannot allocate N bytes for …".
  DeviceTensors(Device device, std::string purpose) : device_(std::move(device)), purpose_(std::move(purpose)) {}

  void* scratch(std::size_t bytes);
  TensorView empty(DType dtype, const Shape& shape);
  TensorView upload(std::span<const std::byte> bytes, DType dtype, const Shape& shape);
  /// Normally distributed, the same in each run.
  TensorView random(DType dtype, const Shape& shape);
  /// The same for a dense view.
  void fill_randomly(const TensorView& view);
  /// Of a dense view.
  std::vector<float> download(const TensorView& view) const;

 private:
  Device device_;
  std::string purpose_;
  std::deque<Memory> memory_;
  std::size_t taken_ = 0;
  std::mt19937 generator_{1};
};

}  // namespace sylvit::bench
