// Our own GEMM (kernels/gemm.hpp): always there, tuned by the tables, with the epilogues fused.
#pragma once

#include <vector>

#include "blas/product.hpp"
#include "kernels/gemm.hpp"
#include "runtime/kernel.hpp"
#include "tuning/table.hpp"

namespace sylvit::blas {

/// The variants: named here for launching and for the list of those compiled ahead of time.
struct BuiltinKernels {
  kernels::GemmConfig config;
  runtime::Kernel<kernels::GemmPackArguments> pack;
  runtime::Kernel<kernels::GemmArguments> multiply;
};
/// For products with n columns of sums over k; their number of rows has no say.
BuiltinKernels builtin_kernels(const tuning::Table& table, DType type, DType c_type, std::int64_t n, std::int64_t k);

struct EpilogueKernel {
  kernels::GemmEpilogueConfig config;
  runtime::Kernel<kernels::GemmEpilogueArguments> kernel;
};
EpilogueKernel epilogue_kernel(const tuning::Table& table, DType c_type);

/// Every variant of this file that a table names.
std::vector<runtime::KernelName> gemm_variants(const tuning::Table& table);

/// Where C goes and what happens on the way, for the kernels; alpha and beta are the product's.
kernels::GemmOutput output_of(const Gemm& gemm, const Product& product);

/// B in the form of the panels that gemm.hpp draws.
std::size_t builtin_packed_bytes(const Device& device, const Product& product);
sycl::event builtin_pack(const Device& device, const Product& product, void* packed, Events after);
sycl::event builtin_gemm(const Device& device, const Product& product, const kernels::GemmOutput& output,
                         const void* packed, Events after);
/// The epilogue after a product of another library.
sycl::event run_epilogue(const Device& device, const Product& product, const kernels::GemmOutput& output, Events after);

}  // namespace sylvit::blas
