// Gradients of a device beside those of the fp64 reference.
#pragma once

#include "cli/compare_request.hpp"

namespace sylvit::cli::compare {

/// A model with the options of another and a fraction of its size, so that the reference's backward pass takes no time.
Model tiny_like(const Model& model);

/// Of the judged images.
reference::VitGradients judge_gradients(const Model& model);

Gradients gradients_of(const Device& device, const Model& model, DType dtype, const reference::VitGradients& judge);

}  // namespace sylvit::cli::compare
