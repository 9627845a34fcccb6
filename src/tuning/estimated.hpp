// What commands say where tile numbers were never measured on such a device.
#pragma once

#include <sylvit/tuning.hpp>

#include "tuning/table.hpp"

namespace sylvit::tuning {

inline constexpr const char* estimated_note = "estimated: run `sylvit tune`";

/// Is one of the kernels that decide about a model's speed run with numbers that nobody has measured?
inline bool uses_estimates(const DeviceInfo& device) {
  const auto estimated = [&](const TuningCase& wanted) {
    const tuning::Record* record = tuning::table_for(device).match(wanted);
    return record != nullptr && record->estimated();
  };
  const auto attention = [](std::string_view kernel) {
    return TuningCase{.kernel = kernel, .score_class = ScoreClass::pointwise, .head_size = 64, .length = 197};
  };
  return estimated(attention("attention_forward")) || estimated(attention("attention_backward")) ||
         estimated({.kernel = "gemm", .n = 384, .k = 384});
}

}  // namespace sylvit::tuning
