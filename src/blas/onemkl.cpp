#include "blas/onemkl.hpp"

#if defined(SYLVIT_ONEMKL)
#include <oneapi/mkl/blas.hpp>
#endif

#include <sylvit/error.hpp>

#include "runtime/translate.hpp"

namespace sylvit::blas {

#if defined(SYLVIT_ONEMKL)

bool has_onemkl() { return true; }

sycl::event onemkl_gemm(const Device& device, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                        const float* b, float* c, std::span<const sycl::event> after) {
  return runtime::translated("oneMKL's gemm", device.name(), [&] {
    const auto plain = oneapi::mkl::transpose::nontrans;
    return oneapi::mkl::blas::row_major::gemm(device.queue(), plain, plain, m, n, k, 1.0F, a, k, b, n, 0.0F, c, n,
                                              {after.begin(), after.end()});
  });
}

#else

bool has_onemkl() { return false; }

sycl::event onemkl_gemm(const Device& device, std::int64_t /*m*/, std::int64_t /*n*/, std::int64_t /*k*/,
                        const float* /*a*/, const float* /*b*/, float* /*c*/, std::span<const sycl::event> /*after*/) {
  throw Error("this library was built without oneMKL", "build it with the rtc toolchain, or where CMake finds oneMKL",
              device.name());
}

#endif

}  // namespace sylvit::blas
