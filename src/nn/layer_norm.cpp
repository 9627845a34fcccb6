#include "nn/layer_norm.hpp"

#include <sylvit/memory.hpp>

#include "catalogue/kernel.hpp"
#include "kernels/layer_norm.hpp"
#include "nn/column_sums.hpp"
#include "nn/strides.hpp"
#include "nn/tensor_checks.hpp"
#include "tuning/choice.hpp"

namespace sylvit::nn {

namespace {

constexpr std::string_view rows_rule =
    "f32, bf16 or f16 tensors of one shape and type, [rows, channels], [batch, rows, channels] or [batch, heads, rows, "
    "channels], with contiguous channels";

/// Any of the three ranks, as [batch, heads, length, channels].
struct Rows {
  std::int64_t batch, heads, length, channels;

  explicit Rows(const TensorView& view)
      : batch(view.shape().rank() > 2 ? view.extent(0) : 1),
        heads(view.shape().rank() > 3 ? view.extent(1) : 1),
        length(view.extent(view.shape().rank() - 2)),
        channels(view.extent(view.shape().rank() - 1)) {}
  std::int64_t count() const { return batch * heads * length; }
};

bool is_rows(const TensorView& view) {
  const std::size_t rank = view.shape().rank();
  return rank >= 2 && rank <= 4 && is_storage(view) && has_contiguous_rows(view) && fits_int(view.extent(rank - 1)) &&
         fits_int(view.extent(rank - 2));
}

bool alike(const TensorView& one, const TensorView& other) {
  return one.shape() == other.shape() && one.dtype() == other.dtype();
}

void require_parameter(std::string_view operation, const TensorView& parameter, const TensorView& in) {
  require(!parameter || (parameter.dtype() == DType::f32 && parameter.is_dense() &&
                         parameter.shape() == Shape{in.extent(in.shape().rank() - 1)}),
          operation, "dense f32 parameters of [channels]", parameter, in);
}

void require_statistics(std::string_view operation, const TensorView& statistics, const TensorView& in) {
  require(!statistics || (statistics.dtype() == DType::f32 && statistics.is_dense() &&
                          statistics.shape().elements() == 2 * Rows(in).count()),
          operation, "dense f32 statistics of two numbers a row", statistics, in);
}

sycl::range<3> groups_of(const Rows& rows, const kernels::LayerNormConfig& config) {
  return {size(rows.batch), size(rows.heads), divided_up(rows.length, config.rows)};
}

/// What the backward pass keeps between its kernels.
struct BackwardMemory {
  bool parameters;             // Are their gradients wanted?
  std::size_t statistics = 0;  // bytes
  std::size_t partial = 0;

  explicit BackwardMemory(const LayerNormBackward& pass) : parameters(pass.weight_gradient || pass.bias_gradient) {
    const Rows rows(pass.in);
    if (!parameters) return;
    if (!pass.statistics) statistics = base::padded(size(2 * rows.count()) * sizeof(float));
    partial = size(room_for_row_blocks(rows.count()) * 2 * rows.channels) * sizeof(float);
  }
};

void check(const LayerNormBackward& pass) {
  constexpr std::string_view operation = "layer_norm_backward";
  require(is_rows(pass.in) && is_rows(pass.out_gradient) && alike(pass.in, pass.out_gradient), operation, rows_rule,
          pass.in, pass.out_gradient);
  require(is_rows(pass.in_gradient) && alike(pass.in, pass.in_gradient), operation, rows_rule, pass.in,
          pass.in_gradient);
  require(!pass.residual || (is_rows(pass.residual) && alike(pass.in, pass.residual)), operation, rows_rule, pass.in,
          pass.residual);
  require_parameter(operation, pass.weight, pass.in);
  require_parameter(operation, pass.weight_gradient, pass.in);
  require_parameter(operation, pass.bias_gradient, pass.in);
  require_statistics(operation, pass.statistics, pass.in);
  require(!pass.lengths || (pass.lengths.dtype() == DType::i32 && pass.lengths.is_dense() &&
                            pass.lengths.shape() == Shape{Rows(pass.in).batch}),
          operation, "dense i32 lengths of [batch]", pass.lengths, pass.in);
  require(!pass.in_gradient.overlaps(pass.in) && !pass.in_gradient.overlaps(pass.out_gradient), operation,
          "an in_gradient apart from in and out_gradient", pass.in_gradient, pass.in);
  require(same_or_apart(pass.in_gradient, pass.residual), operation,
          "a residual that is in_gradient itself or apart from it", pass.residual, pass.in_gradient);
}

}  // namespace

sycl::event layer_norm_forward(const Device& device, const TensorView& in, const TensorView& weight,
                               const TensorView& bias, float epsilon, const TensorView& out,
                               const TensorView& statistics, Events after) {
  constexpr std::string_view operation = "layer_norm_forward";
  require(is_rows(in) && is_rows(out) && alike(in, out), operation, rows_rule, in, out);
  require_parameter(operation, weight, in);
  require_parameter(operation, bias, in);
  require_statistics(operation, statistics, in);
  require(same_or_apart(out, in), operation, "an out that is in itself or apart from it", in, out);
  const Rows rows(in);
  const auto config = tuning::config_for<kernels::LayerNormConfig>(tuning::table_for(device), in.dtype());
  return launch(device, catalogue::kernel<kernels::LayerNormForwardKernel>(config, in.dtype()), groups_of(rows, config),
                {.in = in.data(),
                 .out = out.data(),
                 .weight = weight.as<float>(),
                 .bias = bias.as<float>(),
                 .statistics = statistics.as<float>(),
                 .in_strides = strides_of(in),
                 .out_strides = strides_of(out),
                 .heads = static_cast<int>(rows.heads),
                 .length = static_cast<int>(rows.length),
                 .channels = static_cast<int>(rows.channels),
                 .epsilon = epsilon},
                after);
}

std::size_t layer_norm_backward_workspace(const LayerNormBackward& pass) {
  const BackwardMemory memory(pass);
  return memory.statistics + memory.partial;
}

sycl::event layer_norm_backward(const Device& device, const LayerNormBackward& pass, void* workspace, Events after) {
  check(pass);
  const Rows rows(pass.in);
  const BackwardMemory memory(pass);
  require(workspace != nullptr || memory.statistics + memory.partial == 0, "layer_norm_backward",
          "the workspace that layer_norm_backward_workspace names", pass.in, pass.in_gradient);
  const auto config = tuning::config_for<kernels::LayerNormConfig>(tuning::table_for(device), pass.in.dtype());
  float* computed = memory.statistics == 0 ? nullptr : static_cast<float*>(workspace);
  const sycl::event rows_done = launch(
      device, catalogue::kernel<kernels::LayerNormBackwardKernel>(config, pass.in.dtype()), groups_of(rows, config),
      {.in = pass.in.data(),
       .out_gradient = pass.out_gradient.data(),
       .residual = pass.residual.data(),
       .in_gradient = pass.in_gradient.data(),
       .weight = pass.weight.as<float>(),
       .known_statistics = pass.statistics.as<float>(),
       .statistics = computed,
       .lengths = pass.lengths.as<std::int32_t>(),
       .in_strides = strides_of(pass.in),
       .out_gradient_strides = strides_of(pass.out_gradient),
       .residual_strides = strides_of(pass.residual),
       .in_gradient_strides = strides_of(pass.in_gradient),
       .heads = static_cast<int>(rows.heads),
       .length = static_cast<int>(rows.length),
       .channels = static_cast<int>(rows.channels),
       .epsilon = pass.epsilon},
      after);
  if (!memory.parameters) return rows_done;
  const RowBlocks blocks = row_blocks(rows.count());
  float* partial = reinterpret_cast<float*>(static_cast<std::byte*>(workspace) + memory.statistics);
  const sycl::event cut = launch(device, catalogue::kernel<kernels::LayerNormParametersKernel>(config, pass.in.dtype()),
                                 {1, size(blocks.count), divided_up(rows.channels, config.width())},
                                 {.in = pass.in.data(),
                                  .out_gradient = pass.out_gradient.data(),
                                  .statistics = computed != nullptr ? computed : pass.statistics.as<float>(),
                                  .lengths = pass.lengths.as<std::int32_t>(),
                                  .partial = partial,
                                  .in_strides = strides_of(pass.in),
                                  .out_gradient_strides = strides_of(pass.out_gradient),
                                  .rows = rows.count(),
                                  .rows_of_block = blocks.rows_of_block,
                                  .heads = static_cast<int>(rows.heads),
                                  .length = static_cast<int>(rows.length),
                                  .channels = static_cast<int>(rows.channels)},
                                 std::span(&rows_done, 1));
  return sum_block_pairs(device, partial, blocks.count, rows.channels, pass.weight_gradient.as<float>(),
                         pass.bias_gradient.as<float>(), std::span(&cut, 1));
}

}  // namespace sylvit::nn
