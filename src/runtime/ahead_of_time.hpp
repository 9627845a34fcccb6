// The dpcpp and acpp toolchains: variants are compiled with the library. Generated sources (cmake/variants.cmake) call
// add<Functor>() for each variant that the tables name.
#pragma once

#include <cstring>

#include "runtime/grid_check.hpp"
#include "runtime/kernel.hpp"

namespace sylvit::runtime {

/// The sub-group size to ask the compiler for where a kernel's tiles are `lanes` wide. NVIDIA and AMD have one size,
/// and narrower tiles share a sub-group there: no kernel counts on its tile being a whole one.
constexpr int sub_group_here(int lanes) {
#if defined(__NVPTX__)
  constexpr int width = 32;
#elif defined(__AMDGCN_WAVEFRONT_SIZE)
  constexpr int width = __AMDGCN_WAVEFRONT_SIZE;
#else
  constexpr int width = 0;
#endif
  return lanes < width ? width : lanes;
}

/// `sub_group_size` 0 leaves the choice to the compiler.
template <class Functor, int sub_group_size, bool local_memory>
sycl::event launch_variant(sycl::queue& queue, const Grid& grid, std::span<const std::byte> bytes,
                           const std::vector<sycl::event>& after) {
  typename Functor::Arguments arguments;
  std::memcpy(&arguments, bytes.data(), sizeof(arguments));
  return queue.submit([&](sycl::handler& handler) {
    handler.depends_on(after);
    const sycl::nd_range<3> range = nd_range_of(grid);
    if constexpr (local_memory) {
      const sycl::local_accessor<float, 1> local(sycl::range<1>(grid.local_floats), handler);
#if defined(SYLVIT_TOOLCHAIN_DPCPP)
      if constexpr (sub_group_size > 0) {
        handler.parallel_for(range,
                             [=](sycl::nd_item<3> item) [[sycl::reqd_sub_group_size(sub_group_here(sub_group_size))]] {
                               Functor::run(arguments, item, &local[0]);
                             });
        return;
      }
#endif
      handler.parallel_for(range, [=](sycl::nd_item<3> item) { Functor::run(arguments, item, &local[0]); });
    } else {
      handler.parallel_for(range, [=](sycl::nd_item<3> item) { Functor::run(arguments, item, nullptr); });
    }
  });
}

/// Defined by the generated sources.
void add_all_variants(Variants& variants);

}  // namespace sylvit::runtime
