// The head sizes that attention serves.
#pragma once

#include <cstdint>
#include <string>

namespace sylvit::base {

inline constexpr std::int64_t smallest_head_size = 16;
inline constexpr std::int64_t largest_head_size = 256;
inline constexpr std::int64_t head_size_step = 8;

constexpr bool is_head_size(std::int64_t head_size) {
  return head_size >= smallest_head_size && head_size <= largest_head_size && head_size % head_size_step == 0;
}

/// "a multiple of 8 from 16 to 256"
inline std::string head_size_rule() {
  return "a multiple of " + std::to_string(head_size_step) + " from " + std::to_string(smallest_head_size) + " to " +
         std::to_string(largest_head_size);
}

}  // namespace sylvit::base
