#include "runtime/grid_check.hpp"

#include <sylvit/error.hpp>

#include <algorithm>

namespace sylvit::runtime {

namespace {

/// What can be done about a launch that asks for too much.
std::string advice_for(const KernelName& kernel) {
  return is_own(kernel) ? "launch it with what the device has" : "choose another tuning record";
}

}  // namespace

void check_type(const DeviceInfo& device, const KernelName& kernel) {
  if (kernel.f16 && !device.fp16) throw Error("the device has no f16", "use f32 or bf16", device.name);
}

void check_grid(const DeviceInfo& device, const KernelName& kernel, const Grid& grid) {
  check_type(device, kernel);
  const std::size_t work_items = grid.work_items.size();
  if (work_items == 0 || work_items > device.max_work_group)
    throw Error("the kernel " + kernel.type + " wants work-groups of " + std::to_string(work_items) +
                    ", and the device takes 1 to " + std::to_string(device.max_work_group),
                advice_for(kernel), device.name);
  if (grid.local_floats > device.local_memory_bytes / sizeof(float))
    throw Error("the kernel " + kernel.type + " wants " + std::to_string(grid.local_floats) +
                    " floats of local memory, and the device has " + std::to_string(device.local_memory_bytes) +
                    " bytes of it",
                advice_for(kernel), device.name);
}

void check_sub_group(const DeviceInfo& device, const KernelName& kernel) {
  const int wanted = kernel.sub_group_size;
  if (runs_sub_groups_of(device.sub_group_sizes, wanted)) return;
  std::string sizes;
  for (const int size : device.sub_group_sizes) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  throw Error(
      "the kernel " + kernel.type + " wants sub-groups of " + std::to_string(wanted) + ", and the device has " + sizes,
      is_own(kernel) ? "give it one of those" : "choose another tuning record", device.name);
}

}  // namespace sylvit::runtime
