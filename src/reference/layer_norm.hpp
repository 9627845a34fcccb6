// Layer norm in plain fp64. Matrices are dense [rows, columns]; their columns follow from the size and the number of
// rows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sylvit::reference {

double dot(std::span<const double> a, std::span<const double> b);
/// sum += factor · values
void add_scaled(std::span<double> sum, double factor, std::span<const double> values);

/// Parameters of a layer norm. Empty means absent: weights of 1, biases of 0.
struct NormParameters {
  std::vector<double> weight;
  std::vector<double> bias;
};

/// Mean and 1 / sqrt(biased variance + ε) of a row.
struct RowStatistics {
  double mean;
  double factor;
};
RowStatistics statistics_of(std::span<const double> x, double epsilon);

/// y = (x - mean) · factor · weight + bias, one row.
void norm_forward(std::span<const double> x, const NormParameters& norm, double epsilon, std::span<double> y);

/// Turns the gradient of y into that of x, one row, and adds to the gradients of the parameters.
void norm_backward(std::span<const double> x, const NormParameters& norm, double epsilon, std::span<double> gradient,
                   NormParameters& sums);

/// The same over the rows of a matrix.
std::vector<double> layer_norm(const std::vector<double>& x, std::size_t rows, const NormParameters& norm,
                               double epsilon);

struct LayerNormGradients {
  std::vector<double> x;
  NormParameters parameters;
};
LayerNormGradients layer_norm_backward(const std::vector<double>& x, std::size_t rows, const NormParameters& norm,
                                       double epsilon, const std::vector<double>& y_gradient);

}  // namespace sylvit::reference
