#include "runtime/grid_check.hpp"

#include <algorithm>

#include <sylvit/error.hpp>

namespace sylvit::runtime {

GridLimits::GridLimits(const sycl::device& device, std::string name)
    : max_work_items(device.get_info<sycl::info::device::max_work_group_size>()),
      local_memory_bytes(device.get_info<sycl::info::device::local_mem_size>()),
      sub_group_sizes(device.get_info<sycl::info::device::sub_group_sizes>()),
      device_name(std::move(name)) {}

void GridLimits::check(const KernelName& kernel, const Grid& grid) const {
  if (grid.work_items == 0 || grid.work_items > max_work_items)
    throw Error("the kernel " + kernel.type + " wants work-groups of " + std::to_string(grid.work_items) +
                    ", and the device takes 1 to " + std::to_string(max_work_items),
                "choose another tuning record", device_name);
  if (grid.local_floats * sizeof(float) > local_memory_bytes)
    throw Error("the kernel " + kernel.type + " wants " + std::to_string(grid.local_floats * sizeof(float)) +
                    " bytes of local memory, and the device has " + std::to_string(local_memory_bytes),
                "choose another tuning record", device_name);
  if (grid.local_floats > 0 && !kernel.local_memory)
    throw Error("the kernel " + kernel.type + " was given local memory that its name does not mention", {},
                device_name);
}

void GridLimits::check_sub_group(const KernelName& kernel) const {
  const auto wanted = static_cast<std::size_t>(kernel.sub_group_size);
  if (wanted == 0 || std::ranges::find(sub_group_sizes, wanted) != sub_group_sizes.end()) return;
  std::string sizes;
  for (const std::size_t size : sub_group_sizes) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  throw Error("the kernel " + kernel.type + " wants sub-groups of " + std::to_string(wanted) +
                  ", and the device has " + sizes,
              "choose another tuning record", device_name);
}

}  // namespace sylvit::runtime
