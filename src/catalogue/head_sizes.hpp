// Head sizes that attention is compiled for.
#pragma once

#include <sylvit/device.hpp>

#include <cstdint>
#include <span>

namespace sylvit::catalogue {

/// What libraries compiled ahead of time hold; one in between uses the next, with zeros after it.
std::span<const std::int64_t> head_sizes_ahead_of_time();

/// The head size that kernels are compiled for: the head size itself where they are built at run time, else the next of
/// a few, so that a library does not hold thirty copies of everything.
std::int64_t compiled_head_size(Toolchain toolchain, std::int64_t head_size);

/// The largest that this library can run.
std::int64_t largest_compiled_head_size(Toolchain toolchain);

}  // namespace sylvit::catalogue
