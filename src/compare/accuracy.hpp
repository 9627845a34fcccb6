// The same weights and images through a device and through the fp64 reference.
#pragma once

#include "compare/request.hpp"

namespace sylvit::compare {

/// The outputs of a forward pass's steps over the checked images, in the order of the steps.
template <class Number>
using Steps = std::vector<std::pair<std::string, std::vector<Number>>>;

struct Reference {
  Steps<double> steps;
  std::vector<double> logits;
  double loss = 0;
};

/// What the reference says of the model's checked images; an image at a time on each core.
Reference reference_of(const Model& model);

/// What a device computes.
struct Outputs {
  Steps<float> steps;                 ///< of the checked images
  std::vector<float> checked_logits;  ///< computed with them
  std::vector<float> logits;          ///< of all images
};

Outputs outputs_of(const Device& device, const Model& model, DType dtype);

/// The batch that it is computed in.
std::int64_t images_at_once(const Model& model);

Accuracy accuracy_of(const Model& model, const Outputs& outputs, const Reference& expected, double tolerance);

/// The errors of the steps that both have.
template <class Number>
std::vector<NamedErrors> step_errors(const Steps<float>& got, const Steps<Number>& expected);

/// The parameters of a model on a device.
VitParameters parameters_on(const Device& device, const Model& model, DType dtype);
reference::VitTensors exact_parameters(const Model& model);

}  // namespace sylvit::compare
