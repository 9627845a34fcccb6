// What the device's memory gives and takes: the slope of a roofline.
#pragma once

#include <algorithm>

#include "bench/device_tensors.hpp"
#include "bench/timing.hpp"
#include "nn/activation.hpp"
#include "nn/basic.hpp"
#include "runtime/kernel.hpp"

namespace sylvit::bench {

/// Three f32 streams, x · y → z, and a copy: whichever moves more bytes in a second. Each tensor is larger than caches.
class Bandwidth {
 public:
  explicit Bandwidth(const Device& device) : device_(device), tensors_(device, "the bandwidth's measurement") {
    // A machine with few cores has small caches, and does not need a second for each measurement.
    constexpr std::size_t megabyte = std::size_t{1} << 20;
    const auto units = static_cast<std::size_t>(std::max(1, device.info().compute_units));
    const std::size_t wanted =
        device.info().type == DeviceType::cpu ? std::clamp<std::size_t>(4 * units, 64, 256) : 256;
    const std::size_t bytes = std::min(wanted * megabyte, device.info().memory_bytes / 16);
    const auto rows = static_cast<std::int64_t>(std::max<std::size_t>(1, bytes / (columns * sizeof(float))));
    x_ = tensors_.empty(DType::f32, {rows, columns});
    y_ = tensors_.empty(DType::f32, {rows, columns});
    z_ = tensors_.empty(DType::f32, {rows, columns});
    nn::fill(device_, x_, 1.0F);
    nn::fill(device_, y_, 1.0F);
    nn::fill(device_, z_, 0.0F);
    multiply();
    copy();
  }

  /// Runs each once and takes the times.
  void measure() {
    products_.add(milliseconds([&] { multiply(); }));
    copies_.add(milliseconds([&] { copy(); }));
  }
  /// GB/s at the best time.
  double gbytes_per_s() const {
    const auto bytes = static_cast<double>(x_.span_bytes());
    return std::max(3 * bytes / products_.best(), 2 * bytes / copies_.best()) / 1e6;
  }

 private:
  static constexpr std::int64_t columns = 4096;

  void multiply() const {
    nn::multiply(device_, x_, y_, z_);
    device_.wait();
  }
  void copy() const {
    runtime::copy(device_, z_.data(), x_.data(), x_.span_bytes());
    device_.wait();
  }

  Device device_;
  DeviceTensors tensors_;
  TensorView x_, y_, z_;
  Times products_, copies_;
};

}  // namespace sylvit::bench
