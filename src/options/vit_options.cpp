#include "options/vit_options.hpp"

#include <fmt/core.h>

#include "options/attention_options.hpp"
#include "options/numbers.hpp"

namespace sylvit::options {

namespace {

/// Do they share what a model's name stands for?
bool have_same_sizes(const VitConfig& a, const VitConfig& b) {
  return a.width == b.width && a.depth == b.depth && a.mlp == b.mlp && a.patch == b.patch;
}

}  // namespace

std::string model_name(const VitConfig& config) {
  for (const char* size : {"Ti", "S", "B", "L"})
    for (const char* patch : {"/32", "/16", "/8"}) {
      const std::string name = std::string(size) + patch;
      if (have_same_sizes(config, vit_preset(name))) return name;
    }
  return fmt::format("width {}, depth {}, MLP {}, patch {}", config.width, config.depth, config.mlp, config.patch);
}

void VitModelOptions::add_to(CLI::App& command) {
  command.add_option("--model", model, "Ti, S, B or L by patch (S/16), or timm's name (vit_small_patch16_224)")
      ->capture_default_str();
  command.add_option("--score", score, "Attention score: " + score_names())->capture_default_str();
  add_variations_to(command);
}

void VitModelOptions::add_variations_to(CLI::App& command) {
  command.add_option("--alpha", alpha, "Exponent of the divisor, 0 to 2; point-wise scores")->capture_default_str();
  command.add_option("--divisor", divisor, "What L^-alpha takes for L (default: the number of tokens)");
  command.add_flag("--qk-norm", qk_norm, "Layer norm of queries and keys");
  command.add_flag("--gate", gate, "Gated attention unit");
  command.add_flag("--head-scale", head_scale, "A learned factor for each head");
  command.add_flag("--head-alpha", head_alpha, "A learned alpha for each head");
  command.add_option("--pool", pool, "tok (class token), gap (average) or map (attention)")
      ->check(CLI::IsMember({"tok", "gap", "map"}))
      ->capture_default_str();
  command.add_flag("--sincos", sincos, "Fixed 2-D sin-cos positions instead of learned ones");
  command.add_flag("--gelu-tanh", gelu_tanh, "The MLPs' GELU in its tanh form");
  command.add_option("--epsilon", epsilon, "Of the layer norms (default: 1e-6)");
  const auto add_size = [&](const char* name, std::optional<std::int64_t>& value, const char* description) {
    command.add_option(name, value, description)->check(whole_number);
  };
  add_size("--classes", classes, "Outputs of the head, at least 1 (default: 1000, or what the weights have)");
  add_size("--image-size", image_size, "Height and width in pixels (default: 224, or what images or weights have)");
  add_size("--width", width, "Instead of the model's own; so are the following");
  add_size("--depth", depth, "Number of blocks");
  add_size("--heads", heads, "Number of heads");
  add_size("--mlp", mlp, "Width of the MLPs");
  add_size("--patch", patch, "Height and width of a patch");
  add_size("--channels", channels, "Of the images");
}

std::string VitModelOptions::name() const {
  const VitConfig preset = vit_preset(model);
  const VitConfig own = config();
  std::string name = have_same_sizes(own, preset) ? model : model_name(own);
  if (own.heads != own.width / preset.head_size()) name += fmt::format(", {} heads", own.heads);
  return name;
}

VitConfig VitModelOptions::config() const {
  VitConfig config = vit_preset(model);
  config.score = parse_score(score);
  config.alpha = static_cast<float>(alpha);
  if (divisor) config.divisor = positive_f32("--divisor", *divisor);
  config.qk_norm = qk_norm;
  config.gate = gate;
  config.head_scale = head_scale;
  config.head_alpha = head_alpha;
  config.pooling = pool == "map" ? Pooling::map : pool == "gap" ? Pooling::average : Pooling::token;
  // As in BigVision: only pooling by class token has one. A file with weights may say otherwise.
  config.class_token = config.pooling == Pooling::token;
  config.positions = sincos ? Positions::sincos : Positions::learned;
  config.gelu_tanh = gelu_tanh;
  if (epsilon) config.norm_epsilon = static_cast<float>(*epsilon);
  if (classes) config.classes = *classes;
  if (image_size) config.image_height = config.image_width = *image_size;
  if (width) config.width = *width;
  if (depth) config.depth = *depth;
  if (heads) config.heads = *heads;
  if (mlp) config.mlp = *mlp;
  if (patch) config.patch = *patch;
  if (channels) config.channels = *channels;
  return config;
}

}  // namespace sylvit::options
