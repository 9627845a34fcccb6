// What asynchronous work waits for.
#pragma once

#include <span>

#include <sycl/sycl.hpp>

namespace sylvit::base {

using Events = std::span<const sycl::event>;

}  // namespace sylvit::base
