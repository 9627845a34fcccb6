// A CBLAS on the host, for AdaptiveCpp's CPU device, where CMake found one: the call runs as an operation of the queue.
#include "blas/product.hpp"

#if defined(SYLVIT_CBLAS)
#include <array>
#include <cblas.h>
#include <limits>

namespace sylvit::blas {

namespace {

bool serves(const Device& device, const Product& p) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  const bool small =
      p.m <= most && p.n <= most && p.k <= most && p.a.stride <= most && p.b.stride <= most && p.c_stride <= most;
  return device.info().type == DeviceType::cpu && p.type == DType::f32 && p.c_type == DType::f32 && small;
}

void multiply(const Product& p) {
  const auto side = [](const Factor& factor) { return factor.transposed ? CblasTrans : CblasNoTrans; };
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  for (std::int64_t i = 0; i < p.batch; ++i)
    cblas_sgemm(CblasRowMajor, side(p.a), side(p.b), number(p.m), number(p.n), number(p.k), p.alpha,
                static_cast<const float*>(p.a.data) + i * p.a.batch_stride, number(p.a.stride),
                static_cast<const float*>(p.b.data) + i * p.b.batch_stride, number(p.b.stride), p.beta,
                static_cast<float*>(p.c) + i * p.c_batch, number(p.c_stride));
}

sycl::event run(const Device& device, const Product& product, Events after) {
  return device.queue().submit([&](sycl::handler& handler) {
    handler.depends_on(std::vector<sycl::event>(after.begin(), after.end()));
    handler.AdaptiveCpp_enqueue_custom_operation([product](sycl::interop_handle&) { multiply(product); });
  });
}

constexpr std::array provider{Provider{GemmProvider::blas, serves, run}};

}  // namespace

std::span<const Provider> cblas_provider() { return provider; }

}  // namespace sylvit::blas

#else

namespace sylvit::blas {

std::span<const Provider> cblas_provider() { return {}; }

}  // namespace sylvit::blas

#endif
