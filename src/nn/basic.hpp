// The simplest operations on device memory. All return at once with an event that ends the work, and start after the
// given ones.
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/tensor.hpp>

#include <span>

namespace sylvit::nn {

using Events = std::span<const sycl::event>;

/// Builds all kernels of this file for the device in one batch; without it each is built at its first use.
void prepare_basic(const Device& device);

/// Every element of a dense view becomes the value, rounded to its type.
sycl::event fill(const Device& device, const TensorView& out, float value, Events after = {});

/// out = in, rounded to out's type (f32, bf16, f16; both dense, of the same shape).
sycl::event convert(const Device& device, const TensorView& in, const TensorView& out, Events after = {});

/// out[r] = Σ_c in[r, c]; in: [rows, columns] with contiguous rows, out: dense f32 [rows]. The order of addition
/// depends on the number of columns alone.
sycl::event reduce_rows(const Device& device, const TensorView& in, const TensorView& out, Events after = {});

/// out[c, r] = in[r, c]; both with contiguous rows.
sycl::event transpose(const Device& device, const TensorView& in, const TensorView& out, Events after = {});

}  // namespace sylvit::nn
