#include "runtime/memory_limit.hpp"

#include <sylvit/memory.hpp>

#include <array>
#include <sys/mman.h>
#include <sys/resource.h>

namespace sylvit::runtime {

namespace {

constexpr std::size_t megabyte = std::size_t{1} << 20;

bool can_reserve(std::size_t bytes, int protection) {
  if (bytes == 0) return true;
  void* address = ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return false;
  ::munmap(address, bytes);
  return true;
}

/// " (ulimit -v 400.0 MB)": the limits that the process has, if any.
std::string limits() {
  constexpr std::array kinds{std::pair(RLIMIT_AS, "ulimit -v "), std::pair(RLIMIT_DATA, "ulimit -d ")};
  std::string text;
  for (const auto& [kind, name] : kinds) {
    rlimit limit{};
    if (::getrlimit(kind, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
    text.append(text.empty() ? " (" : ", ").append(name).append(readable_bytes(limit.rlim_cur));
  }
  return text.empty() ? text : text + ")";
}

}  // namespace

// Measured with the wheels' OpenCL CPU device and run-time compiler (2026.0): the peaks of VmPeak and VmData.
MemoryNeed need_of_drivers() { return {384 * megabyte, 96 * megabyte}; }

MemoryNeed need_of_compilers(std::size_t count, bool loaded) {
  const std::size_t each = 192 * megabyte;
  return {(loaded ? 0 : 256 * megabyte) + count * each, count * each};
}

MemoryNeed need_of_calls() { return {128 * megabyte, 32 * megabyte}; }

std::string shortage(const MemoryNeed& need) {
  const bool mapped = can_reserve(need.mapped, PROT_NONE);
  if (mapped && can_reserve(need.written, PROT_READ | PROT_WRITE)) return {};
  return "this process can have less than " + readable_bytes(mapped ? need.written : need.mapped) + " more memory" +
         limits();
}

}  // namespace sylvit::runtime
