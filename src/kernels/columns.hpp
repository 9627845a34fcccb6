// How the work-items of a group share the columns of a row, and how they add up what each of them found:
//
//     row:    | 0 1 … l-1 | 0 1 … l-1 | … |        columns, by owning lane; `columns` such steps stand side by side
//
// Whole steps first and the rest after them, so that no lane is masked in the hot loop. The order in which a lane
// takes its columns, and in which the lanes' sums are added, depends on the width and the configuration alone.
#pragma once

#include "kernels/sycl.hpp"

namespace sylvit::kernels {

/// act(x, c) for this lane's columns c of [begin, end); x < columns names an accumulator that no other column of the
/// same step uses.
template <int lanes, int columns, class Index, class Act>
[[gnu::always_inline]] inline void each_column(Index begin, Index end, int lane, Act&& act) {
  Index first = begin;
  for (; first + lanes * columns <= end; first += lanes * columns)
#pragma unroll
    for (int x = 0; x < columns; ++x) act(x, first + x * lanes + lane);
  for (; first + lanes <= end; first += lanes) act(0, first + lane);
  if (first + lane < end) act(0, first + lane);
}

/// All lanes' values combined pair-wise, in every lane. All lanes must come here; `local` holds one float a lane and is
/// free again afterwards.
template <int lanes, class Combine>
[[gnu::always_inline]] inline float combine_lanes(const sycl::nd_item<3>& item, float* local, float value,
                                                  Combine&& combine) {
  static_assert((lanes & (lanes - 1)) == 0, "pair-wise combination needs a power of two");
  if constexpr (lanes == 1) {
    return value;
  } else {
    const int lane = lane_of(item);
    local[lane] = value;
    barrier(item);
    for (int half = lanes / 2; half > 0; half /= 2) {
      if (lane < half) local[lane] = combine(local[lane], local[lane + half]);
      barrier(item);
    }
    const float total = local[0];
    barrier(item);
    return total;
  }
}

/// The sum of a lane's accumulators, then of all lanes.
template <int lanes, int columns>
[[gnu::always_inline]] inline float sum_lanes(const sycl::nd_item<3>& item, float* local,
                                              const float (&sums)[columns]) {
  float sum = sums[0];
#pragma unroll
  for (int x = 1; x < columns; ++x) sum += sums[x];
  return combine_lanes<lanes>(item, local, sum, [](float a, float b) { return a + b; });
}

}  // namespace sylvit::kernels
