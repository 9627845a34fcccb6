// What `sylvit tuning check` looks at, beyond what reading a file refuses.
#pragma once

#include <span>
#include <vector>

#include "tuning/table_file.hpp"

namespace sylvit::tuning {

/// Everything that is wrong with a file: what could not be read, records that are not sound, and records that cannot
/// run on any head size on a typical device of its family or on those of the given devices that it is for.
std::vector<Problem> problems_of(const TableFile& file, std::span<const DeviceInfo> devices);

}  // namespace sylvit::tuning
