#include "runtime/kernel.hpp"

#include "runtime/kernel_library.hpp"

namespace sylvit::runtime {

void prepare(const Device& device, std::span<const KernelName> kernels) { device.kernels().prepare(kernels); }

sycl::event launch_bytes(const Device& device, const KernelName& kernel, const sycl::range<3>& groups,
                         std::span<const std::byte> arguments, std::span<const sycl::event> after) {
  return device.kernels().submit(kernel,
                                 {.groups = groups,
                                  .work_items = {1, 1, static_cast<std::size_t>(kernel.work_items)},
                                  .local_floats = static_cast<std::size_t>(kernel.local_floats)},
                                 arguments, after);
}

sycl::event submit_other(const Device& device, std::string_view who,
                         const std::function<sycl::event(sycl::queue&)>& submit) {
  return device.kernels().submit_other(who, device.queue(), submit);
}

sycl::event copy(const Device& device, void* to, const void* from, std::size_t bytes,
                 std::span<const sycl::event> after) {
  return submit_other(device, "copy", [&](sycl::queue& queue) {
    return queue.memcpy(to, from, bytes, std::vector<sycl::event>(after.begin(), after.end()));
  });
}

}  // namespace sylvit::runtime
