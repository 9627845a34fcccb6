// Images to rows of patches, tokens and pooling, with their gradients, in plain fp64.
#pragma once

#include <cstddef>
#include <vector>

namespace sylvit::reference {

using Numbers = std::vector<double>;

struct ImageShape {
  std::size_t batch, channels, height, width, patch;
};

/// [batch * patches, channels * patch * patch]
Numbers patch_rows(const Numbers& images, const ImageShape& shape);

struct TokenShape {
  std::size_t batch, tokens, width;
  bool class_token;
};

/// class_token: [width] or empty.
Numbers assemble_tokens(const Numbers& embedded, const Numbers& bias, const Numbers& positions,
                        const Numbers& class_token, const TokenShape& shape);

struct AssembleGradients {
  Numbers embedded, positions, class_token;
};
AssembleGradients assemble_tokens_backward(const Numbers& gradient, const TokenShape& shape);

Numbers pool_average(const Numbers& x, const TokenShape& shape);
/// The gradient of pool_average, or with `token` that of taking token 0.
Numbers pool_backward(const Numbers& pooled_gradient, const TokenShape& shape, bool token);

}  // namespace sylvit::reference
