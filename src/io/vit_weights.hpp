// Weights of Vision Transformers in safetensors files, under timm's names.
#pragma once

#include <sylvit/vit.hpp>

#include "io/safetensors.hpp"

namespace sylvit::io {

/// What a file's tensors say about the model they belong to: what the shapes tell (sizes, classes), and which options
/// have parameters in the file. What leaves no trace (score, alpha, …) is as in the default configuration; the number
/// of heads is guessed (head size 64) unless a tensor tells. Throws Error when the file holds no Vision Transformer.
VitConfig guess_config(const SafetensorsFile& file);

/// Takes over what must agree with the file and is nobody's choice: a class token, and where average pooling has its
/// norm.
VitConfig adapted_to(VitConfig config, const SafetensorsFile& file);

/// Fills the parameters from the file: f32, bf16 or f16. Learned positions of another grid are interpolated (bicubic
/// with antialiasing, as timm does). Throws Error that names the first missing, extra or misshapen tensor; nothing is
/// written then. Returns true when positions were interpolated. Waits.
bool load_weights(const SafetensorsFile& file, VitParameters& parameters);

}  // namespace sylvit::io
