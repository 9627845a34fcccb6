// The gradients' norm, clipping, AdamW and SGD in plain fp64.
#pragma once

#include <vector>

namespace sylvit::reference {

using Numbers = std::vector<double>;

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
