// What a device silently gets wrong when it is asked for too much is refused before the launch.
#pragma once

#include <algorithm>
#include <span>

#include "runtime/kernel.hpp"

namespace sylvit::runtime {

/// Throws Error when the kernel converts f16 and the device has none.
void check_type(const DeviceInfo& device, const KernelName& kernel);
/// Throws Error when the device cannot run the kernel over this grid.
void check_grid(const DeviceInfo& device, const KernelName& kernel, const Grid& grid);
/// Can a device with these sub-group sizes run tiles of `wanted` lanes (0: any)? Where the hardware has only one size,
/// as with NVIDIA and AMD, narrower tiles share a sub-group: no kernel counts on its tile being a whole one.
inline bool runs_sub_groups_of(std::span<const int> sizes, int wanted) {
  if (wanted == 0 || std::ranges::find(sizes, wanted) != sizes.end()) return true;
  return sizes.size() == 1 && sizes.front() % wanted == 0;
}
/// Throws Error when the device lacks the sub-group size that the kernel asks for.
void check_sub_group(const DeviceInfo& device, const KernelName& kernel);

inline bool is_empty(const Grid& grid) { return grid.groups.size() == 0; }

inline sycl::nd_range<3> nd_range_of(const Grid& grid) { return {grid.groups * grid.work_items, grid.work_items}; }

}  // namespace sylvit::runtime
