// All kernels of a comparison in one batch: most of the time of building kernels goes into starting the compiler.
#pragma once

#include "cli/compare_request.hpp"
#include "runtime/kernel.hpp"

namespace sylvit::cli::compare {

/// Each once. What cannot be planned is left out: the work itself says why.
std::vector<runtime::KernelName> kernels_of(const Device& device, const Request& request,
                                            const std::vector<DType>& dtypes);

}  // namespace sylvit::cli::compare
