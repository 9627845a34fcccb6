// The kernels of one device. Two implementations, one of which is compiled in: run_time.cpp (DPC++'s run-time compiler)
// and ahead_of_time.cpp (variants compiled with the library).
#pragma once

#include <functional>
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
  /// Work that is no kernel of ours.
  virtual sycl::event submit_other(std::string_view /*who*/, sycl::queue& queue,
                                   const std::function<sycl::event(sycl::queue&)>& work) {
    return work(queue);
  }
  /// An address that stands for memory where nothing will run; null: memory is to be allocated.
  virtual void* pretended_memory(std::size_t /*bytes*/) { return nullptr; }
};

/// Gets warnings as whole sentences.
using Warn = std::function<void(std::string_view)>;

std::unique_ptr<KernelLibrary> make_kernel_library(const sycl::queue& queue, const DeviceInfo& device, Warn warn);

/// "rtc", "dpcpp" or "acpp".
Toolchain toolchain();

}  // namespace sylvit::runtime
