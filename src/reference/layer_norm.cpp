#include "reference/layer_norm.hpp"

#include <cmath>

namespace sylvit::reference {

double dot(std::span<const double> a, std::span<const double> b) {
  // Four sums instead of one, because each addition would wait for the one before.
  double sums[4] = {0, 0, 0, 0};
  std::size_t c = 0;
  for (; c + 4 <= a.size(); c += 4)
    for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] += a[c + lane] * b[c + lane];
  for (; c < a.size(); ++c) sums[0] += a[c] * b[c];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void add_scaled(std::span<double> sum, double factor, std::span<const double> values) {
  for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += factor * values[c];
}

RowStatistics statistics_of(std::span<const double> x, double epsilon) {
  const auto size = static_cast<double>(x.size());
  double mean = 0;
  for (const double value : x) mean += value / size;
  double variance = 0;
  for (const double value : x) variance += (value - mean) * (value - mean) / size;
  return {mean, 1 / std::sqrt(variance + epsilon)};
}

void norm_forward(std::span<const double> x, const NormParameters& norm, double epsilon, std::span<double> y) {
  const RowStatistics row = statistics_of(x, epsilon);
  for (std::size_t c = 0; c < y.size(); ++c) {
    y[c] = (x[c] - row.mean) * row.factor;
    if (!norm.weight.empty()) y[c] *= norm.weight[c];
    if (!norm.bias.empty()) y[c] += norm.bias[c];
  }
}

void norm_backward(std::span<const double> x, const NormParameters& norm, double epsilon, std::span<double> gradient,
                   NormParameters& sums) {
  const RowStatistics row = statistics_of(x, epsilon);
  const auto standard = [&](std::size_t c) { return (x[c] - row.mean) * row.factor; };
  const auto size = static_cast<double>(x.size());
  double mean = 0;
  double mean_along_x = 0;
  for (std::size_t c = 0; c < x.size(); ++c) {
    sums.weight[c] += gradient[c] * standard(c);
    sums.bias[c] += gradient[c];
    if (!norm.weight.empty()) gradient[c] *= norm.weight[c];
    mean += gradient[c] / size;
    mean_along_x += gradient[c] * standard(c) / size;
  }
  for (std::size_t c = 0; c < x.size(); ++c)
    gradient[c] = row.factor * (gradient[c] - mean - standard(c) * mean_along_x);
}

std::vector<double> layer_norm(const std::vector<double>& x, std::size_t rows, const NormParameters& norm,
                               double epsilon) {
  std::vector<double> y(x.size());
  const std::size_t columns = x.size() / rows;
  for (std::size_t r = 0; r < rows; ++r)
    norm_forward(std::span(x).subspan(r * columns, columns), norm, epsilon, std::span(y).subspan(r * columns, columns));
  return y;
}

LayerNormGradients layer_norm_backward(const std::vector<double>& x, std::size_t rows, const NormParameters& norm,
                                       double epsilon, const std::vector<double>& y_gradient) {
  const std::size_t columns = x.size() / rows;
  LayerNormGradients gradients{y_gradient, {std::vector<double>(columns, 0.0), std::vector<double>(columns, 0.0)}};
  for (std::size_t r = 0; r < rows; ++r)
    norm_backward(std::span(x).subspan(r * columns, columns), norm, epsilon,
                  std::span(gradients.x).subspan(r * columns, columns), gradients.parameters);
  return gradients;
}

}  // namespace sylvit::reference
