// Weights of Vision Transformers under timm's names.
#pragma once

#include <sylvit/vit.hpp>

#include "io/weights_file.hpp"

namespace sylvit::vit {

/// What a file's tensors say about the model they belong to: what the shapes tell (sizes, classes), and which options
/// have parameters in the file. What leaves no trace (score, alpha, …) is as in the default configuration; the number
/// of heads is guessed (head size 64) unless the format or a tensor tells. Throws Error when the file holds no Vision
/// Transformer.
struct TensorConfig {
  VitConfig config;
  std::vector<std::string_view> told;  ///< the members (config_json.hpp) that are no guess
};
TensorConfig config_of_tensors(const io::WeightsFile& file);

/// Takes over what must agree with the file and is nobody's choice: a class token, and where average pooling has its
/// norm.
VitConfig adapted_to(VitConfig config, const io::WeightsFile& file);

struct VitWeights {
  std::vector<std::vector<float>> values;  ///< one for each of vit_parameters(config), in that order
  bool interpolated = false;               ///< the positions were those of another grid
};

/// The parameters in host memory, from a file of any floating type. Learned positions of another grid are interpolated
/// (bicubic with antialiasing, as timm does). Throws Error that names the first missing, extra or misshapen tensor, or
/// another number of heads.
VitWeights read_weights(const io::WeightsFile& file, const VitConfig& config);

/// Fills the parameters from the file; on an error nothing is written. Returns true when positions were interpolated.
/// Waits.
bool load_weights(const io::WeightsFile& file, VitParameters& parameters);

}  // namespace sylvit::vit
