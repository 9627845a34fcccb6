#include "nn/training_kernels.hpp"

#include <algorithm>
#include <iterator>

#include "nn/variants.hpp"
#include "tuning/configs.hpp"

namespace sylvit::nn {

namespace {

std::string text(const kernels::PatchRowsConfig& config) {
  return config_text("PatchRowsConfig", {config.lanes, config.columns, config.segments});
}

std::string text(const kernels::TokensConfig& config) {
  return config_text("TokensConfig", {config.lanes, config.columns, config.rows});
}

std::string text(const kernels::LossConfig& config) {
  return config_text("LossConfig", {config.lanes, config.columns});
}

std::string text(const kernels::OptimizerConfig& config) {
  return config_text("OptimizerConfig", {config.lanes, config.columns, config.steps});
}

/// "Functor<float, bf16, Config{…}>"; f32 types first, then the configuration.
template <class Arguments, class Config>
runtime::Kernel<Arguments> named(const char* header, const char* arguments, const char* functor,
                                 std::initializer_list<DType> types, const Tuned<Config>& config,
                                 bool local_memory = false) {
  std::string type(functor);
  type.append("<");
  for (const DType dtype : types) type.append(type_text(dtype)).append(", ");
  type.append(text(config)).append(">");
  return {{.header = header,
           .arguments = arguments,
           .type = std::move(type),
           .sub_group_size = config.sub_group,
           .local_memory = local_memory}};
}

}  // namespace

Tuned<kernels::PatchRowsConfig> patch_rows_config(const tuning::Table& table, DType dtype) {
  const tuning::Record& record = table.find({.kernel = "patch_rows", .dtype = dtype});
  return {checked(tuning::configs::patch_rows(record), record), record.number("sub_group")};
}

Tuned<kernels::TokensConfig> tokens_config(const tuning::Table& table, DType dtype) {
  const tuning::Record& record = table.find({.kernel = "tokens", .dtype = dtype});
  return {checked(tuning::configs::tokens(record), record), record.number("sub_group")};
}

Tuned<kernels::LossConfig> loss_config(const tuning::Table& table) {
  const tuning::Record& record = table.find({.kernel = "loss"});
  return {checked(tuning::configs::loss(record), record), record.number("sub_group")};
}

Tuned<kernels::OptimizerConfig> optimizer_config(const tuning::Table& table) {
  const tuning::Record& record = table.find({.kernel = "optimizer"});
  return {checked(tuning::configs::optimizer(record), record), record.number("sub_group")};
}

runtime::Kernel<kernels::PatchRowsArguments> patch_rows_kernel(DType dtype,
                                                               const Tuned<kernels::PatchRowsConfig>& config) {
  return named<kernels::PatchRowsArguments>("tokens.hpp", "PatchRowsArguments", "PatchRows", {dtype}, config);
}

runtime::Kernel<kernels::AssembleTokensArguments> assemble_tokens_kernel(DType dtype, DType parameters,
                                                                         const Tuned<kernels::TokensConfig>& config) {
  return named<kernels::AssembleTokensArguments>("tokens.hpp", "AssembleTokensArguments", "AssembleTokens",
                                                 {dtype, parameters}, config);
}

runtime::Kernel<kernels::AssembleTokensBackwardArguments> assemble_tokens_backward_kernel(
    DType dtype, const Tuned<kernels::TokensConfig>& config) {
  return named<kernels::AssembleTokensBackwardArguments>("tokens.hpp", "AssembleTokensBackwardArguments",
                                                         "AssembleTokensBackward", {dtype}, config);
}

runtime::Kernel<kernels::PoolAverageArguments> pool_average_kernel(DType dtype,
                                                                   const Tuned<kernels::TokensConfig>& config) {
  return named<kernels::PoolAverageArguments>("tokens.hpp", "PoolAverageArguments", "PoolAverage", {dtype}, config);
}

runtime::Kernel<kernels::PoolBackwardArguments> pool_backward_kernel(DType dtype,
                                                                     const Tuned<kernels::TokensConfig>& config) {
  return named<kernels::PoolBackwardArguments>("tokens.hpp", "PoolBackwardArguments", "PoolBackward", {dtype}, config);
}

runtime::Kernel<kernels::CrossEntropyArguments> cross_entropy_kernel(bool softmax, DType logits, DType gradient,
                                                                     const Tuned<kernels::LossConfig>& config) {
  return named<kernels::CrossEntropyArguments>("loss.hpp", "CrossEntropyArguments",
                                               softmax ? "SoftmaxCrossEntropy" : "SigmoidCrossEntropy",
                                               {logits, gradient}, config, true);
}

runtime::Kernel<kernels::LossMeanArguments> loss_mean_kernel(const Tuned<kernels::LossConfig>& config) {
  return named<kernels::LossMeanArguments>("loss.hpp", "LossMeanArguments", "LossMean", {}, config, true);
}

runtime::Kernel<kernels::SquareSumsArguments> square_sums_kernel(const Tuned<kernels::OptimizerConfig>& config) {
  return named<kernels::SquareSumsArguments>("optimizer.hpp", "SquareSumsArguments", "SquareSums", {}, config, true);
}

runtime::Kernel<kernels::StepControlArguments> step_control_kernel(const Tuned<kernels::OptimizerConfig>& config) {
  return named<kernels::StepControlArguments>("optimizer.hpp", "StepControlArguments", "WriteStepControl", {}, config,
                                              true);
}

runtime::Kernel<kernels::AdamWArguments> adamw_kernel(DType copy, const Tuned<kernels::OptimizerConfig>& config) {
  return named<kernels::AdamWArguments>("optimizer.hpp", "AdamWArguments", "AdamW", {copy}, config);
}

runtime::Kernel<kernels::SgdArguments> sgd_kernel(DType copy, const Tuned<kernels::OptimizerConfig>& config) {
  return named<kernels::SgdArguments>("optimizer.hpp", "SgdArguments", "Sgd", {copy}, config);
}

std::vector<runtime::KernelName> training_variants(const tuning::Table& table, DType dtype) {
  const auto tokens = tokens_config(table, dtype);
  const auto loss = loss_config(table);
  const auto optimizer = optimizer_config(table);
  std::vector<runtime::KernelName> result{patch_rows_kernel(dtype, patch_rows_config(table, dtype)),
                                          assemble_tokens_kernel(dtype, dtype, tokens),
                                          assemble_tokens_backward_kernel(dtype, tokens),
                                          pool_average_kernel(dtype, tokens),
                                          pool_backward_kernel(dtype, tokens),
                                          cross_entropy_kernel(true, dtype, dtype, loss),
                                          cross_entropy_kernel(false, dtype, dtype, loss),
                                          loss_mean_kernel(loss),
                                          square_sums_kernel(optimizer),
                                          step_control_kernel(optimizer),
                                          adamw_kernel(dtype, optimizer),
                                          sgd_kernel(dtype, optimizer)};
  if (dtype != DType::f32) {
    result.push_back(assemble_tokens_kernel(dtype, DType::f32, tokens));
    result.push_back(cross_entropy_kernel(true, DType::f32, dtype, loss));
    result.push_back(cross_entropy_kernel(false, DType::f32, dtype, loss));
  }
  return result;
}

std::vector<runtime::KernelName> training_variants(const tuning::Table& table) {
  std::vector<runtime::KernelName> result;
  for (const DType dtype : storage_types)
    std::ranges::copy(training_variants(table, dtype), std::back_inserter(result));
  return result;
}

}  // namespace sylvit::nn
