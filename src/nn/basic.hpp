// The simplest operations on device memory. All return at once with an event that ends the work, and start after the
// given ones.
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/tensor.hpp>

#include "base/events.hpp"

namespace sylvit::nn {

using base::Events;

/// Every element of a dense view becomes the value, rounded to its type.
sycl::event fill(const Device& device, const TensorView& out, float value, Events after = {});

/// out = in, rounded to out's type (f32, bf16, f16; both dense, of the same shape).
sycl::event convert(const Device& device, const TensorView& in, const TensorView& out, Events after = {});

}  // namespace sylvit::nn
