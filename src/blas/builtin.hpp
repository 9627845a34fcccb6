// Our own GEMM (kernels/gemm.hpp): always there, tuned by the tables, with the epilogues fused.
#pragma once

#include "blas/product.hpp"
#include "kernels/gemm.hpp"

namespace sylvit::blas {

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
