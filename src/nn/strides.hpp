// Tensors of rows as kernels see them.
#pragma once

#include <sylvit/tensor.hpp>

#include "kernels/attention_common.hpp"

namespace sylvit::nn {

/// Of [rows, channels], [batch, rows, channels] or [batch, heads, rows, channels]: what lies between two sequences, two
/// heads and two rows, 0 for an axis that is not there. All 0 of a view that is not there.
inline kernels::AttentionStrides strides_of(const TensorView& view) {
  if (!view) return {};
  const std::size_t rank = view.shape().rank();
  return {rank > 2 ? view.stride(0) : 0, rank > 3 ? view.stride(1) : 0, view.stride(rank - 2)};
}

}  // namespace sylvit::nn
