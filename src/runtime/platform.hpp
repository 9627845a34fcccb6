// What differs between SYCL implementations on the host side: backends, and what to tell people.
#pragma once

#include <sylvit/device.hpp>

#include <string>

namespace sylvit::runtime {

Backend sycl_backend_of(const sycl::device& device);

/// Has the device instructions that convert between f16 and f32?
bool converts_f16(const sycl::device& device);

/// " (ONEAPI_DEVICE_SELECTOR is 'level_zero:gpu')" when the user has narrowed the choice of devices, else empty.
std::string selector_variable_note();

/// What to do when there is no device at all.
std::string no_device_advice();

}  // namespace sylvit::runtime
