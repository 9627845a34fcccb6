// A matrix product in the words of BLAS: what gemm() makes of its views and hands to a provider.
#pragma once

#include <sylvit/gemm.hpp>

#include <cstdint>

#include "base/events.hpp"

namespace sylvit::blas {

using base::Events;

/// A factor as it lies in memory: rows of `stride` elements; `transposed` where a row runs along the other axis.
struct Factor {
  const void* data;
  bool transposed;
  std::int64_t stride;
  std::int64_t batch_stride;
};

/// C = alpha · A B + beta · C, row-major.
struct Product {
  std::int64_t batch, m, n, k;
  DType type;    ///< of A and B
  DType c_type;  ///< the same, or f32
  Factor a, b;
  void* c;
  std::int64_t c_stride;
  std::int64_t c_batch;
  float alpha, beta;

  /// Nothing to multiply: C is empty, or beta C is all there is. Not for other libraries, which differ in what they do.
  bool trivial() const { return batch == 0 || m == 0 || n == 0 || k == 0; }
};

/// Checks everything and throws Error that names the operand.
Product product_of(const Gemm& gemm);

/// One way to compute products.
struct Provider {
  GemmProvider name;
  bool (*serves)(const Device& device, const Product& product);
  sycl::event (*run)(const Device& device, const Product& product, Events after);
};

// Where a library was not found, its list is empty.
std::span<const Provider> onemkl_provider();
std::span<const Provider> onemath_provider();
std::span<const Provider> cblas_provider();

}  // namespace sylvit::blas
