// The machine that the process runs on.
#pragma once

#include <cstddef>
#include <string>

namespace sylvit::runtime {

/// The same for two machines whose CPUs have the same model and features (from /proc/cpuinfo; empty where there is
/// none).
const std::string& host_cpu_fingerprint();

/// The widest vectors that all its usual instructions have: "avx512", "avx2", "sse", "neon"; empty where not known.
std::string host_vector_class();

/// Its memory.
std::size_t host_memory_bytes();

/// Asks the system to back large memory of this process with large pages, before its first use. A hint: nothing happens
/// where the system has none or decides so itself.
void prefer_large_pages(void* data, std::size_t bytes);

}  // namespace sylvit::runtime
