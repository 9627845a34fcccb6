// oneMKL's GEMM on SYCL queues. Present under the DPC++ toolchains where CMake found oneMKL (SYLVIT_ONEMKL).
#pragma once

#include <sylvit/device.hpp>

#include <cstdint>
#include <span>

namespace sylvit::blas {

/// Was the library built with oneMKL?
bool has_onemkl();

/// C = A B in f32, dense row-major: A [m, k], B [k, n], C [m, n]. Throws Error when there is no oneMKL.
sycl::event onemkl_gemm(const Device& device, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                        const float* b, float* c, std::span<const sycl::event> after = {});

}  // namespace sylvit::blas
