// The gradients' norm, clipping, AdamW, SGD and a moving average in plain fp64.
#pragma once

#include <optional>
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
  /// What decay is multiplied with; without it, AdamW's is multiplied with the learning rate, and SGD's is a part of
  /// the gradient.
  std::optional<double> decay_factor = {};
};

/// What differs from one parameter to the next.
struct PerParameter {
  Numbers decay;  ///< 0 or 1
  Numbers rate;   ///< what the learning rate is multiplied with
};

/// The moments and parameters change in place.
void adamw(Numbers& parameters, const Numbers& gradients, Numbers& first, Numbers& second, const PerParameter& each,
           const Optimizer& options, int step);
/// beta1 is the momentum.
void sgd(Numbers& parameters, const Numbers& gradients, Numbers& momentum, const PerParameter& each,
         const Optimizer& options);
/// average = decay average + (1 - decay) parameters
void average(Numbers& average, const Numbers& parameters, double decay);

}  // namespace sylvit::reference
