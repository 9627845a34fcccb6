// One attention problem, computed on the device and by the fp64 reference, and the comparison of the two.
#pragma once

#include <sylvit/attention.hpp>

#include <optional>
#include <string>
#include <vector>

#include "reference/attention.hpp"
#include "support.hpp"

namespace sylvit::test {

struct AttentionCase {
  std::int64_t batch = 2, heads = 2, kv_heads = 2, queries = 33, keys = 33, head_size = 64;
  Score score = Score::relu;
  DType dtype = DType::f32;
  bool causal = false;
  bool qk_norm = false;
  bool norm_parameters = true;
  bool head_scale = false;
  bool head_alpha = false;
  float alpha = 1.0F;
  float divisor = 0.0F;
  std::optional<float> scale = {};
  std::vector<std::int32_t> lengths = {};
  bool packed = false;  ///< q, k, v are slices of one buffer, and so are their gradients
  float amplitude = 1.0F;

  std::string text() const;
};

/// Everything that comes out, as f32, dense.
struct AttentionResult {
  std::vector<float> o, lse, dq, dk, dv, dhead_scale, dhead_alpha, dq_weight, dq_bias, dk_weight, dk_bias;
  bool operator==(const AttentionResult& other) const;  ///< bit by bit
};

/// The inputs of a case: random, rounded to its type, so that both sides compute from the same numbers.
struct AttentionData {
  std::vector<float> q, k, v, grad_o, head_scale, head_alpha, q_weight, q_bias, k_weight, k_bias;

  explicit AttentionData(const AttentionCase& wanted, unsigned seed = 1);
};

/// Runs forward and backward on the device. Checks that inputs stay as they are and that nothing beside the outputs is
/// written.
AttentionResult run_attention(const AttentionCase& wanted, const AttentionData& data);

/// Compares with the reference; false (with a message) on a difference beyond the bound, or when what is expected is
/// nearly all zero, so that the comparison would mean nothing.
bool agrees_with_reference(const AttentionCase& wanted, const AttentionData& data, const AttentionResult& got);

/// Builds the kernels of many cases in few batches.
void prepare_attention(const std::vector<AttentionCase>& cases);

}  // namespace sylvit::test
