// What work really launches: a device that runs everything as before and notes who was asked to compute it.
#pragma once

#include <sylvit/device.hpp>

#include <memory>
#include <string>
#include <vector>

namespace sylvit::runtime {

/// One submission: a variant of a kernel, or a call of another library.
struct Submission {
  std::string name;     ///< the kernel's type as text, or the library: "onemkl"
  std::string functor;  ///< the kernel's template alone; empty for another library
  std::string record;   ///< what tuning tables call the kernel's records; empty for another library
};

/// Work submitted to this device runs on the other one; between begin() and end() it is noted too.
class Recording {
 public:
  explicit Recording(const Device& device);

  const Device& device() const { return device_; }
  /// Notes what is submitted from now on.
  void begin();
  /// What was noted since begin() or the last call, in that order.
  std::vector<Submission> take();
  void end();

 private:
  struct Notes;
  class Library;
  static Device recorded(const Device& device, std::shared_ptr<KernelLibrary> library);

  std::shared_ptr<Notes> notes_;
  Device device_;
};

}  // namespace sylvit::runtime
