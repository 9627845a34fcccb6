// The one kernel without tile numbers, which no table names.
#pragma once

#include "kernels/probe.hpp"
#include "runtime/kernel.hpp"

namespace sylvit::runtime {

inline Kernel<kernels::ProbeArguments> probe_kernel() {
  return {{.header = "probe.hpp",
           .arguments = "ProbeArguments",
           .type = "Probe",
           .functor = "Probe",
           .work_items = kernels::Probe::work_items,
           .local_floats = kernels::Probe::work_items,
           .local_memory = true}};
}

}  // namespace sylvit::runtime
