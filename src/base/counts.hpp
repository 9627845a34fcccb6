// Extents are signed and SYCL counts are not: the two steps from one to the other; and limits of counts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sylvit::base {

inline std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

/// How many parts of `each` hold `count`.
inline std::size_t divided_up(std::int64_t count, std::int64_t each) { return size((count + each - 1) / each); }

/// Blocks that a model may have: their number decides how many tensors are listed, planned and launched for.
inline constexpr std::int64_t most_blocks = 4096;

/// Parts of one piece of memory begin at multiples of this many bytes.
inline constexpr std::size_t memory_alignment = 256;
constexpr std::size_t padded(std::size_t bytes) {
  return (bytes + memory_alignment - 1) / memory_alignment * memory_alignment;
}

}  // namespace sylvit::base
