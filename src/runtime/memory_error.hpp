// The sentence for memory that a device does not have.
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/error.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace sylvit::runtime {

/// "cannot allocate … for `purpose`: the device has …", and `detail` after that.
Error memory_error(const DeviceInfo& device, std::size_t bytes, std::string_view purpose,
                   const std::string& detail = {});

/// Throws that Error for a number of bytes beyond the device's memory. A double, so that no product of sizes overflows
/// on the way here.
void check_fits(const DeviceInfo& device, double bytes, std::string_view purpose);

}  // namespace sylvit::runtime
