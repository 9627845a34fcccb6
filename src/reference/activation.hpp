// The MLP's activation in plain fp64.
#pragma once

#include <sylvit/score.hpp>

#include <vector>

namespace sylvit::reference {

/// a = h(u), h a point-wise score (reference/attention.hpp).
std::vector<double> activation(Score h, const std::vector<double>& u);

/// The gradient of u.
std::vector<double> activation_backward(Score h, const std::vector<double>& u, const std::vector<double>& a_gradient);

}  // namespace sylvit::reference
