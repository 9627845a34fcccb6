#include "reference/loss.hpp"

#include <algorithm>
#include <cmath>

namespace sylvit::reference {

CrossEntropy cross_entropy(bool softmax, const Numbers& logits, const Numbers& targets, std::size_t batch,
                           double smoothing) {
  const std::size_t classes = logits.size() / batch;
  CrossEntropy result;
  for (std::size_t b = 0; b < batch; ++b) {
    const double* z = logits.data() + b * classes;
    const double top = *std::max_element(z, z + classes);
    double sum = 0;
    double wanted = 0;
    double loss = 0;
    Numbers q(classes);
    for (std::size_t c = 0; c < classes; ++c) {
      q[c] = (1 - smoothing) * targets[b * classes + c] + smoothing / static_cast<double>(classes);
      sum += std::exp(z[c] - top);
      wanted += q[c];
    }
    for (std::size_t c = 0; c < classes; ++c)
      if (softmax) {
        loss += q[c] * (top + std::log(sum) - z[c]);
        result.gradient.push_back((wanted * std::exp(z[c] - top) / sum - q[c]) / static_cast<double>(batch));
      } else {
        const auto softplus = [](double s) { return std::max(s, 0.0) + std::log1p(std::exp(-std::abs(s))); };
        loss += q[c] * softplus(-z[c]) + (1 - q[c]) * softplus(z[c]);
        result.gradient.push_back((1 / (1 + std::exp(-z[c])) - q[c]) / static_cast<double>(batch));
      }
    result.losses.push_back(loss);
    result.mean += loss / static_cast<double>(batch);
  }
  return result;
}

}  // namespace sylvit::reference
