#include "options/vit_options.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>

#include "options/attention_options.hpp"
#include "options/numbers.hpp"
#include "options/words.hpp"
#include "vit/config_json.hpp"

namespace sylvit::options {

namespace {

/// Do they share what a model's name stands for?
bool have_same_sizes(const VitConfig& a, const VitConfig& b) {
  return a.width == b.width && a.depth == b.depth && a.mlp == b.mlp && a.patch == b.patch;
}

/// What a model's name stands for, and the option that changes it.
struct Size {
  std::string_view member;
  std::int64_t VitConfig::*place;
  std::optional<std::int64_t> VitModelOptions::*option;
};
constexpr std::array sizes{Size{"width", &VitConfig::width, &VitModelOptions::width},
                           Size{"depth", &VitConfig::depth, &VitModelOptions::depth},
                           Size{"heads", &VitConfig::heads, &VitModelOptions::heads},
                           Size{"mlp", &VitConfig::mlp, &VitModelOptions::mlp},
                           Size{"patch", &VitConfig::patch, &VitModelOptions::patch}};

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
  command.add_option("--model", model, model_help)->check(model_word);
  command.add_option("--score", score, "Attention score: " + score_names() + " (default: softmax, or the weights')")
      ->check(score_word);
  command.add_option("--alpha", alpha, "Exponent of the divisor, 0 to 2; point-wise scores (default: 1)")
      ->check(alpha_number);
  add_variations_to(command);
}

void VitModelOptions::add_variations_to(CLI::App& command) {
  const auto add_flag = [&](const char* name, std::optional<bool>& value, const char* description) {
    // --name=false is below zero.
    command
        .add_flag_function(
            name, [&value](std::int64_t count) { value = count > 0; }, description)
        ->check(CLI::TypeValidator<bool>());
  };
  command.add_option("--divisor", divisor, "What L^-alpha takes for L (default: the number of tokens)")
      ->check(positive_number);
  add_flag("--qk-norm", qk_norm, "Layer norm of queries and keys");
  add_flag("--gate", gate, "Gated attention unit");
  add_flag("--head-scale", head_scale, "A learned factor for each head");
  add_flag("--head-alpha", head_alpha, "A learned alpha for each head");
  std::vector<std::string> poolings;
  for (const Pooling pooling : all_poolings) poolings.emplace_back(name_of(pooling));
  command.add_option("--pool", pool, "tok (class token), gap (average) or map (attention) (default: tok)")
      ->check(CLI::IsMember(poolings));
  add_flag("--sincos", sincos, "Fixed 2-D sin-cos positions instead of learned ones");
  add_flag("--gelu-tanh", gelu_tanh, "The MLPs' GELU in its tanh form");
  command.add_option("--epsilon", epsilon, "Of the layer norms (default: 1e-6)")->check(positive_number);
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

VitConfig VitModelOptions::config() const { return over({}); }

VitConfig VitModelOptions::checked() const {
  return by_command_line([&] {
    const VitConfig made = config();
    made.check();
    return made;
  });
}

VitConfig VitModelOptions::over(VitConfig config) const {
  if (model) {
    const VitConfig preset = vit_preset(*model);
    for (const Size& size : sizes) config.*size.place = preset.*size.place;
  }
  for (const Size& size : sizes) config.*size.place = (this->*size.option).value_or(config.*size.place);
  if (score) config.score = parse_score(*score);
  if (alpha) config.alpha = static_cast<float>(*alpha);
  if (divisor) config.divisor = static_cast<float>(*divisor);
  config.qk_norm = qk_norm.value_or(config.qk_norm);
  config.gate = gate.value_or(config.gate);
  config.head_scale = head_scale.value_or(config.head_scale);
  config.head_alpha = head_alpha.value_or(config.head_alpha);
  if (pool) {
    config.pooling = parse_pooling(*pool);
    // As in BigVision: only pooling by class token has one. A file with weights may say otherwise.
    config.class_token = config.pooling == Pooling::token;
    config.norm_after_pooling = false;
  }
  if (sincos) config.positions = *sincos ? Positions::sincos : Positions::learned;
  config.gelu_tanh = gelu_tanh.value_or(config.gelu_tanh);
  if (epsilon) config.norm_epsilon = static_cast<float>(*epsilon);
  config.classes = classes.value_or(config.classes);
  config.image_height = image_size.value_or(config.image_height);
  config.image_width = image_size.value_or(config.image_width);
  config.channels = channels.value_or(config.channels);
  return config;
}

bool VitModelOptions::is_given(std::string_view member) const {
  for (const Size& size : sizes)
    if (member == size.member) return model || this->*size.option;
  const std::array<std::pair<std::string_view, bool>, 15> others{{{"image_height", image_size.has_value()},
                                                                  {"image_width", image_size.has_value()},
                                                                  {"channels", channels.has_value()},
                                                                  {"classes", classes.has_value()},
                                                                  {"score", score.has_value()},
                                                                  {"alpha", alpha.has_value()},
                                                                  {"divisor", divisor.has_value()},
                                                                  {"qk_norm", qk_norm.has_value()},
                                                                  {"gate", gate.has_value()},
                                                                  {"head_scale", head_scale.has_value()},
                                                                  {"head_alpha", head_alpha.has_value()},
                                                                  {"pooling", pool.has_value()},
                                                                  {"positions", sincos.has_value()},
                                                                  {"gelu_tanh", gelu_tanh.has_value()},
                                                                  {"norm_epsilon", epsilon.has_value()}}};
  return std::ranges::any_of(others, [&](const auto& one) { return one.first == member && one.second; });
}

std::string VitModelOptions::option_for(std::string_view member) {
  if (member == "pooling") return "--pool";
  if (member == "positions") return "--sincos";
  if (member == "norm_epsilon") return "--epsilon";
  if (member == "image_height" || member == "image_width") return "--image-size";
  std::string name = "--" + std::string(member);
  std::ranges::replace(name, '_', '-');
  return name;
}

std::string VitModelOptions::given_for(std::string_view member) const {
  for (const Size& size : sizes)
    if (member == size.member && !(this->*size.option)) return "--model " + model.value_or("");
  std::string text = option_for(member);
  for (const vit::ConfigMember& known : vit::config_members()) {
    if (known.name != member) continue;
    const VitConfig config = over({});
    if (member == "positions")
      text += config.positions == Positions::sincos ? "" : "=false";
    else if (std::holds_alternative<bool VitConfig::*>(known.place))
      text += known.text(config) == "true" ? "" : "=false";
    else
      text += " " + known.text(config);
  }
  return text;
}

std::string VitModelOptions::name_for(const VitConfig& config) const {
  std::string name = model && have_same_sizes(config, vit_preset(*model)) ? *model : model_name(config);
  constexpr std::int64_t head_size = 64;  // of all that have names
  if (config.heads * head_size != config.width) name += fmt::format(", {} heads", config.heads);
  return name;
}

}  // namespace sylvit::options
