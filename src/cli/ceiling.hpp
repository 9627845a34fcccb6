// What the device's GEMM reaches: the ceiling that bench commands compare with.
#pragma once

#include <sylvit/gemm.hpp>

#include "cli/device_tensors.hpp"
#include "cli/timing.hpp"

namespace sylvit::cli {

/// An f32 product of 1024 x 1024 matrices, by the provider that the library would choose.
class Ceiling {
 public:
  static constexpr std::int64_t size = 1024;

  explicit Ceiling(const Device& device)
      : device_(device),
        tensors_(device, "the benchmark"),
        gemm_{.a = tensors_.random(DType::f32, {size, size}),
              .b = tensors_.random(DType::f32, {size, size}),
              .c = tensors_.empty(DType::f32, {size, size})},
        workspace_(tensors_.scratch(gemm_workspace(device, gemm_))) {
    run();
  }

  /// Runs once and takes the time.
  void measure() {
    times_.add(milliseconds([&] { run(); }));
  }
  std::size_t count() const { return times_.count(); }
  double gflops() const {
    constexpr auto n = static_cast<double>(size);
    return 2 * n * n * n / times_.best() / 1e6;
  }
  std::string provider() const { return gemm_providers(device_, gemm_).front(); }

 private:
  void run() {
    gemm(device_, gemm_, workspace_);
    device_.wait();
  }

  Device device_;
  DeviceTensors tensors_;
  Gemm gemm_;
  void* workspace_;
  Times times_;
};

}  // namespace sylvit::cli
