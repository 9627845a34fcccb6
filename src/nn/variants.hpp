// How a kernel variant is named, and which variants there are. The ahead-of-time toolchains compile exactly the list
// that list_variants() gives for their backends; the names are made by the same functions that the layers call.
#pragma once

#include <sylvit/error.hpp>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/elementwise.hpp"
#include "kernels/reduce.hpp"
#include "kernels/transpose.hpp"
#include "runtime/kernel.hpp"
#include "tuning/table.hpp"

namespace sylvit::nn {

inline constexpr std::array storage_types = {DType::f32, DType::bf16, DType::f16};

/// "Name{1, 2}", a configuration as C++ text.
std::string config_text(std::string_view name, std::initializer_list<int> numbers);

/// The configuration itself, if its numbers fit together.
template <class Config>
Config checked(const Config& config, const tuning::Record& record) {
  if (!config.valid())
    throw Error("the tuning record for " + record.kernel + " (" + record.origin + ") has tile numbers that do not fit");
  return config;
}

/// The name of a kernel. A sub-group is asked for where the work-items of a tile are meant to be one; a single
/// work-item is none.
template <class Arguments>
runtime::Kernel<Arguments> named(const char* header, const char* arguments, std::string type, int lanes,
                                 bool local_memory) {
  return {{.header = header,
           .arguments = arguments,
           .type = std::move(type),
           .sub_group_size = lanes > 1 ? lanes : 0,
           .local_memory = local_memory}};
}

/// The C++ name of a storage type inside namespace sylvit::kernels: "float", "bf16", "f16".
std::string type_text(DType dtype);

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

/// Every variant that the embedded tables of these backends ("acpp-cpu") name, each once.
std::vector<runtime::KernelName> list_variants(std::span<const std::string> backends);

}  // namespace sylvit::nn
