// The models of a comparison: weights and images, made once and given to every device.
#pragma once

#include <optional>
#include <span>

#include "compare/request.hpp"
#include "options/vit_model.hpp"

namespace sylvit::compare {

/// The same bytes on every machine: colours that run across the image, with noise on them.
std::vector<float> synthetic_images(const VitConfig& config, std::int64_t count);
std::vector<std::int64_t> synthetic_labels(const VitConfig& config, std::int64_t count);

struct InputOptions {
  std::vector<std::string> models;  ///< empty: S/16, or what the weights are of
  std::vector<std::string> scores;  ///< empty: softmax and relu, or what the weights were written for
  std::vector<double> alphas;       ///< of point-wise scores; empty: 1, or what the weights were written for
  VitModelOptions variations;       ///< all but its model, score and alpha
  VitWeightOptions source;
  std::vector<std::string> images;  ///< files, directories, or one .safetensors; empty: synthetic ones
  std::int64_t image_count = 8;     ///< at most, of files; exactly, of synthetic ones
  std::int64_t judged = 2;
};

/// Each model with each score, and each alpha where it is point-wise. What there is to say of the weights goes to
/// `warnings`, once. Throws Error when weights or images do not fit.
std::vector<Model> make_models(const InputOptions& options, std::vector<std::string>& warnings);

}  // namespace sylvit::compare
