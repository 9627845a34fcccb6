#include "nn/row_kernels.hpp"

#include <algorithm>
#include <iterator>

#include "nn/variants.hpp"
#include "tuning/configs.hpp"

namespace sylvit::nn {

namespace {

std::string text(const kernels::LayerNormConfig& config) {
  return config_text("LayerNormConfig", {config.lanes, config.columns, config.rows});
}
std::string text(const kernels::ActivationConfig& config) {
  return config_text("ActivationConfig", {config.work_items, config.columns, config.rows});
}
std::string text(const kernels::ColumnSumsConfig& config) {
  return config_text("ColumnSumsConfig", {config.lanes, config.columns});
}

/// "Name<T, Config{…}>"
template <class Config>
std::string typed(std::string_view name, DType dtype, const Config& config) {
  return std::string(name) + "<" + type_text(dtype) + ", " + text(config) + ">";
}

/// The functor in kernels/scores.hpp.
std::string functor_of(Gelu form) { return form == Gelu::exact ? "Gelu" : "GeluTanh"; }

/// The kernels of activation.hpp use neither local memory nor sub-groups.
template <class Arguments>
runtime::Kernel<Arguments> activation_kernel(const char* arguments, std::string type) {
  return named<Arguments>("activation.hpp", arguments, std::move(type), 0, false);
}

}  // namespace

kernels::LayerNormConfig layer_norm_config(const tuning::Table& table, DType dtype) {
  const tuning::Record& record = table.find({.kernel = "layer_norm", .dtype = dtype});
  return checked(tuning::configs::layer_norm(record), record);
}

kernels::ActivationConfig activation_config(const tuning::Table& table, DType dtype) {
  const tuning::Record& record = table.find({.kernel = "activation", .dtype = dtype});
  return checked(tuning::configs::activation(record), record);
}

kernels::ColumnSumsConfig column_sums_config(const tuning::Table& table, DType dtype) {
  const tuning::Record& record = table.find({.kernel = "column_sums", .dtype = dtype});
  return checked(tuning::configs::column_sums(record), record);
}

runtime::Kernel<kernels::LayerNormForwardArguments> layer_norm_forward_kernel(DType dtype,
                                                                              const kernels::LayerNormConfig& config) {
  return named<kernels::LayerNormForwardArguments>("layer_norm.hpp", "LayerNormForwardArguments",
                                                   typed("LayerNormForward", dtype, config), config.lanes, true);
}

runtime::Kernel<kernels::LayerNormBackwardArguments> layer_norm_backward_kernel(
    DType dtype, const kernels::LayerNormConfig& config) {
  return named<kernels::LayerNormBackwardArguments>("layer_norm.hpp", "LayerNormBackwardArguments",
                                                    typed("LayerNormBackward", dtype, config), config.lanes, true);
}

runtime::Kernel<kernels::LayerNormParametersArguments> layer_norm_parameters_kernel(
    DType dtype, const kernels::LayerNormConfig& config) {
  return named<kernels::LayerNormParametersArguments>("layer_norm.hpp", "LayerNormParametersArguments",
                                                      typed("LayerNormParameters", dtype, config), config.lanes, false);
}

runtime::Kernel<kernels::ColumnSumsArguments> column_sums_kernel(DType dtype, const kernels::ColumnSumsConfig& config) {
  return named<kernels::ColumnSumsArguments>("column_sums.hpp", "ColumnSumsArguments",
                                             typed("ColumnSums", dtype, config), config.lanes, false);
}

runtime::Kernel<kernels::ActivationBackwardArguments> gelu_backward_kernel(Gelu form, DType dtype,
                                                                           const kernels::ActivationConfig& config) {
  return activation_kernel<kernels::ActivationBackwardArguments>(
      "ActivationBackwardArguments",
      "ActivationBackward<" + functor_of(form) + ", " + type_text(dtype) + ", " + text(config) + ">");
}

runtime::Kernel<kernels::MultiplyArguments> multiply_kernel(DType dtype, const kernels::ActivationConfig& config) {
  return activation_kernel<kernels::MultiplyArguments>("MultiplyArguments", typed("Multiply", dtype, config));
}

runtime::Kernel<kernels::MultiplyBackwardArguments> multiply_backward_kernel(DType dtype,
                                                                             const kernels::ActivationConfig& config) {
  return activation_kernel<kernels::MultiplyBackwardArguments>("MultiplyBackwardArguments",
                                                               typed("MultiplyBackward", dtype, config));
}

std::vector<runtime::KernelName> layer_norm_kernels(const tuning::Table& table, DType dtype, bool backward) {
  const kernels::LayerNormConfig config = layer_norm_config(table, dtype);
  std::vector<runtime::KernelName> result{layer_norm_forward_kernel(dtype, config)};
  if (backward) {
    result.push_back(layer_norm_backward_kernel(dtype, config));
    result.push_back(layer_norm_parameters_kernel(dtype, config));
    result.push_back(column_sums_kernel(DType::f32, column_sums_config(table, DType::f32)));
  }
  return result;
}

std::vector<runtime::KernelName> row_variants(const tuning::Table& table) {
  std::vector<runtime::KernelName> result;
  for (const DType dtype : storage_types) {
    std::ranges::copy(layer_norm_kernels(table, dtype, true), std::back_inserter(result));
    result.push_back(column_sums_kernel(dtype, column_sums_config(table, dtype)));
    const kernels::ActivationConfig config = activation_config(table, dtype);
    for (const Gelu form : {Gelu::exact, Gelu::tanh}) result.push_back(gelu_backward_kernel(form, dtype, config));
    result.push_back(multiply_kernel(dtype, config));
    result.push_back(multiply_backward_kernel(dtype, config));
  }
  return result;
}

}  // namespace sylvit::nn
