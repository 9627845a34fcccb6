// Plain fp64 code of what a training step needs beside attention and matrix products; judges src/kernels/tokens.hpp,
// loss.hpp and optimizer.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
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

struct CrossEntropy {
  Numbers losses;
  double mean = 0;
  Numbers gradient;  ///< of the mean
};

/// targets: [batch, classes], before smoothing.
CrossEntropy cross_entropy(bool softmax, const Numbers& logits, const Numbers& targets, std::size_t batch,
                           double smoothing);

/// sqrt(Σ x²)
double norm(const Numbers& values);
/// What clipping multiplies gradients of this norm with; 0: no clipping.
double clip_factor(double norm, double max_norm);

struct Optimizer {
  double learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  bool nesterov = false;
};

/// decay: 0 or 1 for each parameter. The moments and parameters change in place.
void adamw(Numbers& parameters, const Numbers& gradients, Numbers& first, Numbers& second, const Numbers& decay,
           const Optimizer& options, int step);
/// beta1 is the momentum.
void sgd(Numbers& parameters, const Numbers& gradients, Numbers& momentum, const Numbers& decay,
         const Optimizer& options);

}  // namespace sylvit::reference
