// Is a record sound, and what must a device have to run it?
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "catalogue/records.hpp"
#include "tuning/record.hpp"
#include "tuning/table_file.hpp"

namespace sylvit::tuning {

/// Does the configuration of this kernel depend on the head size?
bool depends_on_head_size(std::string_view kernel);

/// What is wrong with a record wherever it would run: an unknown kernel, a number that is missing, unknown or out of
/// bounds, tiles that do not divide, an origin that does not say whether it was measured. Empty when it is sound.
std::string flaw_of(const Record& record);

using catalogue::Demand;
/// Of a sound record. Records whose kernel does not depend on it take any head size.
Demand demand_of(const Record& record, std::int64_t head_size);

/// Why a device with these limits cannot run a sound record at a head size: "it wants sub-groups of 64, and the device
/// has 16, 32". Empty when it can.
std::string obstacle_of(const Record& record, const Limits& limits, std::int64_t head_size);

/// The largest head size, a multiple of 8 up to 256, at which these limits allow a sound record; 0: none.
std::int64_t largest_runnable_head_size(const Record& record, const Limits& limits);

}  // namespace sylvit::tuning
