#include "cli/vit_options.hpp"

#include "cli/attention_options.hpp"

namespace sylvit::cli {

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
  command.add_option("--classes", classes, "Outputs of the head (default: 1000, or what the weights have)");
  command.add_option("--image-size", image_size,
                     "Height and width in pixels (default: 224, or what images or weights have)");
  command.add_option("--width", width, "Instead of the model's own; so are the following");
  command.add_option("--depth", depth, "Number of blocks");
  command.add_option("--heads", heads, "Number of heads");
  command.add_option("--mlp", mlp, "Width of the MLPs");
  command.add_option("--patch", patch, "Height and width of a patch");
  command.add_option("--channels", channels, "Of the images");
}

VitConfig VitModelOptions::config() const {
  VitConfig config = vit_preset(model);
  config.score = parse_score(score);
  config.alpha = static_cast<float>(alpha);
  config.divisor = static_cast<float>(divisor.value_or(0));
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

}  // namespace sylvit::cli
