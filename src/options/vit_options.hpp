// The options that say which Vision Transformer is meant, shared by run, bench, init and compare.
#pragma once

#include <sylvit/vit_config.hpp>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace sylvit::options {

/// "S/16", or the sizes where no preset has them.
std::string model_name(const VitConfig& config);

struct VitModelOptions {
  std::string model = "S/16";
  std::string score = "softmax";
  double alpha = 1;
  std::optional<double> divisor;
  bool qk_norm = false;
  bool gate = false;
  bool head_scale = false;
  bool head_alpha = false;
  std::string pool = "tok";
  bool sincos = false;
  bool gelu_tanh = false;
  std::optional<double> epsilon;
  std::optional<std::int64_t> classes, image_size, width, depth, heads, mlp, patch, channels;

  void add_to(CLI::App& command);
  /// All but --model and --score, for commands that take several of these.
  void add_variations_to(CLI::App& command);
  VitConfig config() const;
  /// The model's name as it was given, or the sizes where options changed them.
  std::string name() const;
};

}  // namespace sylvit::options
