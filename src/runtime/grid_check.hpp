// What a device silently gets wrong when it is asked for too much is refused before the launch.
#pragma once

#include <sycl/sycl.hpp>

#include "runtime/kernel.hpp"

namespace sylvit::runtime {

struct GridLimits {
  std::size_t max_work_items = 0;
  std::size_t local_memory_bytes = 0;
  std::vector<std::size_t> sub_group_sizes;
  std::string device_name;

  GridLimits(const sycl::device& device, std::string name);
  void check(const KernelName& kernel, const Grid& grid) const;
  void check_sub_group(const KernelName& kernel) const;
};

inline bool is_empty(const Grid& grid) { return grid.groups.size() == 0; }

inline sycl::nd_range<3> nd_range_of(const Grid& grid) {
  const sycl::range<3> local{1, 1, grid.work_items};
  return {grid.groups * local, local};
}

}  // namespace sylvit::runtime
