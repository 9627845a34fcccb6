// What differs between SYCL implementations on the host side: names of backends, and what to tell people.
#pragma once

#include <string>

#include <sycl/sycl.hpp>

namespace sylvit::runtime {

/// "opencl", "level_zero", "cuda", "hip", "omp".
std::string backend_name(const sycl::device& device);

/// Has the device instructions that convert between f16 and f32?
bool converts_f16(const sycl::device& device);

/// " (ONEAPI_DEVICE_SELECTOR is 'level_zero:gpu')" when the user has narrowed the choice of devices, else empty.
std::string selector_variable_note();

/// What to do when there is no device at all.
std::string no_device_advice();

}  // namespace sylvit::runtime
