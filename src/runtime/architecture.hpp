// What kind of device it is, in the words that tuning tables use: "sm_80", "gfx90a", "xe-hpg", "avx2".
#pragma once

#include <sylvit/device.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace sylvit::runtime {

/// Asks the runtime, in whichever way its implementation has; empty where it does not tell.
std::string architecture_of(const sycl::device& device, const DeviceInfo& info);

// The ways, for testing.

/// From a number of sycl_ext_oneapi_device_architecture: a family in the highest byte, and in it NVIDIA's SM version,
/// AMD's GFX version, or Intel's GMDID.
std::string architecture_of_id(std::uint64_t id);
/// From a version as the runtimes write it: "sm_80", "8.0" (CUDA), "gfx90a:sramecc+:xnack-".
std::string architecture_of_version(Backend backend, std::string_view version);
/// From the name of an Intel GPU: "Intel(R) Arc(TM) A770 Graphics".
std::string architecture_of_intel_name(std::string_view name);

}  // namespace sylvit::runtime
