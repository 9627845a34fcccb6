// Attention, forward and backward, for every score from one description:
//
//     s_ij = scale · norm(q_i) · norm(k_j)                   norm: layer norm over d, or nothing
//     point-wise   o_i = m_h · N^-α_h · Σ_j h(s_ij) v_j      nothing is saved for the backward pass
//     softmax      o_i = m_h · Σ_j softmax_j(s_ij) v_j       one number a row is saved
//
// over the keys j that query i sees. All functions return at once, once their kernels are there (rtc builds them at
// first use, or in attention_prepare): they add work to the device's queue, after the given events, and return the
// event that ends it. Nothing is allocated; scratch memory comes from the caller, as large as the workspace query says.
// Results are bitwise repeatable, and those of a sequence do not depend on what else is in the batch.
//
// Threads: any number may call these functions at once, also for one Device and shared inputs, as long as outputs and
// workspaces are different.
#pragma once

#include <sylvit/custom_score.hpp>
#include <sylvit/device.hpp>
#include <sylvit/export.hpp>
#include <sylvit/score.hpp>
#include <sylvit/tensor.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace sylvit {

/// Which attention it is.
struct AttentionDescription {
  Score score = Score::softmax;   ///< h, or softmax
  CustomScore custom_score = {};  ///< with Score::custom: which
  float alpha = 1.0F;             ///< α in [0, 2]; point-wise scores only
  float divisor = 0.0F;  ///< N; 0: the number of keys that the query's own sequence has, whatever it is padded to
  std::optional<float> scale = {};  ///< 1/sqrt(d) when absent
  bool causal = false;              ///< query i sees keys j <= i only; N stays what it is
  bool qk_norm = false;             ///< layer norm over d of each query and key
  float norm_epsilon = 1e-6F;       ///< of qk_norm
};

/// What goes in. q, k, v share one type (f32, bf16, f16); strides are free but for the last axis, which is contiguous,
/// so all three may be slices of one packed buffer. Optional views are left empty. Everything but q, k, v and lengths
/// is f32.
struct AttentionInputs {
  TensorView q = {};              ///< [B, H, Lq, d]; d a multiple of 8 from 16 to 256
  TensorView k = {};              ///< [B, Hkv, Lk, d]; H a multiple of Hkv
  TensorView v = {};              ///< [B, Hkv, Lk, d]
  TensorView lengths = {};        ///< [B], i32: keys that each sequence has, 0 to Lk. What lies beyond is never read.
  TensorView head_scale = {};     ///< [H]: the factor m of each head
  TensorView head_alpha = {};     ///< [H]: α of each head, instead of the description's; point-wise scores only
  TensorView q_norm_weight = {};  ///< [d], with qk_norm; absent: 1
  TensorView q_norm_bias = {};    ///< [d], with qk_norm; absent: 0
  TensorView k_norm_weight = {};  ///< [d], with qk_norm; absent: 1
  TensorView k_norm_bias = {};    ///< [d], with qk_norm; absent: 0
};

/// Gradients to compute; q, k, v always, the others where a view is given, also where the parameter itself
/// is absent (then at its default). Error where the description has no such parameter.
struct AttentionGradients {
  TensorView q = {};              ///< like the input
  TensorView k = {};              ///< like the input
  TensorView v = {};              ///< like the input
  TensorView head_scale = {};     ///< [H], f32, as are the following
  TensorView head_alpha = {};     ///< [H]
  TensorView q_norm_weight = {};  ///< [d]
  TensorView q_norm_bias = {};    ///< [d]
  TensorView k_norm_weight = {};  ///< [d]
  TensorView k_norm_bias = {};    ///< [d]
};

/// Bytes of scratch memory on the device that attention_forward() needs; may be 0.
SYLVIT_API std::size_t attention_forward_workspace(const Device& device, const AttentionDescription& description,
                                                   const AttentionInputs& inputs);
/// Bytes of scratch memory on the device that attention_backward() needs; may be 0.
SYLVIT_API std::size_t attention_backward_workspace(const Device& device, const AttentionDescription& description,
                                                    const AttentionInputs& inputs, const AttentionGradients& gradients);

/// o: [B, H, Lq, d] of q's type. lse: for softmax, [B, H, Lq] dense f32, the logarithm of each row's sum, which the
/// backward pass needs; leave it empty otherwise. A query that sees no key gets zeros.
/// Throws Error that names the tensor and the numbers when something does not fit.
SYLVIT_API sycl::event attention_forward(const Device& device, const AttentionDescription& description,
                                         const AttentionInputs& inputs, const TensorView& o, const TensorView& lse,
                                         void* workspace, std::span<const sycl::event> after = {});

/// o and lse are the forward pass's, needed for softmax only. Gradients are overwritten, not added to; those of q, k, v
/// have q's type and may be slices of one packed buffer.
SYLVIT_API sycl::event attention_backward(const Device& device, const AttentionDescription& description,
                                          const AttentionInputs& inputs, const TensorView& o, const TensorView& lse,
                                          const TensorView& o_gradient, const AttentionGradients& gradients,
                                          void* workspace, std::span<const sycl::event> after = {});

/// Builds every kernel that the forward pass and, with `backward`, the backward pass over such inputs need, in one
/// batch. Waits.
SYLVIT_API void attention_prepare(const Device& device, const AttentionDescription& description,
                                  const AttentionInputs& inputs, bool backward);

/// Which tile numbers serve these inputs and where they come from, for people.
struct AttentionPlan {
  std::string config;      ///< the tile numbers
  std::string source;      ///< the table's name, and what it says of where the numbers come from
  bool estimated = false;  ///< nobody has measured these numbers on such a device
};
/// Of the forward pass.
SYLVIT_API AttentionPlan attention_forward_plan(const Device& device, const AttentionDescription& description,
                                                const AttentionInputs& inputs);
/// Of the backward pass.
SYLVIT_API AttentionPlan attention_backward_plan(const Device& device, const AttentionDescription& description,
                                                 const AttentionInputs& inputs);

/// Throws Error naming the sequence when a length is negative or above `keys`. (The device's copy is not looked at by
/// the functions above, which do not wait; kernels clamp it.)
SYLVIT_API void check_lengths(std::span<const std::int32_t> lengths, std::int64_t keys);

}  // namespace sylvit
