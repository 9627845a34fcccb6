#include "nn/variants.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "blas/builtin.hpp"
#include "nn/attention_kernels.hpp"
#include "nn/row_kernels.hpp"
#include "nn/training_kernels.hpp"
#include "tuning/configs.hpp"

namespace sylvit::nn {

namespace {

std::string text(const kernels::ElementwiseConfig& config) {
  return config_text("ElementwiseConfig", {config.work_items, config.per_item});
}

}  // namespace

kernels::ElementwiseConfig elementwise_config(const tuning::Record& record) {
  return checked(tuning::configs::elementwise(record), record);
}

kernels::ReduceRowsConfig reduce_rows_config(const tuning::Record& record) {
  return checked(tuning::configs::reduce_rows(record), record);
}

kernels::TransposeConfig transpose_config(const tuning::Record& record) {
  return checked(tuning::configs::transpose(record), record);
}

runtime::Kernel<kernels::FillArguments> fill_kernel(DType dtype, const kernels::ElementwiseConfig& config) {
  return {{.header = "elementwise.hpp",
           .arguments = "FillArguments",
           .type = "Fill<" + type_text(dtype) + ", " + text(config) + ">"}};
}

runtime::Kernel<kernels::ConvertArguments> convert_kernel(DType from, DType to,
                                                          const kernels::ElementwiseConfig& config) {
  return {{.header = "elementwise.hpp",
           .arguments = "ConvertArguments",
           .type = "Convert<" + type_text(from) + ", " + type_text(to) + ", " + text(config) + ">"}};
}

runtime::Kernel<kernels::ReduceRowsArguments> reduce_rows_kernel(DType dtype, const kernels::ReduceRowsConfig& config) {
  return {{.header = "reduce.hpp",
           .arguments = "ReduceRowsArguments",
           .type = "ReduceRows<" + type_text(dtype) + ", " + config_text("ReduceRowsConfig", {config.work_items}) + ">",
           .local_memory = true}};
}

runtime::Kernel<kernels::TransposeArguments> transpose_kernel(DType dtype, const kernels::TransposeConfig& config) {
  return {{.header = "transpose.hpp",
           .arguments = "TransposeArguments",
           .type = "Transpose<" + type_text(dtype) + ", " + config_text("TransposeConfig", {config.tile, config.rows}) +
                   ">",
           .local_memory = true}};
}

std::vector<runtime::KernelName> basic_variants(const tuning::Table& table) {
  std::vector<runtime::KernelName> result;
  for (const tuning::Record& record : table.records())
    for (const DType dtype : storage_types) {
      if (!record.dtypes.empty() && std::ranges::find(record.dtypes, dtype) == record.dtypes.end()) continue;
      if (record.kernel == "elementwise") {
        result.push_back(fill_kernel(dtype, elementwise_config(record)));
        for (const DType to : storage_types)
          if (to != dtype) result.push_back(convert_kernel(dtype, to, elementwise_config(record)));
      } else if (record.kernel == "reduce_rows") {
        result.push_back(reduce_rows_kernel(dtype, reduce_rows_config(record)));
      } else if (record.kernel == "transpose") {
        result.push_back(transpose_kernel(dtype, transpose_config(record)));
      }
    }
  return result;
}

std::vector<runtime::KernelName> variants_of(const tuning::Table& table) {
  std::vector<runtime::KernelName> result = basic_variants(table);
  std::ranges::copy(attention_variants(table), std::back_inserter(result));
  std::ranges::copy(blas::gemm_variants(table), std::back_inserter(result));
  std::ranges::copy(training_variants(table), std::back_inserter(result));
  std::ranges::copy(row_variants(table), std::back_inserter(result));
  std::set<std::string> seen;
  std::erase_if(result, [&](const runtime::KernelName& kernel) { return !seen.insert(kernel.type).second; });
  return result;
}

namespace {

/// Calls `use` with the table of each embedded file that serves one of the backends.
template <class Use>
void for_each_table(std::span<const std::string> backends, const Use& use) {
  for (const std::string& backend : backends)
    for (const tuning::TableFile& file : tuning::embedded())
      // A longer chain, of several files before the default, leads to nothing that these do not lead to.
      if (file.family.serves(backend)) use(tuning::embedded_table(file.name, backend));
}

}  // namespace

std::vector<runtime::KernelName> list_variants(std::span<const std::string> backends) {
  std::vector<runtime::KernelName> result{
      {.header = "probe.hpp", .arguments = "ProbeArguments", .type = "Probe", .local_memory = true}};
  for_each_table(
      backends, [&](const tuning::Table& table) { std::ranges::copy(variants_of(table), std::back_inserter(result)); });
  std::set<std::string> seen;
  std::erase_if(result, [&](const runtime::KernelName& kernel) { return !seen.insert(kernel.type).second; });
  return result;
}

std::vector<CustomVariant> list_custom_variants(std::span<const std::string> backends) {
  std::vector<CustomVariant> result;
  for_each_table(backends, [&](const tuning::Table& table) {
    std::ranges::copy(custom_score_variants(table), std::back_inserter(result));
  });
  std::set<std::string> seen;
  std::erase_if(result, [&](const CustomVariant& variant) { return !seen.insert(variant.kernel.type).second; });
  return result;
}

}  // namespace sylvit::nn
