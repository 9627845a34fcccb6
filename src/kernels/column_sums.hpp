// Sums along columns, as the gradients of biases are:
//
//     out[block, c] = Σ_r in[r, c]        over the rows r of a block of `rows_of_block`
//
//                 columns →
//            | 0 1 … | 0 1 … |        a work-group: lanes x columns columns of one block of rows; a lane adds
//      rows  | 0 1 … | 0 1 … |        its columns from the first row to the last
//        ↓   | 0 1 … | 0 1 … |
//
// Run once over blocks of rows and once more over what that gives, as a single block, it sums everything. The order of
// addition depends on the number of rows and of blocks alone, not on the tile numbers.
//
// The second run may take two matrices at once: weights' and biases' shares, which lie side by side.
#pragma once

#include <sylvit/float16.hpp>

#include "kernels/description.hpp"
#include "kernels/sycl.hpp"

namespace sylvit::kernels {

struct ColumnSumsConfig {
  int lanes;
  int columns;

  static constexpr const char *name = "ColumnSumsConfig", *record = "column_sums";
  template <class Visit>
  static constexpr void members(const Visit& visit) {
    visit("lanes", &ColumnSumsConfig::lanes);
    visit("columns", &ColumnSumsConfig::columns);
  }
  constexpr int sub_group_size() const { return sub_group_of_lanes(lanes); }
  constexpr int width() const { return lanes * columns; }
  constexpr int work_items() const { return lanes; }
  constexpr bool valid() const { return lanes > 0 && columns > 0; }
};

/// Launched over (matrices, blocks, ceil(columns / config.width())) work-groups.
struct ColumnSumsArguments {
  const void* in;
  float* out[2];  ///< of the first and the second matrix, each [blocks, columns]; a null one is not wanted
  std::int64_t rows;
  std::int64_t rows_of_block;
  std::int64_t row_stride;
  std::int64_t second;  ///< where the second matrix begins
  int columns;
};

template <class T, ColumnSumsConfig config>
struct ColumnSums {
  using Arguments = ColumnSumsArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    const bool is_second = group_of(item, 0) != 0;
    float* out = is_second ? args.out[1] : args.out[0];
    if (out == nullptr) return;
    const std::int64_t block = group_of(item, 1);
    const std::int64_t first_row = block * args.rows_of_block;
    const std::int64_t end = first_row + args.rows_of_block < args.rows ? first_row + args.rows_of_block : args.rows;
    const T* in = static_cast<const T*>(args.in) + (is_second ? args.second : 0) + first_row * args.row_stride;
    out += block * args.columns;
    const int lane = lane_of(item);
    const int first = static_cast<int>(group_of(item, 2)) * config.width();
    if (first + config.width() <= args.columns) {
      add<config.columns>(in + first + lane, args.row_stride, end - first_row, out + first + lane);
    } else {
      for (int c = first + lane; c < args.columns; c += config.lanes)
        add<1>(in + c, args.row_stride, end - first_row, out + c);
    }
  }

 private:
  template <int columns>
  [[gnu::always_inline]] static void add(const T* in, std::int64_t row_stride, std::int64_t rows, float* out) {
    float sums[columns] = {};
    for (std::int64_t row = 0; row < rows; ++row) {
#pragma unroll
      for (int x = 0; x < columns; ++x) sums[x] += static_cast<float>(in[row * row_stride + x * config.lanes]);
    }
#pragma unroll
    for (int x = 0; x < columns; ++x) out[x * config.lanes] = sums[x];
  }
};

struct ColumnSumsKernel : Description<ColumnSumsConfig, ColumnSumsArguments, Parameters::type> {
  static constexpr const char *header = "column_sums.hpp", *functor = "ColumnSums", *arguments = "ColumnSumsArguments";
};

}  // namespace sylvit::kernels
