// What lies between the products of a Vision Transformer, element by element. All tensors are [rows, columns] of one
// type (f32, bf16 or f16) with contiguous rows and any row stride. An output may be one of the inputs itself (same
// memory, same strides), but must not overlap one otherwise, nor another output. A default-made view leaves out what is
// optional.
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/tensor.hpp>

#include "catalogue/kernel.hpp"
#include "nn/basic.hpp"

namespace sylvit::nn {

using catalogue::Gelu;

/// u_gradient = out_gradient * gelu'(u); u_gradient may be out_gradient. Optional: out = gelu(u), with the bits that
/// a product with GELU after it gave it, which may be u.
sycl::event gelu_backward(const Device& device, Gelu form, const TensorView& u, const TensorView& out_gradient,
                          const TensorView& u_gradient, const TensorView& out = {}, Events after = {});

/// out = x * y.
sycl::event multiply(const Device& device, const TensorView& x, const TensorView& y, const TensorView& out,
                     Events after = {});

/// x_gradient = out_gradient * y; y_gradient = out_gradient * x.
sycl::event multiply_backward(const Device& device, const TensorView& x, const TensorView& y,
                              const TensorView& out_gradient, const TensorView& x_gradient,
                              const TensorView& y_gradient, Events after = {});

}  // namespace sylvit::nn
