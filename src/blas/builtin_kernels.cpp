#include <array>

#include "blas/builtin.hpp"
#include "tuning/configs.hpp"
#include "tuning/variant.hpp"

namespace sylvit::blas {

namespace {

using kernels::GemmEpilogueKind;

constexpr std::array epilogues = {GemmEpilogueKind::none, GemmEpilogueKind::bias, GemmEpilogueKind::bias_gelu,
                                  GemmEpilogueKind::bias_gelu_tanh, GemmEpilogueKind::bias_residual};

std::string text(const kernels::GemmForm& form) {
  constexpr std::array names = {"none", "bias", "bias_gelu", "bias_gelu_tanh", "bias_residual"};
  static_assert(names.size() == epilogues.size());
  return std::string("GemmForm{GemmEpilogueKind::") + names[static_cast<std::size_t>(form.epilogue)] + ", " +
         (form.transposed ? "true" : "false") + "}";
}

BuiltinKernels kernels_of(const tuning::Record& record, DType type, DType c_type, const kernels::GemmForm& form) {
  const kernels::GemmConfig config = tuning::checked(tuning::configs::gemm(record), record);
  const std::string config_text =
      tuning::config_text("GemmConfig", {config.lanes, config.columns, config.rows, config.row_block, config.panels,
                                         config.depth_block, config.sub_groups, config.staged});
  const bool staged = type == DType::f32 ? kernels::is_staged<float>(form, config) : true;
  return {config,
          tuning::named<kernels::GemmPackArguments>("gemm.hpp", "GemmPackArguments",
                                                    "GemmPack<" + tuning::type_text(type) + ", " + config_text + ">",
                                                    config.lanes, false),
          tuning::named<kernels::GemmArguments>("gemm.hpp", "GemmArguments",
                                                "Gemm<" + tuning::type_text(type) + ", " + tuning::type_text(c_type) +
                                                    ", " + text(form) + ", " + config_text + ">",
                                                config.lanes, true),
          config.sum_floats() + (staged ? config.staged_floats(form.transposed) : 0)};
}

}  // namespace

BuiltinKernels builtin_kernels(const tuning::Table& table, DType type, DType c_type, const kernels::GemmForm& form,
                               std::int64_t n, std::int64_t k) {
  return kernels_of(table.find({.kernel = "gemm", .dtype = type, .n = n, .k = k}), type, c_type, form);
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
      result.push_back(kernels_of(*record, type, type, {}).pack);
      for (const GemmEpilogueKind epilogue : epilogues)
        for (const bool transposed : {false, true}) {
          result.push_back(kernels_of(*record, type, type, {epilogue, transposed}).multiply);
          if (type != DType::f32)
            result.push_back(kernels_of(*record, type, DType::f32, {epilogue, transposed}).multiply);
        }
    }
    result.push_back(epilogue_kernel(table, type).kernel);
  }
  return result;
}

}  // namespace sylvit::blas
