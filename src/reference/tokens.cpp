#include "reference/tokens.hpp"

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

}  // namespace sylvit::reference
