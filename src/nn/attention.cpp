// The public attention functions: check, look up the tile numbers, lay out the workspace, launch.
#include <sylvit/attention.hpp>
#include <sylvit/memory.hpp>

#include <cmath>

#include "base/counts.hpp"
#include "catalogue/head_sizes.hpp"
#include "catalogue/kernel.hpp"
#include "catalogue/records.hpp"
#include "kernels/attention_backward_head.hpp"
#include "kernels/attention_backward_partial.hpp"
#include "kernels/attention_backward_rows.hpp"
#include "kernels/attention_backward_split.hpp"
#include "kernels/attention_forward.hpp"
#include "nn/attention_checks.hpp"
#include "nn/attention_choice.hpp"
#include "nn/attention_linear.hpp"
#include "nn/layer_norm.hpp"
#include "nn/strides.hpp"
#include "nn/workspace.hpp"
#include "runtime/rehearsal.hpp"
#include "tuning/choice.hpp"

namespace sylvit {

namespace {

using base::divided_up;
using base::size;
using nn::AttentionSizes;
using nn::BackwardCut;
using nn::strides_of;
using nn::Workspace;

/// Everything about a call that follows from its description, its shapes and the device.
struct Plan {
  AttentionDescription description;
  AttentionSizes sizes;
  const tuning::Table& table;
  const tuning::Record& forward_record;
  const tuning::Record& backward_record;
  kernels::AttentionForwardConfig forward;
  kernels::AttentionBackwardConfig backward;
  BackwardCut cut;
  bool linear_forward;
  bool linear_backward;
  const tuning::Record* linear_record;  // null where neither pass is linear
  kernels::AttentionLinearConfig linear;

  float scale() const {
    return description.scale ? *description.scale : 1.0F / std::sqrt(static_cast<float>(sizes.head_size));
  }
  std::int64_t query_rows() const { return sizes.batch * sizes.heads * sizes.queries; }
  std::int64_t key_rows() const { return sizes.batch * sizes.kv_heads * sizes.keys; }
  std::size_t key_blocks() const { return divided_up(sizes.keys, backward.key_block); }
};

Plan make_plan(const Device& device, const AttentionDescription& description, const AttentionInputs& inputs) {
  const AttentionSizes sizes = nn::check_inputs(description, inputs);
  const tuning::Table& table = tuning::table_for(device);
  const std::int64_t head_size = catalogue::compiled_head_size(device.info().toolchain, sizes.head_size);
  const nn::AttentionQuery wanted{description.score, sizes.dtype, head_size, sizes.keys};
  const tuning::Record& forward_record = table.find(wanted.of(kernels::AttentionForwardConfig::record));
  const tuning::Record& backward_record = table.find(wanted.of(kernels::AttentionBackwardConfig::record));
  Plan plan{description,
            sizes,
            table,
            forward_record,
            backward_record,
            tuning::config_of<kernels::AttentionForwardConfig>(forward_record, head_size),
            tuning::config_of<kernels::AttentionBackwardConfig>(backward_record, head_size),
            BackwardCut::head,
            nn::linear_forward_wanted(description, sizes),
            nn::linear_backward_wanted(description, sizes),
            nullptr,
            {}};
  plan.cut = nn::backward_cut(device, backward_record, sizes.batch * sizes.kv_heads, plan.key_blocks());
  if (plan.linear_forward || plan.linear_backward) {
    plan.linear_record = &table.find(wanted.of(kernels::AttentionLinearConfig::record));
    plan.linear = tuning::config_of<kernels::AttentionLinearConfig>(*plan.linear_record, head_size);
  }
  return plan;
}

/// Queries and keys after their layer norm.
struct Normed {
  TensorView q;
  TensorView k;

  Normed(const Plan& plan, const AttentionInputs& inputs, Workspace& workspace)
      : q(workspace.take_if(plan.description.qk_norm, plan.sizes.dtype, inputs.q.shape())),
        k(workspace.take_if(plan.description.qk_norm, plan.sizes.dtype, inputs.k.shape())) {}
};

/// What the forward pass keeps between its kernels.
struct ForwardMemory {
  Normed normed;
  float* matrices = nullptr;  // of the linear pass

  ForwardMemory(const Plan& plan, const AttentionInputs& inputs, Workspace& workspace)
      : normed(plan, inputs, workspace) {
    if (plan.linear_forward)
      matrices = workspace.take<float>(size(nn::linear_forward_floats(plan.sizes, plan.linear)) * sizeof(float));
  }
};

/// What the backward pass keeps between its kernels.
struct BackwardMemory {
  Normed normed;
  TensorView q_gradient, k_gradient;  // of the normed queries and keys
  nn::LayerNormBackward q_norm, k_norm;
  void* norm = nullptr;  // of both, one after the other
  float* delta = nullptr;
  float* row_dots = nullptr;
  float* sums = nullptr;

  BackwardMemory(const Plan& plan, const AttentionInputs& inputs, const AttentionGradients& gradients,
                 Workspace& workspace)
      : normed(plan, inputs, workspace) {
    const AttentionSizes& sizes = plan.sizes;
    const auto floats = [&](std::int64_t count) { return workspace.take<float>(size(count) * sizeof(float)); };
    if (plan.description.qk_norm) {
      q_gradient = workspace.take(sizes.dtype, inputs.q.shape());
      k_gradient = workspace.take(sizes.dtype, inputs.k.shape());
      q_norm = {.in = inputs.q,
                .weight = inputs.q_norm_weight,
                .out_gradient = q_gradient,
                .in_gradient = gradients.q,
                .weight_gradient = gradients.q_norm_weight,
                .bias_gradient = gradients.q_norm_bias,
                .epsilon = plan.description.norm_epsilon};
      k_norm = {.in = inputs.k,
                .weight = inputs.k_norm_weight,
                .out_gradient = k_gradient,
                .lengths = inputs.lengths,
                .in_gradient = gradients.k,
                .weight_gradient = gradients.k_norm_weight,
                .bias_gradient = gradients.k_norm_bias,
                .epsilon = plan.description.norm_epsilon};
      norm = workspace.take(
          std::max(nn::layer_norm_backward_workspace(q_norm), nn::layer_norm_backward_workspace(k_norm)));
    }
    if (plan.description.score == Score::softmax) delta = floats(plan.query_rows());
    if (gradients.head_scale || gradients.head_alpha) row_dots = floats(plan.query_rows());
    if (plan.linear_backward)
      sums = floats(nn::linear_backward_floats(sizes, plan.linear));
    else if (plan.cut == BackwardCut::partial)
      sums = floats(static_cast<std::int64_t>(plan.key_blocks()) * plan.query_rows() * (sizes.head_size + 1));
    else if (sizes.dtype != DType::f32 && plan.key_blocks() > 1)
      sums = floats(plan.query_rows() * sizes.head_size);
  }
};

class Pass {
 public:
  Pass(const Device& device, const Plan& plan, const AttentionInputs& inputs, std::span<const sycl::event> after)
      : device_(device), plan_(plan), inputs_(inputs), last_(after.begin(), after.end()) {}

  sycl::event forward(const TensorView& o, const TensorView& lse, void* memory) {
    Workspace workspace(memory);
    const ForwardMemory kept(plan_, inputs_, workspace);
    normalise(kept.normed);
    const AttentionSizes& sizes = plan_.sizes;
    const TensorView& q = plan_.description.qk_norm ? kept.normed.q : inputs_.q;
    const TensorView& k = plan_.description.qk_norm ? kept.normed.k : inputs_.k;
    if (plan_.linear_forward) {
      nn::LinearTensors tensors = linear_tensors(q, k);
      tensors.o = o;
      linear_pass(tensors, kept.matrices).forward(last_);
      return last_.front();
    }
    run(catalogue::kernel<kernels::AttentionForwardKernel>(plan_.forward, score(), sizes.dtype),
        {size(sizes.batch), size(sizes.heads), divided_up(sizes.queries, plan_.forward.queries())},
        {.q = q.data(),
         .k = k.data(),
         .v = inputs_.v.data(),
         .o = o.data(),
         .lse = lse.as<float>(),
         .lengths = inputs_.lengths.as<std::int32_t>(),
         .head_scale = inputs_.head_scale.as<float>(),
         .head_alpha = inputs_.head_alpha.as<float>(),
         .q_strides = strides_of(q),
         .k_strides = strides_of(k),
         .v_strides = strides_of(inputs_.v),
         .o_strides = strides_of(o),
         .queries = static_cast<int>(sizes.queries),
         .keys = static_cast<int>(sizes.keys),
         .head_size = static_cast<int>(sizes.head_size),
         .heads_per_kv_head = static_cast<int>(sizes.heads / sizes.kv_heads),
         .causal = plan_.description.causal ? 1 : 0,
         .scale = plan_.scale(),
         .alpha = plan_.description.alpha,
         .divisor = plan_.description.divisor});
    return last_.front();
  }

  sycl::event backward(const TensorView& o, const TensorView& lse, const TensorView& o_gradient,
                       const AttentionGradients& gradients, void* memory) {
    Workspace workspace(memory);
    const BackwardMemory kept(plan_, inputs_, gradients, workspace);
    normalise(kept.normed);
    if (plan_.description.score == Score::softmax) row_products(o, o_gradient, kept.delta);
    products(lse, o_gradient, gradients, kept);
    if (gradients.head_scale || gradients.head_alpha) head_sums(gradients, kept);
    if (plan_.description.qk_norm) {
      last_.assign(1, nn::layer_norm_backward(device_, kept.q_norm, kept.norm, last_));
      last_.assign(1, nn::layer_norm_backward(device_, kept.k_norm, kept.norm, last_));
    }
    return last_.front();
  }

 private:
  /// Launches after everything so far. The steps of a pass form a chain, so one event is enough to hold on to.
  template <class Arguments>
  void run(const runtime::Kernel<Arguments>& kernel, const sycl::range<3>& groups, const Arguments& arguments) {
    last_.assign(1, runtime::launch(device_, kernel, groups, arguments, last_));
  }

  catalogue::ScoreFunctor score() const { return catalogue::ScoreFunctor(plan_.description); }

  nn::LinearTensors linear_tensors(const TensorView& q, const TensorView& k) const {
    return {.q = q, .k = k, .v = inputs_.v, .lengths = inputs_.lengths};
  }

  nn::LinearPass linear_pass(const nn::LinearTensors& tensors, float* memory) const {
    return {device_,
            plan_.sizes,
            plan_.linear,
            {.head_scale = inputs_.head_scale.as<float>(),
             .head_alpha = inputs_.head_alpha.as<float>(),
             .scale = plan_.scale(),
             .alpha = plan_.description.alpha,
             .divisor = plan_.description.divisor},
            tensors,
            memory};
  }

  void normalise(const Normed& normed) {
    if (!plan_.description.qk_norm) return;
    const float epsilon = plan_.description.norm_epsilon;
    last_.assign(1, nn::layer_norm_forward(device_, inputs_.q, inputs_.q_norm_weight, inputs_.q_norm_bias, epsilon,
                                           normed.q, {}, last_));
    last_.assign(1, nn::layer_norm_forward(device_, inputs_.k, inputs_.k_norm_weight, inputs_.k_norm_bias, epsilon,
                                           normed.k, {}, last_));
  }

  /// Softmax: delta_i = dO_i · O_i.
  void row_products(const TensorView& o, const TensorView& o_gradient, float* delta) {
    const AttentionSizes& sizes = plan_.sizes;
    const auto config = tuning::config_for<kernels::AttentionBackwardRowsConfig>(plan_.table);
    run(catalogue::kernel<kernels::AttentionBackwardRowsKernel>(config, sizes.dtype),
        {size(sizes.batch), size(sizes.heads), divided_up(sizes.queries, config.rows)},
        {.o_gradient = o_gradient.data(),
         .output = o.data(),
         .delta = delta,
         .o_gradient_strides = strides_of(o_gradient),
         .output_strides = strides_of(o),
         .heads = static_cast<int>(sizes.heads),
         .queries = static_cast<int>(sizes.queries),
         .head_size = static_cast<int>(sizes.head_size)});
  }

  void products(const TensorView& lse, const TensorView& o_gradient, const AttentionGradients& gradients,
                const BackwardMemory& kept) {
    const AttentionSizes& sizes = plan_.sizes;
    const kernels::AttentionBackwardConfig& config = plan_.backward;
    const bool normed = plan_.description.qk_norm;
    const TensorView& q = normed ? kept.normed.q : inputs_.q;
    const TensorView& k = normed ? kept.normed.k : inputs_.k;
    const TensorView& q_gradient = normed ? kept.q_gradient : gradients.q;
    const TensorView& k_gradient = normed ? kept.k_gradient : gradients.k;
    if (plan_.linear_backward) {
      nn::LinearTensors tensors = linear_tensors(q, k);
      tensors.o = o_gradient;
      tensors.q_gradient = q_gradient;
      tensors.k_gradient = k_gradient;
      tensors.v_gradient = gradients.v;
      tensors.row_dots = kept.row_dots;
      linear_pass(tensors, kept.sums).backward(last_);
      return;
    }
    const std::size_t query_blocks = divided_up(sizes.queries, config.query_block);
    // Enough work-groups for every unit, few enough that the key blocks are not loaded again and again.
    const std::size_t heads = size(sizes.batch * sizes.heads);
    const std::size_t units = size(device_.info().compute_units);
    const std::size_t wanted = divided_up(static_cast<std::int64_t>(4 * units), static_cast<std::int64_t>(heads));
    const std::size_t share =
        divided_up(static_cast<std::int64_t>(query_blocks), static_cast<std::int64_t>(std::min(wanted, query_blocks)));
    const kernels::AttentionBackwardArguments arguments{.q = q.data(),
                                                        .k = k.data(),
                                                        .v = inputs_.v.data(),
                                                        .o_gradient = o_gradient.data(),
                                                        .q_gradient = q_gradient.data(),
                                                        .k_gradient = k_gradient.data(),
                                                        .v_gradient = gradients.v.data(),
                                                        .q_strides = strides_of(q),
                                                        .k_strides = strides_of(k),
                                                        .v_strides = strides_of(inputs_.v),
                                                        .o_gradient_strides = strides_of(o_gradient),
                                                        .q_gradient_strides = strides_of(q_gradient),
                                                        .k_gradient_strides = strides_of(k_gradient),
                                                        .v_gradient_strides = strides_of(gradients.v),
                                                        .lengths = inputs_.lengths.as<std::int32_t>(),
                                                        .head_scale = inputs_.head_scale.as<float>(),
                                                        .head_alpha = inputs_.head_alpha.as<float>(),
                                                        .lse = lse.as<float>(),
                                                        .delta = kept.delta,
                                                        .row_dots = kept.row_dots,
                                                        .workspace = kept.sums,
                                                        .heads = static_cast<int>(sizes.heads),
                                                        .kv_heads = static_cast<int>(sizes.kv_heads),
                                                        .queries = static_cast<int>(sizes.queries),
                                                        .keys = static_cast<int>(sizes.keys),
                                                        .head_size = static_cast<int>(sizes.head_size),
                                                        .causal = plan_.description.causal ? 1 : 0,
                                                        .query_share = static_cast<int>(share),
                                                        .scale = plan_.scale(),
                                                        .alpha = plan_.description.alpha,
                                                        .divisor = plan_.description.divisor};
    const std::size_t batch = size(sizes.batch);
    const std::size_t kv_heads = size(sizes.kv_heads);
    const DType dtype = sizes.dtype;
    const sycl::range<3> key_blocks{batch, kv_heads, plan_.key_blocks()};
    switch (plan_.cut) {
      case BackwardCut::head:
        run(catalogue::kernel<kernels::AttentionBackwardHeadKernel>(config, score(), dtype), {batch, kv_heads, 1},
            arguments);
        break;
      case BackwardCut::split:
        run(catalogue::kernel<kernels::AttentionBackwardQueriesKernel>(config, score(), dtype),
            {batch, size(sizes.heads),
             divided_up(static_cast<std::int64_t>(query_blocks), static_cast<std::int64_t>(share))},
            arguments);
        run(catalogue::kernel<kernels::AttentionBackwardKeysKernel>(config, score(), dtype), key_blocks, arguments);
        break;
      case BackwardCut::partial:
        run(catalogue::kernel<kernels::AttentionBackwardPartialKernel>(config, score(), dtype), key_blocks, arguments);
        run(catalogue::kernel<kernels::AttentionBackwardPartialSumKernel>(config, dtype),
            {batch, size(sizes.heads), query_blocks}, arguments);
        break;
    }
  }

  void head_sums(const AttentionGradients& gradients, const BackwardMemory& kept) {
    const AttentionSizes& sizes = plan_.sizes;
    const auto config = tuning::config_for<kernels::AttentionBackwardHeadSumsConfig>(plan_.table);
    run(catalogue::kernel<kernels::AttentionBackwardHeadSumsKernel>(config), {size(sizes.heads), 1, 1},
        {.row_dots = kept.row_dots,
         .lengths = inputs_.lengths.as<std::int32_t>(),
         .head_scale = inputs_.head_scale.as<float>(),
         .head_scale_gradient = gradients.head_scale.as<float>(),
         .head_alpha_gradient = gradients.head_alpha.as<float>(),
         .batch = static_cast<int>(sizes.batch),
         .heads = static_cast<int>(sizes.heads),
         .queries = static_cast<int>(sizes.queries),
         .keys = static_cast<int>(sizes.keys),
         .divisor = plan_.description.divisor});
  }

  const Device& device_;
  const Plan& plan_;
  const AttentionInputs& inputs_;
  std::vector<sycl::event> last_;
};

AttentionPlan linear_plan(const Plan& plan) {
  return {"attention_linear " + catalogue::text_of(plan.linear), plan.linear_record->source(),
          plan.linear_record->estimated()};
}

}  // namespace

std::size_t attention_forward_workspace(const Device& device, const AttentionDescription& description,
                                        const AttentionInputs& inputs) {
  const Plan plan = make_plan(device, description, inputs);
  Workspace workspace(nullptr);
  const ForwardMemory kept(plan, inputs, workspace);
  return workspace.peak();
}

std::size_t attention_backward_workspace(const Device& device, const AttentionDescription& description,
                                         const AttentionInputs& inputs, const AttentionGradients& gradients) {
  const Plan plan = make_plan(device, description, inputs);
  Workspace workspace(nullptr);
  const BackwardMemory kept(plan, inputs, gradients, workspace);
  return workspace.peak();
}

sycl::event attention_forward(const Device& device, const AttentionDescription& description,
                              const AttentionInputs& inputs, const TensorView& o, const TensorView& lse,
                              void* workspace, std::span<const sycl::event> after) {
  const Plan plan = make_plan(device, description, inputs);
  nn::check_outputs(description, plan.sizes, inputs, o, lse);
  return Pass(device, plan, inputs, after).forward(o, lse, workspace);
}

sycl::event attention_backward(const Device& device, const AttentionDescription& description,
                               const AttentionInputs& inputs, const TensorView& o, const TensorView& lse,
                               const TensorView& o_gradient, const AttentionGradients& gradients, void* workspace,
                               std::span<const sycl::event> after) {
  const Plan plan = make_plan(device, description, inputs);
  nn::check_gradients(description, plan.sizes, inputs, o, lse, o_gradient, gradients);
  return Pass(device, plan, inputs, after).backward(o, lse, o_gradient, gradients, workspace);
}

void attention_prepare(const Device& device, const AttentionDescription& description, const AttentionInputs& inputs,
                       bool backward) {
  const AttentionSizes sizes = nn::check_inputs(description, inputs);
  const runtime::Rehearsal rehearsal(device);
  // More than any tensors and any workspace: they must not overlap.
  constexpr std::size_t plenty = std::size_t{1} << 42;
  const Memory pretended(rehearsal.device(), plenty, "planning");
  const Memory workspace(rehearsal.device(), plenty, "planning");
  Workspace outside(pretended.data());
  const auto like = [&](const TensorView& view) {
    return outside.take_if(static_cast<bool>(view), view.dtype(), view.shape());
  };
  const TensorView o = like(inputs.q);
  const TensorView lse =
      outside.take_if(description.score == Score::softmax, DType::f32, {sizes.batch, sizes.heads, sizes.queries});
  attention_forward(rehearsal.device(), description, inputs, o, lse, workspace.data());
  if (backward) {
    const AttentionGradients gradients{.q = like(inputs.q),
                                       .k = like(inputs.k),
                                       .v = like(inputs.v),
                                       .head_scale = like(inputs.head_scale),
                                       .head_alpha = like(inputs.head_alpha),
                                       .q_norm_weight = like(inputs.q_norm_weight),
                                       .q_norm_bias = like(inputs.q_norm_bias),
                                       .k_norm_weight = like(inputs.k_norm_weight),
                                       .k_norm_bias = like(inputs.k_norm_bias)};
    attention_backward(rehearsal.device(), description, inputs, o, lse, like(o), gradients, workspace.data());
  }
  runtime::prepare(device, rehearsal.kernels());
}

AttentionPlan attention_forward_plan(const Device& device, const AttentionDescription& description,
                                     const AttentionInputs& inputs) {
  const Plan plan = make_plan(device, description, inputs);
  if (plan.linear_forward) return linear_plan(plan);
  return {catalogue::text_of(plan.forward), plan.forward_record.source(), plan.forward_record.estimated()};
}

AttentionPlan attention_backward_plan(const Device& device, const AttentionDescription& description,
                                      const AttentionInputs& inputs) {
  const Plan plan = make_plan(device, description, inputs);
  if (plan.linear_backward) return linear_plan(plan);
  const std::string cut(catalogue::choices_of("cut")[static_cast<std::size_t>(plan.cut)]);
  return {catalogue::text_of(plan.backward) + " cut " + cut, plan.backward_record.source(),
          plan.backward_record.estimated()};
}

}  // namespace sylvit
