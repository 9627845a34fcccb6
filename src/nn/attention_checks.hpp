// What attention refuses, before anything is launched: one sentence each that names the tensor and the numbers.
#pragma once

#include <sylvit/attention.hpp>

namespace sylvit::nn {

/// Throws Error unless there is a custom score where the score is one, and only there.
void check_custom_score(Score score, const CustomScore& custom);

/// The sizes that all tensors of a call agree on.
struct AttentionSizes {
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t head_size;
  DType dtype;
};

AttentionSizes check_inputs(const AttentionDescription& description, const AttentionInputs& inputs);
void check_outputs(const AttentionDescription& description, const AttentionSizes& sizes, const AttentionInputs& inputs,
                   const TensorView& o, const TensorView& lse);
void check_gradients(const AttentionDescription& description, const AttentionSizes& sizes,
                     const AttentionInputs& inputs, const TensorView& o, const TensorView& lse,
                     const TensorView& o_gradient, const AttentionGradients& gradients);

}  // namespace sylvit::nn
