// Layer norm over the last axis and its gradients, for the tokens of a Vision Transformer and for the queries and keys
// of attention.
//
// Rows are given as [rows, channels], [batch, rows, channels] or [batch, heads, rows, channels], with any strides but
// contiguous channels, in f32, bf16 or f16; arithmetic is f32. Weights and biases are dense f32 [channels]. The
// statistics of the rows (mean and 1 / sqrt(variance + epsilon)) are dense f32 [rows of all, 2]. A default-made view
// leaves out what is optional.
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/tensor.hpp>

#include <cstddef>

#include "nn/basic.hpp"

namespace sylvit::nn {

/// out = (in - mean) / sqrt(variance + epsilon) * weight + bias. Optional: weight (1), bias (0), statistics, which are
/// written. out may be in.
sycl::event layer_norm_forward(const Device& device, const TensorView& in, const TensorView& weight,
                               const TensorView& bias, float epsilon, const TensorView& out,
                               const TensorView& statistics = {}, Events after = {});

struct LayerNormBackward {
  TensorView in = {};
  TensorView weight = {};      ///< optional
  TensorView statistics = {};  ///< optional: what the forward pass wrote; else they are computed again
  TensorView out_gradient = {};
  TensorView residual = {};  ///< optional: added to in_gradient, which it may be
  TensorView lengths = {};   ///< optional, i32 [batch]: rows beyond them count as absent, and have no gradient

  TensorView in_gradient = {};      ///< written; of in's shape and type, not overlapping in or out_gradient
  TensorView weight_gradient = {};  ///< optional, written: dense f32 [channels]
  TensorView bias_gradient = {};    ///< optional, written: dense f32 [channels]

  float epsilon = 1e-6F;  ///< needed where no statistics are given
};

/// The bytes of device memory that layer_norm_backward needs beside its arguments.
std::size_t layer_norm_backward_workspace(const LayerNormBackward& pass);

/// The gradients of a layer norm. Bitwise repeatable; the order of the sums over rows depends on the shape alone.
sycl::event layer_norm_backward(const Device& device, const LayerNormBackward& pass, void* workspace,
                                Events after = {});

}  // namespace sylvit::nn
