// The linear-in-L pass of the score `identity`: when it is taken, how much memory it needs, and its launches.
#pragma once

#include <sylvit/attention.hpp>

#include <vector>

#include "kernels/attention_linear.hpp"
#include "nn/attention_checks.hpp"

namespace sylvit::nn {

/// Is the pass allowed and cheaper than going over all pairs of a query and a key? Never a question of the batch,
/// because the two ways round differently.
bool linear_forward_wanted(const AttentionDescription& description, const AttentionSizes& sizes);
bool linear_backward_wanted(const AttentionDescription& description, const AttentionSizes& sizes);

/// Floats of scratch memory.
std::int64_t linear_forward_floats(const AttentionSizes& sizes, const kernels::AttentionLinearConfig& config);
std::int64_t linear_backward_floats(const AttentionSizes& sizes, const kernels::AttentionLinearConfig& config);

/// Queries and keys after their norm, if there is one; of the gradients only those that a pass writes.
struct LinearTensors {
  TensorView q = {}, k = {}, v = {};
  TensorView lengths = {};
  TensorView o = {};  ///< forward: the output; backward: its gradient
  TensorView q_gradient = {}, k_gradient = {}, v_gradient = {};
  float* row_dots = nullptr;  ///< backward: wanted for the gradients of head_scale and head_alpha
};

class LinearPass {
 public:
  LinearPass(const Device& device, const AttentionSizes& sizes, const kernels::AttentionLinearConfig& config,
             const kernels::AttentionLinearFactor& factor, const LinearTensors& tensors, float* memory)
      : device_(device), sizes_(sizes), config_(config), factor_(factor), tensors_(tensors), memory_(memory) {}

  /// Both launch after the events in `last` and leave there the one that ends the pass.
  void forward(std::vector<sycl::event>& last) const;
  void backward(std::vector<sycl::event>& last) const;

 private:
  const Device& device_;
  const AttentionSizes& sizes_;
  const kernels::AttentionLinearConfig& config_;
  kernels::AttentionLinearFactor factor_;
  const LinearTensors& tensors_;
  float* memory_;

  enum class Rows { of_queries, of_keys };
  kernels::AttentionLinearRows rows(Rows which) const;
  void sum(std::vector<sycl::event>& last, Rows which, const TensorView& left, const TensorView& right,
           const kernels::AttentionLinearFactor& factor, float* to, float* transposed) const;
  void product(std::vector<sycl::event>& last, Rows which, const TensorView& in, const float* matrix,
               const TensorView& out, const kernels::AttentionLinearFactor& factor, const TensorView& other = {},
               float* row_dots = nullptr) const;
};

}  // namespace sylvit::nn
