// The public attention functions: check, look up the tile numbers, lay out the workspace, launch.
#include <sylvit/attention.hpp>
#include <sylvit/memory.hpp>

#include <array>
#include <cmath>

#include "nn/attention_checks.hpp"
#include "nn/attention_kernels.hpp"
#include "nn/attention_linear.hpp"
#include "nn/layer_norm.hpp"
#include "nn/workspace.hpp"
#include "runtime/counts.hpp"

namespace sylvit {

namespace {

using kernels::AttentionStrides;
using nn::AttentionSizes;
using nn::BackwardCut;
using nn::Workspace;
using runtime::divided_up;
using runtime::size;

AttentionStrides strides_of(const TensorView& view) { return {view.stride(0), view.stride(1), view.stride(2)}; }

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
  const std::int64_t head_size = nn::compiled_head_size(device.info().toolchain, sizes.head_size);
  const nn::AttentionCase wanted{description.score, sizes.dtype, head_size, sizes.keys};
  const tuning::Record& forward_record = nn::forward_record(table, wanted);
  const tuning::Record& backward_record = nn::backward_record(table, wanted);
  Plan plan{description,
            sizes,
            table,
            forward_record,
            backward_record,
            nn::forward_config(forward_record, head_size),
            nn::backward_config(backward_record, head_size),
            nn::backward_cut(backward_record),
            nn::linear_forward_wanted(description, sizes),
            nn::linear_backward_wanted(description, sizes),
            nullptr,
            {}};
  if (plan.linear_forward || plan.linear_backward) {
    plan.linear_record = &nn::linear_record(table, wanted);
    plan.linear = nn::linear_config(*plan.linear_record, head_size);
  }
  // A head a work-group leaves units idle when there are few heads. The bits do not depend on the cut, so the batch may
  // decide. Only where any kernel can be built: ahead of time, the record's own cut is the one that is compiled in. And
  // only for few key blocks, since each has a dQ of its own.
  constexpr std::size_t most_partials = 8;
  if (plan.cut == BackwardCut::head && sizes.batch * sizes.kv_heads <= nn::most_heads_that_idle(device) &&
      plan.key_blocks() > 1 && plan.key_blocks() <= most_partials && device.info().toolchain == "rtc")
    plan.cut = BackwardCut::partial;
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
    run(nn::forward_kernel(nn::ScoreFunctor(plan_.description), sizes.dtype, plan_.forward),
        {.groups = {size(sizes.batch), size(sizes.heads), divided_up(sizes.queries, plan_.forward.queries())},
         .work_items = size(plan_.forward.work_items()),
         .local_floats = size(plan_.forward.local_floats())},
        {.q = q.data(),
         .k = k.data(),
         .v = inputs_.v.data(),
         .o = o.data(),
         .lse = lse.as<float>(),
         .lengths = inputs_.lengths.as<std::int32_t>(),
         .head_multiplier = inputs_.head_scale.as<float>(),
         .head_alpha = inputs_.head_alpha.as<float>(),
         .q_strides = strides_of(q),
         .k_strides = strides_of(k),
         .v_strides = strides_of(inputs_.v),
         .o_strides = strides_of(o),
         .query_length = static_cast<int>(sizes.queries),
         .key_length = static_cast<int>(sizes.keys),
         .head_size = static_cast<int>(sizes.head_size),
         .queries_per_key_head = static_cast<int>(sizes.heads / sizes.kv_heads),
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
  void run(const runtime::Kernel<Arguments>& kernel, const runtime::Grid& grid, const Arguments& arguments) {
    last_.assign(1, runtime::launch(device_, kernel, grid, arguments, last_));
  }

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
    const kernels::AttentionBackwardRowsConfig config = nn::backward_rows_config(plan_.table);
    run(nn::backward_rows_kernel(sizes.dtype, config),
        {.groups = {size(sizes.batch), size(sizes.heads), divided_up(sizes.queries, config.rows)},
         .work_items = size(config.work_items()),
         .local_floats = size(config.local_floats())},
        {.output_gradient = o_gradient.data(),
         .output = o.data(),
         .delta = delta,
         .output_gradient_strides = strides_of(o_gradient),
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
    const TensorView& dq = normed ? kept.q_gradient : gradients.q;
    const TensorView& dk = normed ? kept.k_gradient : gradients.k;
    if (plan_.linear_backward) {
      nn::LinearTensors tensors = linear_tensors(q, k);
      tensors.o = o_gradient;
      tensors.dq = dq;
      tensors.dk = dk;
      tensors.dv = gradients.v;
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
                                                        .output_gradient = o_gradient.data(),
                                                        .dq = dq.data(),
                                                        .dk = dk.data(),
                                                        .dv = gradients.v.data(),
                                                        .q_strides = strides_of(q),
                                                        .k_strides = strides_of(k),
                                                        .v_strides = strides_of(inputs_.v),
                                                        .output_gradient_strides = strides_of(o_gradient),
                                                        .dq_strides = strides_of(dq),
                                                        .dk_strides = strides_of(dk),
                                                        .dv_strides = strides_of(gradients.v),
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
    const std::size_t work_items = size(config.work_items());
    const runtime::Grid key_blocks{{batch, kv_heads, plan_.key_blocks()}, work_items, size(config.local_floats())};
    std::vector<runtime::Grid> grids;
    switch (plan_.cut) {
      case BackwardCut::head:
        grids = {{{batch, kv_heads, 1}, work_items, size(config.local_floats())}};
        break;
      case BackwardCut::split:
        grids = {{{batch, size(sizes.heads),
                   divided_up(static_cast<std::int64_t>(query_blocks), static_cast<std::int64_t>(share))},
                  work_items,
                  size(config.local_floats_of_queries())},
                 key_blocks};
        break;
      case BackwardCut::partial:
        grids = {key_blocks, {{batch, size(sizes.heads), query_blocks}, work_items, 0}};
        break;
    }
    const auto kernels = nn::backward_kernels(plan_.cut, nn::ScoreFunctor(plan_.description), sizes.dtype, config);
    for (std::size_t i = 0; i < kernels.size(); ++i) run(kernels[i], grids[i], arguments);
  }

  void head_sums(const AttentionGradients& gradients, const BackwardMemory& kept) {
    const AttentionSizes& sizes = plan_.sizes;
    const kernels::AttentionBackwardHeadSumsConfig config = nn::head_sums_config(plan_.table);
    run(nn::head_sums_kernel(config),
        {.groups = {size(sizes.heads), 1, 1},
         .work_items = size(config.work_items()),
         .local_floats = size(config.local_floats())},
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
  return {"attention_linear " + nn::text(plan.linear), plan.linear_record->source(), plan.linear_record->estimated()};
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

namespace nn {

std::vector<runtime::KernelName> attention_kernels_for(const Device& device, const AttentionDescription& description,
                                                       const AttentionInputs& inputs, bool backward) {
  const Plan plan = make_plan(device, description, inputs);
  const DType dtype = plan.sizes.dtype;
  const nn::ScoreFunctor score(description);
  std::vector<runtime::KernelName> kernels;
  if (plan.linear_forward || (backward && plan.linear_backward)) {
    kernels.push_back(nn::linear_sum_kernel(dtype, plan.linear));
    kernels.push_back(nn::linear_product_kernel(dtype, plan.linear));
  }
  if (!plan.linear_forward) kernels.push_back(nn::forward_kernel(score, dtype, plan.forward));
  if (description.qk_norm)
    for (const runtime::KernelName& kernel : nn::layer_norm_kernels(plan.table, dtype, backward))
      kernels.push_back(kernel);
  if (backward) {
    if (!plan.linear_backward)
      for (const runtime::KernelName& kernel : nn::backward_kernels(plan.cut, score, dtype, plan.backward))
        kernels.push_back(kernel);
    if (description.score == Score::softmax)
      kernels.push_back(nn::backward_rows_kernel(dtype, nn::backward_rows_config(plan.table)));
    kernels.push_back(nn::head_sums_kernel(nn::head_sums_config(plan.table)));
  }
  return kernels;
}

}  // namespace nn

void attention_prepare(const Device& device, const AttentionDescription& description, const AttentionInputs& inputs,
                       bool backward) {
  runtime::prepare(device, nn::attention_kernels_for(device, description, inputs, backward));
}

AttentionPlan attention_forward_plan(const Device& device, const AttentionDescription& description,
                                     const AttentionInputs& inputs) {
  const Plan plan = make_plan(device, description, inputs);
  if (plan.linear_forward) return linear_plan(plan);
  return {nn::text(plan.forward), plan.forward_record.source(), plan.forward_record.estimated()};
}

AttentionPlan attention_backward_plan(const Device& device, const AttentionDescription& description,
                                      const AttentionInputs& inputs) {
  const Plan plan = make_plan(device, description, inputs);
  if (plan.linear_backward) return linear_plan(plan);
  constexpr std::array cuts = {"head", "split", "partial"};
  return {nn::text(plan.backward) + " cut " + cuts[static_cast<std::size_t>(plan.cut)], plan.backward_record.source(),
          plan.backward_record.estimated()};
}

}  // namespace sylvit
