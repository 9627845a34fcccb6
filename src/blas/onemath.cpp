// oneMath: one API over cuBLAS, rocBLAS and MKL, where CMake found it. Its run-time dispatch looks at the queue's
// device.
#include "blas/product.hpp"

#if defined(SYLVIT_ONEMATH)
#include <array>
#include <oneapi/math.hpp>

#include "blas/vendor.hpp"

namespace sylvit::blas {

namespace {

struct OneMath {
  static constexpr const char* call = "oneMath's gemm";
  using Bfloat16 = sycl::ext::oneapi::bfloat16;
  static constexpr auto plain = oneapi::math::transpose::nontrans;
  static constexpr auto transposed = oneapi::math::transpose::trans;
  static constexpr auto gemm = [](auto&&... arguments) -> decltype(oneapi::math::blas::row_major::gemm(arguments...)) {
    return oneapi::math::blas::row_major::gemm(arguments...);
  };
  static constexpr auto gemm_batch =
      [](auto&&... arguments) -> decltype(oneapi::math::blas::row_major::gemm_batch(arguments...)) {
    return oneapi::math::blas::row_major::gemm_batch(arguments...);
  };
};

/// Its batches have no 16-bit results that are summed in f32.
bool serves(const Device& /*device*/, const Product& product) {
  return product.type == DType::f32 || (product.batch == 1 && product.c_type == DType::f32);
}

constexpr std::array provider{Provider{GemmProvider::onemath, serves, Vendor<OneMath>::run}};

}  // namespace

std::span<const Provider> onemath_provider() { return provider; }

}  // namespace sylvit::blas

#else

namespace sylvit::blas {

std::span<const Provider> onemath_provider() { return {}; }

}  // namespace sylvit::blas

#endif
