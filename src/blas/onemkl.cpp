// oneMKL on SYCL queues: under the DPC++ toolchains, where CMake found it.
#include "blas/product.hpp"

#if defined(SYLVIT_ONEMKL)
#include <array>
#include <oneapi/mkl/blas.hpp>

#include "blas/vendor.hpp"

namespace sylvit::blas {

namespace {

struct OneMkl {
  static constexpr const char* call = "oneMKL's gemm";
  using Bfloat16 = oneapi::mkl::bfloat16;
  static constexpr auto plain = oneapi::mkl::transpose::nontrans;
  static constexpr auto transposed = oneapi::mkl::transpose::trans;
  static constexpr auto gemm = [](auto&&... arguments) -> decltype(oneapi::mkl::blas::row_major::gemm(arguments...)) {
    return oneapi::mkl::blas::row_major::gemm(arguments...);
  };
  static constexpr auto gemm_batch =
      [](auto&&... arguments) -> decltype(oneapi::mkl::blas::row_major::gemm_batch(arguments...)) {
    return oneapi::mkl::blas::row_major::gemm_batch(arguments...);
  };
};

/// It runs on x86 CPUs and Intel GPUs. Its batches of 16-bit results overwrite what lies after C's rows.
bool serves(const Device& device, const Product& product) {
  const bool rows_stay_inside = product.c_type == DType::f32 || product.batch == 1 || product.c_stride == product.n;
  return rows_stay_inside && (device.info().backend == Backend::opencl || device.info().backend == Backend::level_zero);
}

constexpr std::array provider{Provider{GemmProvider::onemkl, serves, Vendor<OneMkl>::run}};

}  // namespace

std::span<const Provider> onemkl_provider() { return provider; }

}  // namespace sylvit::blas

#else

namespace sylvit::blas {

std::span<const Provider> onemkl_provider() { return {}; }

}  // namespace sylvit::blas

#endif
