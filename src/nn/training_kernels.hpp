// The kernels of a training step beside attention and matrix products, as names: their configurations from a tuning
// table, and the text of their types.
#pragma once

#include <vector>

#include "kernels/loss.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/tokens.hpp"
#include "runtime/kernel.hpp"
#include "tuning/table.hpp"

namespace sylvit::nn {

/// A configuration, and the size of the sub-groups it is meant for (0: the compiler chooses).
template <class Config>
struct Tuned : Config {
  int sub_group;
};

Tuned<kernels::PatchRowsConfig> patch_rows_config(const tuning::Table& table, DType dtype);
Tuned<kernels::TokensConfig> tokens_config(const tuning::Table& table, DType dtype);
Tuned<kernels::LossConfig> loss_config(const tuning::Table& table);
Tuned<kernels::OptimizerConfig> optimizer_config(const tuning::Table& table);

runtime::Kernel<kernels::PatchRowsArguments> patch_rows_kernel(DType dtype,
                                                               const Tuned<kernels::PatchRowsConfig>& config);
runtime::Kernel<kernels::AssembleTokensArguments> assemble_tokens_kernel(DType dtype, DType parameters,
                                                                         const Tuned<kernels::TokensConfig>& config);
runtime::Kernel<kernels::AssembleTokensBackwardArguments> assemble_tokens_backward_kernel(
    DType dtype, const Tuned<kernels::TokensConfig>& config);
runtime::Kernel<kernels::PoolAverageArguments> pool_average_kernel(DType dtype,
                                                                   const Tuned<kernels::TokensConfig>& config);
runtime::Kernel<kernels::PoolBackwardArguments> pool_backward_kernel(DType dtype,
                                                                     const Tuned<kernels::TokensConfig>& config);

runtime::Kernel<kernels::CrossEntropyArguments> cross_entropy_kernel(bool softmax, DType logits, DType gradient,
                                                                     const Tuned<kernels::LossConfig>& config);
runtime::Kernel<kernels::LossMeanArguments> loss_mean_kernel(const Tuned<kernels::LossConfig>& config);

runtime::Kernel<kernels::SquareSumsArguments> square_sums_kernel(const Tuned<kernels::OptimizerConfig>& config);
runtime::Kernel<kernels::StepControlArguments> step_control_kernel(const Tuned<kernels::OptimizerConfig>& config);
/// f32: without a copy of the parameters.
runtime::Kernel<kernels::AdamWArguments> adamw_kernel(DType copy, const Tuned<kernels::OptimizerConfig>& config);
runtime::Kernel<kernels::SgdArguments> sgd_kernel(DType copy, const Tuned<kernels::OptimizerConfig>& config);

/// All of the above that a model of this storage type can ask for.
std::vector<runtime::KernelName> training_variants(const tuning::Table& table, DType dtype);
/// For every storage type.
std::vector<runtime::KernelName> training_variants(const tuning::Table& table);

}  // namespace sylvit::nn
