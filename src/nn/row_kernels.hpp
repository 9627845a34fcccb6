// The kernels that work on rows (layer norm, activations, sums along columns): the configurations that a table gives
// them and the variants' names. Shared by the layers and by the list of variants that are compiled ahead of time.
#pragma once

#include <sylvit/tensor.hpp>

#include <vector>

#include "kernels/activation.hpp"
#include "kernels/column_sums.hpp"
#include "kernels/layer_norm.hpp"
#include "runtime/kernel.hpp"
#include "tuning/table.hpp"

namespace sylvit::nn {

/// GELU by the normal distribution itself, or by its usual approximation with tanh.
enum class Gelu { exact, tanh };

kernels::LayerNormConfig layer_norm_config(const tuning::Table& table, DType dtype);
kernels::ActivationConfig activation_config(const tuning::Table& table, DType dtype);
kernels::ColumnSumsConfig column_sums_config(const tuning::Table& table, DType dtype);

runtime::Kernel<kernels::LayerNormForwardArguments> layer_norm_forward_kernel(DType dtype,
                                                                              const kernels::LayerNormConfig& config);
runtime::Kernel<kernels::LayerNormBackwardArguments> layer_norm_backward_kernel(DType dtype,
                                                                                const kernels::LayerNormConfig& config);
runtime::Kernel<kernels::LayerNormParametersArguments> layer_norm_parameters_kernel(
    DType dtype, const kernels::LayerNormConfig& config);

runtime::Kernel<kernels::ColumnSumsArguments> column_sums_kernel(DType dtype, const kernels::ColumnSumsConfig& config);

runtime::Kernel<kernels::ActivationBackwardArguments> gelu_backward_kernel(Gelu form, DType dtype,
                                                                           const kernels::ActivationConfig& config);
runtime::Kernel<kernels::MultiplyArguments> multiply_kernel(DType dtype, const kernels::ActivationConfig& config);
runtime::Kernel<kernels::MultiplyBackwardArguments> multiply_backward_kernel(DType dtype,
                                                                             const kernels::ActivationConfig& config);

/// What layer_norm_forward, and with `backward` also layer_norm_backward, launches: for building it with other kernels.
std::vector<runtime::KernelName> layer_norm_kernels(const tuning::Table& table, DType dtype, bool backward);

/// Every variant of this file that a table leads to.
std::vector<runtime::KernelName> row_variants(const tuning::Table& table);

}  // namespace sylvit::nn
