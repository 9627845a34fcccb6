// Addresses that are no memory: for planning, where only their differences count. The one place that makes them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/counts.hpp"

namespace sylvit::runtime {

/// Gives out addresses, one range after the other, in a part of the address space that no allocation reaches.
class PretendedMemory {
 public:
  std::byte* take(std::size_t bytes) {
    auto* here = reinterpret_cast<std::byte*>(next_);
    next_ += base::padded(bytes == 0 ? 1 : bytes);
    return here;
  }

 private:
  std::uintptr_t next_ = std::uintptr_t{1} << 48U;
};

}  // namespace sylvit::runtime
