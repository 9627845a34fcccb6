#include "catalogue/head_sizes.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <string>

#include "base/head_sizes.hpp"

namespace sylvit::catalogue {

namespace {

/// CMake's SYLVIT_HEAD_SIZES chooses them.
constexpr std::array<std::int64_t, std::initializer_list<std::int64_t>{SYLVIT_HEAD_SIZES}.size()> sizes = {
    SYLVIT_HEAD_SIZES};

}  // namespace

std::span<const std::int64_t> head_sizes_ahead_of_time() { return sizes; }

std::int64_t compiled_head_size(Toolchain toolchain, std::int64_t head_size) {
  if (toolchain == Toolchain::rtc) return head_size;
  const auto found = std::ranges::lower_bound(sizes, head_size);
  if (found == sizes.end())
    throw Error("head size " + std::to_string(head_size) + " is larger than what this library was compiled for (" +
                    std::to_string(sizes.back()) + ")",
                "build it with a larger one in -DSYLVIT_HEAD_SIZES, or with -DSYLVIT_TOOLCHAIN=rtc");
  return *found;
}

std::int64_t largest_compiled_head_size(Toolchain toolchain) {
  return toolchain == Toolchain::rtc ? base::largest_head_size : sizes.back();
}

}  // namespace sylvit::catalogue
