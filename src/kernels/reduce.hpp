// Sum along rows:
//
//     out[r] = Σ_c in[r, c]          in: [rows, columns], row r starting at in + r * row_stride; out: f32
//
// One work-group owns a row. Work-item w adds columns w, w + work_items, w + 2 work_items, … in that order; the partial
// sums meet in local memory and are added pair-wise. The order depends on the number of columns alone, so a row's sum
// has the same bits whatever else is in the batch and however often it is computed.
//
//     row r:    | 0 1 2 … w-1 | 0 1 2 … w-1 | 0 1 …          columns, by owning work-item
//     local:      p0 p1 p2 … pw-1      then p[i] += p[i + w/2], p[i] += p[i + w/4], …, p[0]
#pragma once

#include <sylvit/float16.hpp>

#include "kernels/sycl.hpp"

namespace sylvit::kernels {

struct ReduceRowsConfig {
  int work_items;

  constexpr int local_floats() const { return work_items; }
  /// Pair-wise addition needs a power of two.
  constexpr bool valid() const { return work_items > 0 && (work_items & (work_items - 1)) == 0; }
};

struct ReduceRowsArguments {
  const void* in;
  float* out;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t row_stride;
};

template <class T, ReduceRowsConfig config>
struct ReduceRows {
  using Arguments = ReduceRowsArguments;
  static_assert(config.valid());

  static void run(const ReduceRowsArguments& arguments, const sycl::nd_item<3>& item, float* partial) {
    const std::int64_t row = group_of(item, 2);
    const T* in = static_cast<const T*>(arguments.in) + row * arguments.row_stride;
    const int lane = lane_of(item);
    float sum = 0.0F;
    for (std::int64_t column = lane; column < arguments.columns; column += config.work_items)
      sum += static_cast<float>(in[column]);
    partial[lane] = sum;
    barrier(item);
    for (int half = config.work_items / 2; half > 0; half /= 2) {
      if (lane < half) partial[lane] += partial[lane + half];
      barrier(item);
    }
    if (lane == 0) arguments.out[row] = partial[0];
  }
};

}  // namespace sylvit::kernels
