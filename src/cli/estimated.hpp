// What commands say where tile numbers were never measured on such a device.
#pragma once

namespace sylvit::cli {

inline constexpr const char* estimated_note = "estimated: run `sylvit tune`";

}  // namespace sylvit::cli
