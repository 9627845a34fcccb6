#include "reference/activation.hpp"

#include "reference/attention.hpp"

namespace sylvit::reference {

std::vector<double> activation(Score h, const std::vector<double>& u) {
  std::vector<double> a(u.size());
  for (std::size_t i = 0; i < u.size(); ++i) a[i] = score_value(h, u[i]);
  return a;
}

std::vector<double> activation_backward(Score h, const std::vector<double>& u, const std::vector<double>& a_gradient) {
  std::vector<double> gradient(u.size());
  for (std::size_t i = 0; i < u.size(); ++i) gradient[i] = a_gradient[i] * score_slope(h, u[i]);
  return gradient;
}

}  // namespace sylvit::reference
