// The kernels of one device. Two implementations, one of which is compiled in: run_time.cpp (DPC++'s run-time compiler)
// and ahead_of_time.cpp (variants compiled with the library).
#pragma once

#include <memory>
#include <span>

#include "runtime/kernel.hpp"

namespace sylvit::runtime {

class KernelLibrary {
 public:
  virtual ~KernelLibrary() = default;
  /// Thread-safe, both.
  virtual void prepare(std::span<const KernelName> kernels) = 0;
  virtual sycl::event submit(const KernelName& kernel, const Grid& grid, std::span<const std::byte> arguments,
                             std::span<const sycl::event> after) = 0;
};

/// Gets warnings as whole sentences.
using Warn = std::function<void(std::string_view)>;

std::unique_ptr<KernelLibrary> make_kernel_library(const sycl::queue& queue, const DeviceInfo& device, Warn warn);

/// "rtc", "dpcpp" or "acpp".
std::string_view toolchain_name();

}  // namespace sylvit::runtime
