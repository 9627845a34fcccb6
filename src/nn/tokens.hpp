// Images to rows of patches, patches to tokens, tokens to what the head sees, and their gradients. All return at once
// with an event that ends the work, and start after the given ones. All tensors are dense; T is f32, bf16 or f16, and
// sums are f32. An image's results do not depend on the rest of its batch.
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/tensor.hpp>

#include "nn/basic.hpp"

namespace sylvit::nn {

/// images: f32 [batch, channels, height, width]; rows: T [batch * patches, channels * patch * patch]. Patches stand
/// line by line over the grid, the values of one by channel, line and column: a linear layer with the weights of a
/// convolution, flattened, embeds them.
sycl::event patch_rows(const Device& device, const TensorView& images, std::int64_t patch, const TensorView& rows,
                       Events after = {});

/// The parameters that turn embedded patches into tokens; all f32, or all of the tokens' type.
struct TokenParameters {
  TensorView bias = {};         ///< [width]
  TensorView positions = {};    ///< [tokens, width]
  TensorView class_token = {};  ///< [width]; empty: none. It is token 0 and has position 0.
};

/// embedded: T [batch * patches, width], without the bias; tokens: T [batch, tokens, width].
sycl::event assemble_tokens(const Device& device, const TensorView& embedded, const TokenParameters& parameters,
                            const TensorView& tokens, Events after = {});

/// Empty views are not wanted.
struct TokenGradients {
  TensorView embedded = {};     ///< T [batch * patches, width]
  TensorView positions = {};    ///< f32 [tokens, width]: the sum over the batch
  TensorView class_token = {};  ///< f32 [width]: the sum over the batch
};

/// The bias's gradient is the sum of the embedded patches' over its rows, and not made here.
sycl::event assemble_tokens_backward(const Device& device, const TensorView& tokens_gradient, bool class_token,
                                     const TokenGradients& gradients, Events after = {});

/// pooled[b] = the mean of x[b, t] over the tokens after the class token. x: T [batch, tokens, width].
sycl::event pool_average(const Device& device, const TensorView& x, bool class_token, const TensorView& pooled,
                         Events after = {});

/// Writes the whole gradient of x, zeros for the class token.
sycl::event pool_average_backward(const Device& device, const TensorView& pooled_gradient, bool class_token,
                                  const TensorView& x_gradient, Events after = {});

/// The gradient of x where pooling takes token 0 (as a view): zeros for all others.
sycl::event pool_token_backward(const Device& device, const TensorView& pooled_gradient, const TensorView& x_gradient,
                                Events after = {});

}  // namespace sylvit::nn
