#include "runtime/host_cpu.hpp"

#include <cstdint>
#include <fstream>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/kernel_cache.hpp"

namespace sylvit::runtime {

const std::string& host_cpu_fingerprint() {
  static const std::string result = [] {
    std::ifstream file("/proc/cpuinfo");
    std::string line;
    std::string text;
    while (std::getline(file, line) && !line.empty())  // the first processor's paragraph
      for (const char* field : {"vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU part"})
        if (line.starts_with(field)) text += line + "\n";
    return text.empty() ? text : fingerprint(text);
  }();
  return result;
}

std::string host_vector_class() {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return "avx512";
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "avx2" : "sse";
#elif defined(__aarch64__)
  return "neon";
#else
  return {};
#endif
}

std::size_t host_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page) : 0;
}

void prefer_large_pages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t large_page = std::uintptr_t{1} << 21;
  // Whole large pages inside the memory: what lies around it belongs to others.
  const auto begin = (reinterpret_cast<std::uintptr_t>(data) + large_page - 1) / large_page * large_page;
  const auto end = (reinterpret_cast<std::uintptr_t>(data) + bytes) / large_page * large_page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace sylvit::runtime
