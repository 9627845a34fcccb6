#include "reference/optimizer.hpp"

#include <algorithm>
#include <cmath>

namespace sylvit::reference {

double norm(const Numbers& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

double clip_factor(double norm, double max_norm) {
  return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

void adamw(Numbers& parameters, const Numbers& gradients, Numbers& first, Numbers& second, const PerParameter& each,
           const Optimizer& options, int step) {
  const double correction1 = 1 - std::pow(options.beta1, step);
  const double correction2 = 1 - std::pow(options.beta2, step);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double learning_rate = options.learning_rate * each.rate[i];
    parameters[i] *= 1 - options.decay_factor.value_or(learning_rate) * options.weight_decay * each.decay[i];
    first[i] = options.beta1 * first[i] + (1 - options.beta1) * gradients[i];
    second[i] = options.beta2 * second[i] + (1 - options.beta2) * gradients[i] * gradients[i];
    const double below = std::sqrt(second[i]) / std::sqrt(correction2) + options.epsilon;
    parameters[i] -= learning_rate / correction1 * first[i] / below;
  }
}

void sgd(Numbers& parameters, const Numbers& gradients, Numbers& momentum, const PerParameter& each,
         const Optimizer& options) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double decay = options.weight_decay * each.decay[i];
    double d = gradients[i];
    if (options.decay_factor)
      parameters[i] *= 1 - *options.decay_factor * decay;
    else
      d += decay * parameters[i];
    momentum[i] = options.beta1 * momentum[i] + d;
    parameters[i] -=
        options.learning_rate * each.rate[i] * (options.nesterov ? d + options.beta1 * momentum[i] : momentum[i]);
  }
}

void average(Numbers& average, const Numbers& parameters, double decay) {
  for (std::size_t i = 0; i < parameters.size(); ++i) average[i] = decay * average[i] + (1 - decay) * parameters[i];
}

}  // namespace sylvit::reference
