// Sums over all rows of a matrix: the gradients of biases.
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/tensor.hpp>

#include <cstddef>
#include <cstdint>

#include "nn/basic.hpp"

namespace sylvit::nn {

/// How rows are cut for sums over them: enough blocks to keep a device busy, few enough that their sums cost nothing.
/// It depends on the number of rows alone, so that the bits of a sum do not depend on the device's size.
struct RowBlocks {
  std::int64_t count;
  std::int64_t rows_of_block;
};
RowBlocks row_blocks(std::int64_t rows);
/// At least their number, and for more rows never less: memory that was planned for many rows serves fewer, too, of
/// which there may be more blocks.
std::int64_t room_for_row_blocks(std::int64_t rows);

/// The bytes of device memory that column_sums needs beside its arguments.
std::size_t column_sums_workspace(const TensorView& in);

/// out[c] = Σ_r in[r, c]; in: [rows, columns] with contiguous rows, f32, bf16 or f16; out: dense f32 [columns]. The
/// order of addition depends on the shape alone. No rows give zeros.
sycl::event column_sums(const Device& device, const TensorView& in, const TensorView& out, void* workspace,
                        Events after = {});

/// The last step of a sum whose blocks have been summed already: first[c] = Σ_b partial[b, 0, c] and second[c] =
/// Σ_b partial[b, 1, c] of a dense f32 [blocks, 2, columns]. A null one is left out.
sycl::event sum_block_pairs(const Device& device, const float* partial, std::int64_t blocks, std::int64_t columns,
                            float* first, float* second, Events after = {});

}  // namespace sylvit::nn
