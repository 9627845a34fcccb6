// Finding out which kernels a piece of work needs by going through it without running anything.
#pragma once

#include <sylvit/device.hpp>

#include <vector>

#include "runtime/kernel.hpp"

namespace sylvit::runtime {

/// Work submitted to this device only leaves the names of its kernels behind, for prepare() to build them in one batch.
/// Pointers are not looked at. Products of other libraries are left out.
class Rehearsal {
 public:
  explicit Rehearsal(const Device& device);

  const Device& device() const { return device_; }
  const std::vector<KernelName>& kernels() const { return *kernels_; }

 private:
  std::shared_ptr<std::vector<KernelName>> kernels_;
  Device device_;
};

/// Is this the device of a Rehearsal?
bool is_rehearsal(const Device& device);

}  // namespace sylvit::runtime
