// The one list of the folders of backends/: which devices each is for.
#pragma once

#include <sylvit/device.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace sylvit::tuning {

struct TableBackend {
  std::string_view name;  ///< of the folder
  bool adaptive;          ///< of AdaptiveCpp, whose compilers want other tiles than DPC++'s
  bool (*serves)(const DeviceInfo& device);
};

/// The first that serves a device is its own.
inline constexpr std::array table_backends = {
    TableBackend{"dpcpp-cuda", false, [](const DeviceInfo& device) { return device.backend == Backend::cuda; }},
    TableBackend{"dpcpp-hip", false, [](const DeviceInfo& device) { return device.backend == Backend::hip; }},
    TableBackend{"dpcpp-cpu", false, [](const DeviceInfo& device) { return device.type == DeviceType::cpu; }},
    TableBackend{"dpcpp-intel-gpu", false, [](const DeviceInfo& /*device*/) { return true; }},
    TableBackend{"acpp-cuda", true, [](const DeviceInfo& device) { return device.backend == Backend::cuda; }},
    TableBackend{"acpp-hip", true, [](const DeviceInfo& device) { return device.backend == Backend::hip; }},
    // AdaptiveCpp's other GPUs have no table of their own yet.
    TableBackend{"acpp-cpu", true, [](const DeviceInfo& /*device*/) { return true; }}};

inline bool is_table_backend(std::string_view name) {
  return std::ranges::find(table_backends, name, &TableBackend::name) != table_backends.end();
}

/// The folder of a device's tables.
inline std::string_view backend_of(const DeviceInfo& device) {
  return std::ranges::find_if(table_backends,
                              [&](const TableBackend& backend) {
                                return backend.adaptive == (device.toolchain == Toolchain::acpp) &&
                                       backend.serves(device);
                              })
      ->name;
}

}  // namespace sylvit::tuning
