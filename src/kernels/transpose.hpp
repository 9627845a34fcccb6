// Matrix transpose:
//
//     out[c, r] = in[r, c]           in: [rows, columns], out: [columns, rows], both with their own row strides
//
// A work-group of tile x rows work-items owns a tile x tile square. It reads the square along the rows of `in` and
// writes it along the rows of `out`, so that both sides touch neighbouring addresses; the square turns in local memory,
// whose rows are one element longer than the tile to keep a column out of one memory bank.
//
//              in                        local                       out
//        |<-- tile -->|            |<-- tile+1 -->|            |<-- tile -->|
//      - +------------+          - +------------+-+          - +------------+
//    tile| a b c …    |  ----->    | a b c …    | |  ----->    | a d …      |
//      - | d e f …    |            | d e f …    | |            | b e …      |
//        +------------+            +------------+-+            | c f …      |
#pragma once

#include <sylvit/float16.hpp>

#include "kernels/sycl.hpp"

namespace sylvit::kernels {

struct TransposeConfig {
  int tile;
  int rows;

  constexpr int work_items() const { return tile * rows; }
  constexpr int local_floats() const { return tile * (tile + 1); }
  constexpr bool valid() const { return tile > 0 && rows > 0 && tile % rows == 0; }
};

struct TransposeArguments {
  const void* in;
  void* out;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t in_stride;
  std::int64_t out_stride;
};

template <class T, TransposeConfig config>
struct Transpose {
  using Arguments = TransposeArguments;
  static_assert(config.valid());

  static void run(const TransposeArguments& arguments, const sycl::nd_item<3>& item, float* local) {
    const T* in = static_cast<const T*>(arguments.in);
    T* out = static_cast<T*>(arguments.out);
    T* square = reinterpret_cast<T*>(local);
    constexpr int leading = config.tile + 1;
    const std::int64_t row0 = group_of(item, 1) * config.tile;
    const std::int64_t column0 = group_of(item, 2) * config.tile;
    const int x = lane_of(item) % config.tile;
    const int y0 = lane_of(item) / config.tile;
    for (int y = y0; y < config.tile; y += config.rows)
      if (row0 + y < arguments.rows && column0 + x < arguments.columns)
        square[y * leading + x] = in[(row0 + y) * arguments.in_stride + column0 + x];
    barrier(item);
    for (int y = y0; y < config.tile; y += config.rows)
      if (column0 + y < arguments.columns && row0 + x < arguments.rows)
        out[(column0 + y) * arguments.out_stride + row0 + x] = square[x * leading + y];
  }
};

}  // namespace sylvit::kernels
