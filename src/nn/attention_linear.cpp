#include "nn/attention_linear.hpp"

#include "base/counts.hpp"
#include "catalogue/kernel.hpp"
#include "nn/strides.hpp"

namespace sylvit::nn {

namespace {

/// All pairs run at a higher share of the peak, in fewer launches.
constexpr double advantage_of_pairs = 1.5;

constexpr kernels::AttentionLinearFactor factor_one{
    .head_scale = nullptr, .head_alpha = nullptr, .scale = 1.0F, .alpha = 0.0F, .divisor = 0.0F};

/// Operations for one key head and the query heads that share it: `pairs` products over queries x keys x d of a query
/// head, against products over d x d x queries (of each query head) and d x d x keys.
bool cheaper(const AttentionDescription& description, const AttentionSizes& sizes, double pairs, double over_queries,
             double over_keys) {
  if (description.score != Score::identity || description.causal) return false;
  const double group = static_cast<double>(sizes.heads) / static_cast<double>(sizes.kv_heads);
  const double queries = group * static_cast<double>(sizes.queries);
  const auto keys = static_cast<double>(sizes.keys);
  const auto head_size = static_cast<double>(sizes.head_size);
  const double linear = (over_queries * queries + over_keys * keys) * head_size;
  return advantage_of_pairs * linear < pairs * queries * keys;
}

using base::size;

/// One matrix for every key head.
std::int64_t floats(const AttentionSizes& sizes, const kernels::AttentionLinearConfig& config) {
  return sizes.batch * sizes.kv_heads * config.matrix_floats();
}

}  // namespace

bool linear_forward_wanted(const AttentionDescription& description, const AttentionSizes& sizes) {
  return cheaper(description, sizes, 2, 1, 1);
}

bool linear_backward_wanted(const AttentionDescription& description, const AttentionSizes& sizes) {
  return cheaper(description, sizes, 5, 2, 3);
}

std::int64_t linear_forward_floats(const AttentionSizes& sizes, const kernels::AttentionLinearConfig& config) {
  return floats(sizes, config);
}

std::int64_t linear_backward_floats(const AttentionSizes& sizes, const kernels::AttentionLinearConfig& config) {
  return 3 * floats(sizes, config);
}

void LinearPass::forward(std::vector<sycl::event>& last) const {
  sum(last, Rows::of_keys, tensors_.k, tensors_.v, factor_one, memory_, nullptr);
  product(last, Rows::of_queries, tensors_.q, memory_, tensors_.o, factor_);
}

void LinearPass::backward(std::vector<sycl::event>& last) const {
  float* transposed = memory_;  // Mᵀ = Vᵀ K
  float* gradient = transposed + floats(sizes_, config_);
  float* transposed_gradient = gradient + floats(sizes_, config_);
  sum(last, Rows::of_keys, tensors_.v, tensors_.k, factor_one, transposed, nullptr);
  sum(last, Rows::of_queries, tensors_.o, tensors_.q, factor_, transposed_gradient, gradient);
  product(last, Rows::of_queries, tensors_.o, transposed, tensors_.q_gradient, factor_, tensors_.q, tensors_.row_dots);
  product(last, Rows::of_keys, tensors_.v, transposed_gradient, tensors_.k_gradient, factor_one);
  product(last, Rows::of_keys, tensors_.k, gradient, tensors_.v_gradient, factor_one);
}

kernels::AttentionLinearRows LinearPass::rows(Rows which) const {
  return {.lengths = tensors_.lengths.as<std::int32_t>(),
          .keys = static_cast<int>(sizes_.keys),
          .length = static_cast<int>(which == Rows::of_keys ? sizes_.keys : sizes_.queries),
          .are_keys = which == Rows::of_keys ? 1 : 0};
}

void LinearPass::sum(std::vector<sycl::event>& last, Rows which, const TensorView& left, const TensorView& right,
                     const kernels::AttentionLinearFactor& factor, float* to, float* transposed) const {
  const sycl::range<3> groups{size(sizes_.batch), size(sizes_.kv_heads), size(config_.stripes())};
  const kernels::AttentionLinearSumArguments arguments{
      .left = left.data(),
      .right = right.data(),
      .sum = to,
      .transposed = transposed,
      .left_strides = strides_of(left),
      .right_strides = strides_of(right),
      .factor = factor,
      .rows = rows(which),
      .heads_per_matrix = static_cast<int>(left.extent(1) / sizes_.kv_heads),
      .head_size = static_cast<int>(sizes_.head_size)};
  last.assign(1, runtime::launch(device_, catalogue::kernel<kernels::AttentionLinearSumKernel>(config_, sizes_.dtype),
                                 groups, arguments, last));
}

void LinearPass::product(std::vector<sycl::event>& last, Rows which, const TensorView& in, const float* matrix,
                         const TensorView& out, const kernels::AttentionLinearFactor& factor, const TensorView& other,
                         float* row_dots) const {
  const std::int64_t blocks = (in.extent(2) + config_.row_block - 1) / config_.row_block;
  const sycl::range<3> groups{size(sizes_.batch), size(in.extent(1)), size(blocks)};
  const kernels::AttentionLinearProductArguments arguments{
      .in = in.data(),
      .matrix = matrix,
      .out = out.data(),
      .other = other.data(),
      .row_dots = row_dots,
      .in_strides = strides_of(in),
      .out_strides = strides_of(out),
      .other_strides = strides_of(other),
      .factor = factor,
      .rows = rows(which),
      .heads_per_matrix = static_cast<int>(in.extent(1) / sizes_.kv_heads),
      .head_size = static_cast<int>(sizes_.head_size)};
  last.assign(1,
              runtime::launch(device_, catalogue::kernel<kernels::AttentionLinearProductKernel>(config_, sizes_.dtype),
                              groups, arguments, last));
}

}  // namespace sylvit::nn
