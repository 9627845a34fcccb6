#include "blas/builtin.hpp"
#include "tuning/variant.hpp"

namespace sylvit::blas {

BuiltinKernels builtin_kernels(const tuning::Table& table, DType type, DType c_type) {
  const tuning::Record& record = table.find({.kernel = "gemm", .dtype = type});
  const kernels::GemmConfig config = tuning::checked(kernels::GemmConfig{.lanes = record.number("lanes"),
                                                                         .columns = record.number("columns"),
                                                                         .rows = record.number("rows"),
                                                                         .row_block = record.number("row_block"),
                                                                         .panels = record.number("panels"),
                                                                         .depth_block = record.number("depth_block"),
                                                                         .sub_groups = record.number("sub_groups")},
                                                     record);
  const std::string text =
      tuning::config_text("GemmConfig", {config.lanes, config.columns, config.rows, config.row_block, config.panels,
                                         config.depth_block, config.sub_groups});
  return {config,
          tuning::named<kernels::GemmPackArguments>("gemm.hpp", "GemmPackArguments",
                                                    "GemmPack<" + tuning::type_text(type) + ", " + text + ">",
                                                    config.lanes, false),
          tuning::named<kernels::GemmArguments>(
              "gemm.hpp", "GemmArguments",
              "Gemm<" + tuning::type_text(type) + ", " + tuning::type_text(c_type) + ", " + text + ">", config.lanes,
              true)};
}

EpilogueKernel epilogue_kernel(const tuning::Table& table, DType c_type) {
  const tuning::Record& record = table.find({.kernel = "gemm_epilogue", .dtype = c_type});
  const kernels::GemmEpilogueConfig config =
      tuning::checked(kernels::GemmEpilogueConfig{record.number("work_items"), record.number("rows")}, record);
  return {config,
          {{.header = "gemm.hpp",
            .arguments = "GemmEpilogueArguments",
            .type = "GemmEpilogue<" + tuning::type_text(c_type) + ", " +
                    tuning::config_text("GemmEpilogueConfig", {config.work_items, config.rows}) + ">"}}};
}

std::vector<runtime::KernelName> gemm_variants(const tuning::Table& table) {
  std::vector<runtime::KernelName> result;
  for (const DType type : tuning::storage_types) {
    const BuiltinKernels narrow = builtin_kernels(table, type, type);
    result.push_back(narrow.pack);
    result.push_back(narrow.multiply);
    if (type != DType::f32) result.push_back(builtin_kernels(table, type, DType::f32).multiply);
    result.push_back(epilogue_kernel(table, type).kernel);
  }
  return result;
}

}  // namespace sylvit::blas
