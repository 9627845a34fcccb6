// Finding out which kernels a piece of work needs by going through it without running anything. Whoever wants to know
// what some work launches, or how much memory it takes, lets that very work run on a rehearsal's device.
#pragma once

#include <sylvit/device.hpp>

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/kernel.hpp"

namespace sylvit::runtime {

/// Work submitted to this device only leaves the names of its kernels, for prepare() to build them in one batch. Memory
/// of this device is not allocated: it has addresses as different from each other as real ones, and nothing reads or
/// writes them. Calls of other libraries are left out, and warnings are kept for the work itself.
class Rehearsal {
 public:
  explicit Rehearsal(const Device& device);

  const Device& device() const { return device_; }
  /// Each once, in the order in which they were first wanted.
  const std::vector<KernelName>& kernels() const;
  /// Of all memory that was asked for, whether or not it was given back.
  std::size_t bytes() const;

 private:
  struct Notes;
  class Library;
  static Device rehearsing(const Device& device, std::shared_ptr<KernelLibrary> library);

  std::shared_ptr<Notes> notes_;
  Device device_;
};

}  // namespace sylvit::runtime
