// What a report says of the machine, the program and the devices.
#pragma once

#include "compare/request.hpp"

namespace sylvit::compare {

/// Date, command, versions and machine.
void describe_host(Run& run);

DeviceReport device_report(const DeviceInfo& device);

/// The tuning records that the models' attention, norms and products use.
std::vector<TuningUse> tuning_uses(const DeviceInfo& device, const std::vector<Model>& models,
                                   const std::vector<DType>& dtypes);

}  // namespace sylvit::compare
