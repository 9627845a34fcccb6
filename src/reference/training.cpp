#include "reference/training.hpp"

#include <algorithm>
#include <cmath>

namespace sylvit::reference {

Numbers patch_rows(const Numbers& images, const ImageShape& shape) {
  Numbers rows;
  for (std::size_t b = 0; b < shape.batch; ++b)
    for (std::size_t gy = 0; gy < shape.height / shape.patch; ++gy)
      for (std::size_t gx = 0; gx < shape.width / shape.patch; ++gx)
        for (std::size_t c = 0; c < shape.channels; ++c)
          for (std::size_t y = gy * shape.patch; y < (gy + 1) * shape.patch; ++y)
            for (std::size_t x = gx * shape.patch; x < (gx + 1) * shape.patch; ++x)
              rows.push_back(images[((b * shape.channels + c) * shape.height + y) * shape.width + x]);
  return rows;
}

Numbers assemble_tokens(const Numbers& embedded, const Numbers& bias, const Numbers& positions,
                        const Numbers& class_token, const TokenShape& shape) {
  Numbers x;
  std::size_t next = 0;
  for (std::size_t b = 0; b < shape.batch; ++b)
    for (std::size_t t = 0; t < shape.tokens; ++t)
      for (std::size_t c = 0; c < shape.width; ++c) {
        const double token = shape.class_token && t == 0 ? class_token[c] : embedded[next++] + bias[c];
        x.push_back(token + positions[t * shape.width + c]);
      }
  return x;
}

AssembleGradients assemble_tokens_backward(const Numbers& gradient, const TokenShape& shape) {
  AssembleGradients result{.embedded = {}, .positions = Numbers(shape.tokens * shape.width), .class_token = {}};
  for (std::size_t b = 0; b < shape.batch; ++b)
    for (std::size_t t = 0; t < shape.tokens; ++t)
      for (std::size_t c = 0; c < shape.width; ++c) {
        const double value = gradient[(b * shape.tokens + t) * shape.width + c];
        result.positions[t * shape.width + c] += value;
        if (!shape.class_token || t > 0) result.embedded.push_back(value);
      }
  if (shape.class_token)
    result.class_token.assign(result.positions.begin(),
                              result.positions.begin() + static_cast<std::ptrdiff_t>(shape.width));
  return result;
}

Numbers pool_average(const Numbers& x, const TokenShape& shape) {
  const std::size_t skip = shape.class_token ? 1 : 0;
  Numbers pooled(shape.batch * shape.width);
  for (std::size_t b = 0; b < shape.batch; ++b)
    for (std::size_t c = 0; c < shape.width; ++c) {
      for (std::size_t t = skip; t < shape.tokens; ++t)
        pooled[b * shape.width + c] += x[(b * shape.tokens + t) * shape.width + c];
      pooled[b * shape.width + c] /= static_cast<double>(shape.tokens - skip);
    }
  return pooled;
}

Numbers pool_backward(const Numbers& pooled_gradient, const TokenShape& shape, bool token) {
  const std::size_t skip = shape.class_token ? 1 : 0;
  Numbers gradient;
  for (std::size_t b = 0; b < shape.batch; ++b)
    for (std::size_t t = 0; t < shape.tokens; ++t)
      for (std::size_t c = 0; c < shape.width; ++c) {
        const double value = pooled_gradient[b * shape.width + c];
        if (token)
          gradient.push_back(t == 0 ? value : 0.0);
        else
          gradient.push_back(t >= skip ? value / static_cast<double>(shape.tokens - skip) : 0.0);
      }
  return gradient;
}

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

double norm(const Numbers& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

double clip_factor(double norm, double max_norm) {
  return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

void adamw(Numbers& parameters, const Numbers& gradients, Numbers& first, Numbers& second, const Numbers& decay,
           const Optimizer& options, int step) {
  const double correction1 = 1 - std::pow(options.beta1, step);
  const double correction2 = 1 - std::pow(options.beta2, step);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i] *= 1 - options.learning_rate * options.weight_decay * decay[i];
    first[i] = options.beta1 * first[i] + (1 - options.beta1) * gradients[i];
    second[i] = options.beta2 * second[i] + (1 - options.beta2) * gradients[i] * gradients[i];
    const double below = std::sqrt(second[i]) / std::sqrt(correction2) + options.epsilon;
    parameters[i] -= options.learning_rate / correction1 * first[i] / below;
  }
}

void sgd(Numbers& parameters, const Numbers& gradients, Numbers& momentum, const Numbers& decay,
         const Optimizer& options) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double d = gradients[i] + options.weight_decay * decay[i] * parameters[i];
    momentum[i] = options.beta1 * momentum[i] + d;
    parameters[i] -= options.learning_rate * (options.nesterov ? d + options.beta1 * momentum[i] : momentum[i]);
  }
}

}  // namespace sylvit::reference
