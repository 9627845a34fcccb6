#include <sylvit/error.hpp>
#include <sylvit/memory.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <utility>

#include "runtime/host_cpu.hpp"
#include "runtime/kernel_library.hpp"
#include "runtime/memory_error.hpp"
#include "runtime/memory_limit.hpp"
#include "runtime/translate.hpp"

namespace sylvit {

std::string readable_bytes(std::size_t bytes) {
  constexpr std::array units = {"bytes", "KB", "MB", "GB", "TB", "PB", "EB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text.data();
}

Error runtime::memory_error(const DeviceInfo& device, std::size_t bytes, std::string_view purpose,
                            const std::string& detail) {
  return Error("cannot allocate " + readable_bytes(bytes) + " (" + std::to_string(bytes) + " bytes) for " +
                   std::string(purpose) + ": the device has " + readable_bytes(device.memory_bytes) + detail,
               "use a smaller batch or model, or another device", device.name);
}

void runtime::check_fits(const DeviceInfo& device, double bytes, std::string_view purpose) {
  if (bytes <= static_cast<double>(device.memory_bytes)) return;
  constexpr double countable = 18446744073709549568.0;  // the largest double below 2^64
  throw memory_error(
      device, bytes < countable ? static_cast<std::size_t>(bytes) : std::numeric_limits<std::size_t>::max(), purpose);
}

Memory::Memory(const Device& device, std::size_t bytes, std::string_view purpose, MemoryKind kind)
    : data_(device.kernels().pretended_memory(bytes)), bytes_(bytes) {
  if (data_ != nullptr) return;
  context_ = device.queue().get_context();
  const DeviceInfo& info = device.info();
  const auto fail = [&](const std::string& detail) { return runtime::memory_error(info, bytes, purpose, detail); };
  // Some runtimes promise more than there is and fail at the first touch, so what cannot fit is refused here.
  if (bytes > info.memory_bytes) throw fail("");
  // Whole cache lines: not every runtime aligns by itself, and some want the size to be a multiple of the alignment.
  constexpr std::size_t line = 64;
  const std::size_t asked = (std::max(bytes, std::size_t{1}) + line - 1) / line * line;
  const sycl::queue& queue = device.queue();
  data_ = runtime::translated("allocating memory", info.name, [&]() -> void* {
    switch (kind) {
      case MemoryKind::device:
        return sycl::aligned_alloc_device(line, asked, queue);
      case MemoryKind::host:
        return sycl::aligned_alloc_host(line, asked, queue);
      case MemoryKind::shared:
        return sycl::aligned_alloc_shared(line, asked, queue);
    }
    return nullptr;
  });
  if (data_ == nullptr) {
    if (const std::string limit = runtime::shortage({asked, asked}); info.type == DeviceType::cpu && !limit.empty())
      throw fail(", but " + limit);
    throw fail(bytes > info.max_allocation_bytes
                   ? ", of which one allocation may take " + readable_bytes(info.max_allocation_bytes)
                   : ", some of it taken already");
  }
  if (info.type == DeviceType::cpu) runtime::prefer_large_pages(data_, asked);
}

Memory::~Memory() {
  if (data_ != nullptr && context_) sycl::free(data_, *context_);
}

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      context_(std::move(other.context_)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(context_, other.context_);
  return *this;
}

}  // namespace sylvit
