// The kernels of a Vision Transformer, for whoever wants to build those of several models in one batch.
#pragma once

#include <sylvit/vit.hpp>

#include <vector>

#include "runtime/kernel.hpp"

namespace sylvit::nn {

/// What a Vit of these options builds when it is made; some may be there more than once.
std::vector<runtime::KernelName> vit_kernels(const Device& device, const VitConfig& config, const VitOptions& options);

}  // namespace sylvit::nn
