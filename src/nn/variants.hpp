// How a kernel variant is named, and which variants there are. The ahead-of-time toolchains compile exactly the list
// that list_variants() gives for their backends; the names are made by the same functions that the layers call.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/elementwise.hpp"
#include "kernels/reduce.hpp"
#include "kernels/transpose.hpp"
#include "nn/attention_kernels.hpp"
#include "runtime/kernel.hpp"
#include "tuning/variant.hpp"

namespace sylvit::nn {

using tuning::checked;
using tuning::config_text;
using tuning::named;
using tuning::storage_types;
using tuning::type_text;

kernels::ElementwiseConfig elementwise_config(const tuning::Record& record);
kernels::ReduceRowsConfig reduce_rows_config(const tuning::Record& record);
kernels::TransposeConfig transpose_config(const tuning::Record& record);

runtime::Kernel<kernels::FillArguments> fill_kernel(DType dtype, const kernels::ElementwiseConfig& config);
runtime::Kernel<kernels::ConvertArguments> convert_kernel(DType from, DType to,
                                                          const kernels::ElementwiseConfig& config);
runtime::Kernel<kernels::ReduceRowsArguments> reduce_rows_kernel(DType dtype, const kernels::ReduceRowsConfig& config);
runtime::Kernel<kernels::TransposeArguments> transpose_kernel(DType dtype, const kernels::TransposeConfig& config);

/// The variants of nn/basic that a table names.
std::vector<runtime::KernelName> basic_variants(const tuning::Table& table);

/// Every variant that a table names, each once.
std::vector<runtime::KernelName> variants_of(const tuning::Table& table);

/// Every variant that the embedded tables of these backends ("acpp-cpu") name, each once.
std::vector<runtime::KernelName> list_variants(std::span<const std::string> backends);
/// The variants of a custom score that they lead to, each once.
std::vector<CustomVariant> list_custom_variants(std::span<const std::string> backends);

}  // namespace sylvit::nn
