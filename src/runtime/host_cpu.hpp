// The machine that the process runs on.
#pragma once

#include <cstddef>
#include <string>

namespace sylvit::runtime {

/// The same for two machines whose CPUs have the same model and features (from /proc/cpuinfo; empty where there is
/// none).
const std::string& host_cpu_fingerprint();

/// Its memory.
std::size_t host_memory_bytes();

}  // namespace sylvit::runtime
