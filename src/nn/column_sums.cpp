#include "nn/column_sums.hpp"

#include <algorithm>

#include "catalogue/kernel.hpp"
#include "kernels/column_sums.hpp"
#include "nn/tensor_checks.hpp"
#include "tuning/choice.hpp"

namespace sylvit::nn {

namespace {

constexpr std::int64_t fewest_rows = 32;
constexpr std::int64_t most_blocks = 64;

sycl::event launch_sums(const Device& device, DType dtype, std::size_t matrices, RowBlocks blocks,
                        const kernels::ColumnSumsArguments& arguments, Events after) {
  const auto config = tuning::config_for<kernels::ColumnSumsConfig>(tuning::table_for(device), dtype);
  return launch(device, catalogue::kernel<kernels::ColumnSumsKernel>(config, dtype),
                {matrices, static_cast<std::size_t>(blocks.count), divided_up(arguments.columns, config.width())},
                arguments, after);
}

}  // namespace

RowBlocks row_blocks(std::int64_t rows) {
  const std::int64_t rows_of_block = std::max(fewest_rows, (rows + most_blocks - 1) / most_blocks);
  return {(rows + rows_of_block - 1) / rows_of_block, rows_of_block};
}

std::int64_t room_for_row_blocks(std::int64_t rows) {
  return std::min(most_blocks, (rows + fewest_rows - 1) / fewest_rows);
}

std::size_t column_sums_workspace(const TensorView& in) {
  const std::int64_t blocks = room_for_row_blocks(in.extent(0));
  return blocks <= 1 ? 0 : static_cast<std::size_t>(blocks * in.extent(1)) * sizeof(float);
}

sycl::event column_sums(const Device& device, const TensorView& in, const TensorView& out, void* workspace,
                        Events after) {
  require(in.shape().rank() == 2 && is_storage(in) && has_contiguous_rows(in) && fits_int(in.extent(1)) &&
              out.shape() == Shape{in.extent(1)} && out.dtype() == DType::f32 && out.is_dense(),
          "column_sums", "[rows, columns] with contiguous rows and a dense f32 [columns]", in, out);
  require(!in.overlaps(out), "column_sums", "two tensors that do not overlap", in, out);
  const std::int64_t rows = in.extent(0);
  const int columns = static_cast<int>(in.extent(1));
  const RowBlocks blocks = row_blocks(rows);
  if (blocks.count <= 1)
    return launch_sums(device, in.dtype(), 1, {1, blocks.rows_of_block},
                       {.in = in.data(),
                        .out = {out.as<float>(), nullptr},
                        .rows = rows,
                        .rows_of_block = blocks.rows_of_block,
                        .row_stride = in.stride(0),
                        .second = 0,
                        .columns = columns},
                       after);
  require(workspace != nullptr, "column_sums", "the workspace that column_sums_workspace names", in, out);
  float* partial = static_cast<float*>(workspace);
  const sycl::event cut = launch_sums(device, in.dtype(), 1, blocks,
                                      {.in = in.data(),
                                       .out = {partial, nullptr},
                                       .rows = rows,
                                       .rows_of_block = blocks.rows_of_block,
                                       .row_stride = in.stride(0),
                                       .second = 0,
                                       .columns = columns},
                                      after);
  return launch_sums(device, DType::f32, 1, {1, blocks.count},
                     {.in = partial,
                      .out = {out.as<float>(), nullptr},
                      .rows = blocks.count,
                      .rows_of_block = blocks.count,
                      .row_stride = columns,
                      .second = 0,
                      .columns = columns},
                     std::span(&cut, 1));
}

sycl::event sum_block_pairs(const Device& device, const float* partial, std::int64_t blocks, std::int64_t columns,
                            float* first, float* second, Events after) {
  return launch_sums(device, DType::f32, 2, {1, blocks},
                     {.in = partial,
                      .out = {first, second},
                      .rows = blocks,
                      .rows_of_block = blocks,
                      .row_stride = 2 * columns,
                      .second = columns,
                      .columns = static_cast<int>(columns)},
                     after);
}

}  // namespace sylvit::nn
