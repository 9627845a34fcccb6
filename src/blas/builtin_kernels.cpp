#include "blas/builtin.hpp"
#include "tuning/configs.hpp"
#include "tuning/variant.hpp"

namespace sylvit::blas {

namespace {

BuiltinKernels kernels_of(const tuning::Record& record, DType type, DType c_type) {
  const kernels::GemmConfig config = tuning::checked(tuning::configs::gemm(record), record);
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

}  // namespace

BuiltinKernels builtin_kernels(const tuning::Table& table, DType type, DType c_type, std::int64_t n, std::int64_t k) {
  return kernels_of(table.find({.kernel = "gemm", .dtype = type, .n = n, .k = k}), type, c_type);
}

EpilogueKernel epilogue_kernel(const tuning::Table& table, DType c_type) {
  const tuning::Record& record = table.find({.kernel = "gemm_epilogue", .dtype = c_type});
  const kernels::GemmEpilogueConfig config = tuning::checked(tuning::configs::gemm_epilogue(record), record);
  return {config,
          {{.header = "gemm.hpp",
            .arguments = "GemmEpilogueArguments",
            .type = "GemmEpilogue<" + tuning::type_text(c_type) + ", " +
                    tuning::config_text("GemmEpilogueConfig", {config.work_items, config.rows}) + ">"}}};
}

std::vector<runtime::KernelName> gemm_variants(const tuning::Table& table) {
  std::vector<runtime::KernelName> result;
  for (const DType type : tuning::storage_types) {
    for (const tuning::Record* record : table.leading_to({.kernel = "gemm", .dtype = type})) {
      const BuiltinKernels narrow = kernels_of(*record, type, type);
      result.push_back(narrow.pack);
      result.push_back(narrow.multiply);
      if (type != DType::f32) result.push_back(kernels_of(*record, type, DType::f32).multiply);
    }
    result.push_back(epilogue_kernel(table, type).kernel);
  }
  return result;
}

}  // namespace sylvit::blas
