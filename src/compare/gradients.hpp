// Gradients of a device beside those of the fp64 reference.
#pragma once

#include "compare/request.hpp"

namespace sylvit::compare {

/// A model with the options of another and a fraction of its size, so that the reference's backward pass takes no time.
Model tiny_like(const Model& model);

/// Of the checked images.
reference::VitGradients reference_gradients(const Model& model);

/// What a device computes for the checked images.
struct DeviceGradients {
  double loss = 0;
  std::vector<std::pair<std::string, std::vector<float>>> parameters;
};

DeviceGradients gradients_of(const Device& device, const Model& model, DType dtype);

Gradients gradient_errors(const Model& model, const DeviceGradients& got, const reference::VitGradients& expected);

}  // namespace sylvit::compare
