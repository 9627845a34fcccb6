// Which CPU this is, as far as instruction sets go.
#pragma once

#include <string>

namespace sylvit::runtime {

/// The same for two machines whose CPUs have the same model and features (from /proc/cpuinfo; empty where there is none).
const std::string& host_cpu_fingerprint();

}  // namespace sylvit::runtime
