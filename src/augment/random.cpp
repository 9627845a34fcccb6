#include "augment/random.hpp"

#include <cmath>
#include <numbers>

namespace sylvit::augment {

double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

namespace {

/// The logarithm of a number of Gamma(p): with a small p the number itself may be too small for a double.
double log_gamma_number(Random& random, double p) {
  // Gamma(p) is Gamma(p + 1) times the p-th root of a uniform number.
  const double boost = p < 1 ? std::log(1 - random.uniform()) / p : 0;
  const double d = (p < 1 ? p + 1 : p) - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal(random);
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(1 - random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v) + boost;
  }
}

}  // namespace

double beta(Random& random, double p) {
  const double a = log_gamma_number(random, p);
  const double b = log_gamma_number(random, p);
  return 1 / (1 + std::exp(b - a));
}

}  // namespace sylvit::augment
