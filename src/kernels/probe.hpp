// The kernel that a device must run before it is offered: it needs what every other kernel needs (global memory, local
// memory, a barrier, bf16 as a storage type), and nothing more.
//
//     out[i] = float(bf16(i)) + (w - 1 - i)        exact for i < w <= 256
#pragma once

#include <sylvit/float16.hpp>

#include "kernels/sycl.hpp"

namespace sylvit::kernels {

struct ProbeArguments {
  float* out;
};

struct Probe {
  using Arguments = ProbeArguments;
  static constexpr int work_items = 16;

  static void run(const ProbeArguments& arguments, const sycl::nd_item<3>& item, float* local) {
    const int lane = lane_of(item);
    local[work_items - 1 - lane] = static_cast<float>(lane);
    barrier(item);
    arguments.out[lane] = static_cast<float>(bf16(static_cast<float>(lane))) + local[lane];
  }
};

}  // namespace sylvit::kernels
