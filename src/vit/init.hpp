// The initial parameters of a Vision Transformer from a seed: the same bits with every device, compiler and C library.
//
// Element i of a parameter is a function of the seed, the parameter's name and i alone: a SplitMix64 stream keyed by
// both, its i-th number as a uniform one, and from that a normal one by the inverse of the normal distribution. All
// with integers and the operations that IEEE 754 rounds correctly; no logarithm or cosine of a C library.
//
// The distributions are timm's:
//     linear weights, pos_embed           normal, deviation 0.02 (timm cuts at ±2, which is 100 deviations)
//     patch_embed.proj.weight             normal cut at 2 deviations, widened so that its deviation is 1/sqrt(inputs)
//     cls_token                           normal, deviation 1e-6
//     attn_pool.latent                    normal cut at 2 deviations, of deviation 1/sqrt(width) before the cut
//     norms' weights, head_scale, gate's bias 1;  alpha the configuration's;  all other biases 0
#pragma once

#include <sylvit/vit_config.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace sylvit::vit {

/// Writes one of vit_parameters(config). Throws Error if `out` is not of its size or its name is not known.
void initialise(const VitConfig& config, const VitParameter& parameter, std::uint64_t seed, std::span<float> out);

/// All of vit_parameters(config), in that order.
std::vector<std::vector<float>> initial_parameters(const VitConfig& config, std::uint64_t seed);

/// How many numbers vit_parameters(config) hold. A double, since a model may be asked for that 64 bits cannot count.
double parameter_count(const VitConfig& config);

/// The inverse of the standard normal distribution, for 0 < p < 1, to about 1e-15.
double inverse_normal(double p);

}  // namespace sylvit::vit
