// The only door from the kernels to SYCL. Under the run-time compiler (SYLVIT_RUN_TIME_COMPILED is then defined by the
// generated source) it includes just what kernels use: the whole <sycl/sycl.hpp> costs two seconds more for each build.
// Whatever a compiler has beyond SYCL 2020 that a kernel needs gets its name here and nowhere else.
#pragma once

#if defined(SYLVIT_RUN_TIME_COMPILED)
#include <sycl/builtins.hpp>
#include <sycl/group_barrier.hpp>
#include <sycl/nd_item.hpp>
#else
#include <sycl/sycl.hpp>
#endif

#include <cstdint>

namespace sylvit::kernels {

/// All work-items of the group wait here and see each other's writes to local memory.
inline void barrier(const sycl::nd_item<3>& item) { sycl::group_barrier(item.get_group()); }

/// `count` floats of one work-item as a vector. AdaptiveCpp's own vec is an array, and of plain loops LLVM 19 makes
/// halves of vectors that do not fit the registers. Elsewhere the lanes are work-items, and no kernel asks for one.
#if defined(__ACPP__)
inline constexpr bool has_float_vectors = true;
template <int count>
using FloatVector = float __attribute__((ext_vector_type(count)));
#else
inline constexpr bool has_float_vectors = false;
template <int count>
struct FloatVector;
#endif

/// sum += a · x, rounded once.
template <class Vector>
[[gnu::always_inline]] inline void add_product(Vector& sum, float a, const Vector& x) {
#if __has_builtin(__builtin_elementwise_fma)
  sum = __builtin_elementwise_fma(Vector(a), x, sum);
#else
  sum = a * x + sum;  // one operation, because kernels are compiled with -ffp-contract=fast
#endif
}

/// Kernels are launched over (groups0, groups1, groups2) work-groups of (1, 1, work_items).
inline std::int64_t group_of(const sycl::nd_item<3>& item, int axis) {
  return static_cast<std::int64_t>(item.get_group(axis));
}
inline int lane_of(const sycl::nd_item<3>& item) { return static_cast<int>(item.get_local_id(2)); }

}  // namespace sylvit::kernels
