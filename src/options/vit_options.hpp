// The options that say which Vision Transformer is meant, shared by run, bench, infer, init and compare.
#pragma once

#include <sylvit/vit_config.hpp>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sylvit::options {

/// "S/16", or the sizes where no preset has them.
std::string model_name(const VitConfig& config);

/// Of --model, where there is one.
constexpr const char* model_help =
    "Ti, S, B or L by patch (S/16), or timm's name (vit_small_patch16_224) (default: S/16, or what the weights are of)";

/// What was given on the command line. What was not is as in the weights' file, or as by default.
struct VitModelOptions {
  std::optional<std::string> model, score, pool;
  std::optional<double> alpha, divisor, epsilon;
  std::optional<bool> qk_norm, gate, head_scale, head_alpha, sincos, gelu_tanh;
  std::optional<std::int64_t> classes, image_size, width, depth, heads, mlp, patch, channels;

  void add_to(CLI::App& command);
  /// All but --model, --score and --alpha, for commands that take several of these.
  void add_variations_to(CLI::App& command);

  /// The model, where no file tells anything. Not checked.
  VitConfig config() const;
  /// The same, where options alone make the model. A model that cannot be is a wrong command line.
  VitConfig checked() const;
  /// A model with what was given put in its place.
  VitConfig over(VitConfig config) const;
  /// Whether an option sets this member of VitConfig (vit/config_json.hpp).
  bool is_given(std::string_view member) const;
  /// The option that sets it: "--score".
  static std::string option_for(std::string_view member);
  /// That option as it was given, or --model where that set the member: "--score relu".
  std::string given_for(std::string_view member) const;
  /// The name of the resulting model, as it was given, or the sizes where options changed them.
  std::string name_for(const VitConfig& config) const;
};

}  // namespace sylvit::options
