// What the device's GEMM reaches: the yardstick that speeds are compared with. It is no limit: other work may be
// faster.
#pragma once

#include <sylvit/gemm.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/device_tensors.hpp"
#include "bench/timing.hpp"

namespace sylvit::bench {

/// A product of 1024 x 1024 matrices of one type, by whichever provider is the fastest.
class Yardstick {
 public:
  static constexpr std::int64_t size = 1024;

  explicit Yardstick(const Device& device, DType dtype = DType::f32)
      : device_(device), tensors_(device, "the benchmark") {
    const Gemm product{.a = tensors_.random(dtype, {size, size}),
                       .b = tensors_.random(dtype, {size, size}),
                       .c = tensors_.empty(dtype, {size, size})};
    for (const GemmProvider provider : gemm_providers(device, product)) {
      Contestant& contestant = contestants_.emplace_back(Contestant{product});
      contestant.product.provider = provider;
      contestant.workspace = tensors_.scratch(gemm_workspace(device, contestant.product));
      run(contestant);
    }
  }

  /// Runs each once and takes the times.
  void measure() {
    for (Contestant& contestant : contestants_) contestant.times.add(milliseconds([&] { run(contestant); }));
  }
  std::size_t count() const { return contestants_.front().times.count(); }
  double gflops() const {
    constexpr auto n = static_cast<double>(size);
    return 2 * n * n * n / fastest().times.best() / 1e6;
  }
  std::string provider() const { return std::string(name_of(*fastest().product.provider)); }

 private:
  struct Contestant {
    Gemm product;
    void* workspace = nullptr;
    Times times = {};
  };

  void run(const Contestant& contestant) const {
    gemm(device_, contestant.product, contestant.workspace);
    device_.wait();
  }
  const Contestant& fastest() const {
    return *std::ranges::min_element(contestants_, {}, [](const Contestant& one) { return one.times.best(); });
  }

  Device device_;
  DeviceTensors tensors_;
  std::vector<Contestant> contestants_;
};

}  // namespace sylvit::bench
