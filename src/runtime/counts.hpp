// Extents are signed and SYCL counts are not: the two steps from one to the other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sylvit::runtime {

inline std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

/// How many parts of `each` hold `count`.
inline std::size_t divided_up(std::int64_t count, std::int64_t each) { return size((count + each - 1) / each); }

}  // namespace sylvit::runtime
