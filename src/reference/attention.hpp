// The reference: attention and its gradients in plain fp64, written to be read beside the maths rather than to be fast.
//
//   s_ij = scale · norm(q_i) · norm(k_j)                   norm: layer norm over d, or nothing
//   w_ij = m_h · softmax_j(s_ij)                           softmax
//   w_ij = m_h · N^-α_h · h(s_ij)                          every other score
//   o_i  = Σ_j w_ij v_j                                    over the keys that query i sees
//
// N, the divisor, is the number of keys that the sequence really has unless the caller gives one; a causal mask does
// not change it. Tensors are dense and row-major.
#pragma once

#include <sylvit/score.hpp>

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/layer_norm.hpp"

namespace sylvit::reference {

struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;  // query head h reads key and value head h / (heads / kv_heads)
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  std::int64_t head_size = 1;
};

struct AttentionProblem {
  AttentionShape shape;
  Score score = Score::softmax;
  double alpha = 1;
  std::optional<double> scale;    // 1/sqrt(d) when absent
  std::optional<double> divisor;  // the number of keys of each sequence when absent
  bool causal = false;            // query i sees the keys j <= i, also when there are more keys than queries
  bool qk_norm = false;
  double epsilon = 1e-6;

  std::vector<double> q;  // [B, H, Lq, d]
  std::vector<double> k;  // [B, Hkv, Lk, d]
  std::vector<double> v;  // [B, Hkv, Lk, d]
  // Empty when absent.
  std::vector<std::int64_t> lengths;  // [B]: keys j >= lengths[b] do not exist, and their data is never read
  std::vector<double> head_scale;     // [H]: m
  std::vector<double> head_alpha;     // [H]: replaces alpha; not for softmax, which has no α
  NormParameters q_norm;              // [d] each; used when qk_norm is set
  NormParameters k_norm;
};

struct AttentionOutput {
  std::vector<double> o;            // [B, H, Lq, d]; zeros for a query that sees no key
  std::vector<double> log_sum_exp;  // [B, H, Lq] of s, softmax only; -infinity for a query that sees no key
};

/// Each is shaped like what it is the gradient of. The gradient of an absent parameter is that at its default, so that
/// it is always there: multiplier and α have [H] (α for point-wise scores only), the norms [d] (with qk_norm only).
struct AttentionGradients {
  std::vector<double> q;
  std::vector<double> k;
  std::vector<double> v;
  std::vector<double> head_scale;
  std::vector<double> head_alpha;
  NormParameters q_norm;
  NormParameters k_norm;
};

/// Point-wise h(s) and h'(s); not for softmax. At a kink the slope is that of the flat side, as in PyTorch.
/// At ±infinity they are what IEEE arithmetic makes of the formula (gelu(-inf) = -inf · 0 = NaN).
double score_value(Score score, double s);
double score_slope(Score score, double s);

/// All three throw Error when sizes do not agree or a number makes no sense.
AttentionOutput attention_forward(const AttentionProblem& problem);
AttentionGradients attention_backward(const AttentionProblem& problem, const std::vector<double>& grad_o);
/// s [B, H, Lq, Lk], NaN where the query does not see the key: for tests that must know which scores are near a kink.
std::vector<double> attention_scores(const AttentionProblem& problem);

}  // namespace sylvit::reference
