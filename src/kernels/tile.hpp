// The register tile: the one product under every attention kernel.
//
//     tile[r][v] += sum_k left(r, k) * right(k, v)         r < rows, v < columns
//
//                     columns vectors, `lanes` work-items wide
//                    +-----------------+-----------------+
//      right(k, .)   |  v = 0          |  v = 1          |   one vector load each, shared by all rows
//                    +-----------------+-----------------+
//      left(0, k) -> | tile[0][0]      | tile[0][1]      |   one broadcast each, shared by all columns
//      left(1, k) -> | tile[1][0]      | tile[1][1]      |
//        ...         |                 |                 |
//                    +-----------------+-----------------+
//
// A work-item holds rows x columns numbers, for the column v * lanes + lane. Where the lanes are work-items of a
// sub-group, the compiler makes a vector of them; with lanes = 1 a row of the tile is one (FloatVector). 6 rows x 2
// vectors of 8 fill the 16 registers of AVX2 without spilling. `left` must be uniform over the lanes. All strides are
// compile-time constants: as run-time values the same loops run at a third of the speed.
//
// The sum over k runs in order, continuing what the tile holds. So a result does not depend on how k was cut in blocks.
#pragma once

#include "kernels/sycl.hpp"

namespace sylvit::kernels {

template <int rows, int columns>
struct RegisterTile {
  float value[rows][columns];

  void clear() {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
#pragma unroll
      for (int v = 0; v < columns; ++v) {
        value[r][v] = 0.0F;
      }
    }
  }
};

/// body(column) for each column of a work-item, which must not depend on each other. With lanes = 1 they are left a
/// loop, of which the compiler makes vectors: unrolled, LLVM 19 takes an exponential number by number.
template <int lanes, int columns, class Body>
[[gnu::always_inline]] inline void for_columns(const Body& body) {
  if constexpr (has_float_vectors && lanes == 1) {
#pragma clang loop vectorize(assume_safety) unroll(disable)
    for (int column = 0; column < columns; ++column) body(column);
  } else {
#pragma unroll
    for (int column = 0; column < columns; ++column) body(column);
  }
}

/// Where the factors lie, in floats: left(r, k) = left[r * left_row + k * left_step],
/// right(k, v) = right[k * right_step + v * lanes], `right` already pointing at this work-item's lane.
struct TileStrides {
  int left_row;
  int left_step;
  int right_step;
  int lanes;
};

/// The product where one work-item holds whole rows of the tile.
template <TileStrides strides, int rows, int columns, class Left>
[[gnu::always_inline]] inline void accumulate_vectors(RegisterTile<rows, columns>& tile, const Left& left,
                                                      const float* right, int count) {
  using Vector = FloatVector<columns>;
  Vector sums[rows];
#pragma unroll
  for (int r = 0; r < rows; ++r) __builtin_memcpy(&sums[r], tile.value[r], sizeof(Vector));
#pragma nounroll
  for (int k = 0; k < count; ++k) {
    Vector shared;
    __builtin_memcpy(&shared, right + k * strides.right_step, sizeof(Vector));
#pragma unroll
    for (int r = 0; r < rows; ++r) add_product(sums[r], left(r, k), shared);
  }
#pragma unroll
  for (int r = 0; r < rows; ++r) __builtin_memcpy(tile.value[r], &sums[r], sizeof(Vector));
}

/// The product with any function left(r, k).
template <TileStrides strides, int rows, int columns, class Left>
[[gnu::always_inline]] inline void accumulate_with(RegisterTile<rows, columns>& tile, const Left& left,
                                                   const float* right, int count) {
  if constexpr (has_float_vectors && strides.lanes == 1) {
    accumulate_vectors<strides>(tile, left, right, count);
    return;
  }
  // Not unrolled: with a run-time count, an unroll pragma here makes DPC++'s CPU compiler mask every lane (a fifth of
  // the speed), and 12 multiply-adds a turn hide the loop's own cost.
  for (int k = 0; k < count; ++k) {
    float shared[columns];
#pragma unroll
    for (int v = 0; v < columns; ++v) {
      shared[v] = right[k * strides.right_step + v * strides.lanes];
    }
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const float factor = left(r, k);
#pragma unroll
      for (int v = 0; v < columns; ++v) {
        tile.value[r][v] = sycl::fma(factor, shared[v], tile.value[r][v]);
      }
    }
  }
}

template <TileStrides strides, int rows, int columns>
[[gnu::always_inline]] inline void accumulate(RegisterTile<rows, columns>& tile, const float* left, const float* right,
                                              int count) {
  accumulate_with<strides>(
      tile,
      [&](int r, int k) __attribute__((always_inline)) { return left[r * strides.left_row + k * strides.left_step]; },
      right, count);
}

/// The same with each row of the left factor at a place of its own.
template <TileStrides strides, int rows, int columns>
[[gnu::always_inline]] inline void accumulate_rows(RegisterTile<rows, columns>& tile, const float* const (&left)[rows],
                                                   const float* right, int count) {
  accumulate_with<strides>(
      tile, [&](int r, int k) __attribute__((always_inline)) { return left[r][k]; }, right, count);
}

}  // namespace sylvit::kernels
