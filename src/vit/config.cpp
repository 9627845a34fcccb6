#include <sylvit/error.hpp>
#include <sylvit/vit_config.hpp>

#include <array>

#include "base/counts.hpp"
#include "base/head_sizes.hpp"
#include "base/names.hpp"
#include "base/require.hpp"
#include "nn/attention_checks.hpp"

namespace sylvit {

namespace {

using base::require;

struct Size {
  std::string_view short_name;
  std::string_view timm_name;
  std::int64_t width, depth, heads, mlp;
};

constexpr std::array sizes{Size{"Ti", "tiny", 192, 12, 3, 768}, Size{"S", "small", 384, 12, 6, 1536},
                           Size{"B", "base", 768, 12, 12, 3072}, Size{"L", "large", 1024, 24, 16, 4096}};
constexpr std::array patch_sizes{32, 16, 8};

}  // namespace

void VitConfig::check() const {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  const std::array positive{std::pair{"width", width},
                            std::pair{"heads", heads},
                            std::pair{"MLP width", mlp},
                            std::pair{"patch", patch},
                            std::pair{"image height", image_height},
                            std::pair{"image width", image_width},
                            std::pair{"channels", channels},
                            std::pair{"classes", classes}};
  if (classes == 0)
    throw Error(
        "the model has 0 classes, which is no head, and every model here has one",
        "make it with at least 1 (timm: num_classes=1); what the head sees, the features, is the same with any");
  constexpr std::int64_t largest = 1 << 20;
  for (const auto& [name, value] : positive)
    require(value > 0 && value <= largest,
            "the model's " + std::string(name) + " is " + number(value) + ", and must be 1 to " + number(largest));
  require(depth > 0 && depth <= base::most_blocks,
          "the model's depth is " + number(depth) + ", and must be 1 to " + number(base::most_blocks));
  require(width % heads == 0,
          "the width " + number(width) + " is not a multiple of the number of heads, " + number(heads));
  require(base::is_head_size(head_size()),
          "the head size (width / heads) is " + number(head_size()) + ", and must be " + base::head_size_rule());
  require(image_height >= patch && image_width >= patch, "an image of " + number(image_height) + " x " +
                                                             number(image_width) + " is smaller than one patch of " +
                                                             number(patch));
  require(image_height % patch == 0 && image_width % patch == 0,
          "an image of " + number(image_height) + " x " + number(image_width) + " is not made of whole patches of " +
              number(patch));
  require(alpha >= 0 && alpha <= 2, "alpha is " + std::to_string(alpha) + ", and must be 0 to 2");
  require(divisor >= 0, "the divisor is " + std::to_string(divisor) + ", and must not be negative");
  require(norm_epsilon > 0, "the layer norm's epsilon must be positive");
  nn::check_custom_score(score, custom_score);
  require(!head_alpha || score != Score::softmax, "softmax has no alpha to learn for each head");
  require(pooling != Pooling::token || class_token, "pooling by class token needs a class token");
  require(!norm_after_pooling || pooling == Pooling::average, "only average pooling can have its layer norm behind it");
  require(positions != Positions::sincos || width % 4 == 0,
          "sin-cos positions need a width that is a multiple of 4, not " + number(width));
}

VitConfig vit_preset(std::string_view name) {
  std::vector<std::string> known;
  for (const Size& size : sizes)
    for (const int patch : patch_sizes) {
      const std::string text = std::to_string(patch);
      const std::string of_paper = std::string(size.short_name) + "/" + text;
      const std::string of_timm = "vit_" + std::string(size.timm_name) + "_patch" + text + "_224";
      if (name == of_paper || name == of_timm) {
        VitConfig config;
        config.width = size.width;
        config.depth = size.depth;
        config.heads = size.heads;
        config.mlp = size.mlp;
        config.patch = patch;
        return config;
      }
      known.push_back(of_paper);
      known.push_back(of_timm);
    }
  throw Error("there is no model \"" + base::shown(name) + "\"",
              base::suggestion(name, known) +
                  "known models: Ti, S, B and L by patch, as in S/16 (/32, /16, /8), and timm's names for them");
}

std::vector<VitParameter> vit_parameters(const VitConfig& config) {
  const std::int64_t d = config.width;
  std::vector<VitParameter> all;
  const auto add = [&](std::string name, const Shape& shape) { all.push_back({std::move(name), shape}); };
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  };
  const auto norm = [&](const std::string& name, std::int64_t size) {
    add(name + ".weight", {size});
    add(name + ".bias", {size});
  };
  const auto mlp = [&](const std::string& name) {
    linear(name + ".fc1", config.mlp, d);
    linear(name + ".fc2", d, config.mlp);
  };
  if (config.class_token) add("cls_token", {1, 1, d});
  if (config.positions == Positions::learned) add("pos_embed", {1, config.tokens(), d});
  add("patch_embed.proj.weight", {d, config.channels, config.patch, config.patch});
  add("patch_embed.proj.bias", {d});
  for (std::int64_t block = 0; block < config.depth; ++block) {
    const std::string name = "blocks." + std::to_string(block);
    norm(name + ".norm1", d);
    linear(name + ".attn.qkv", 3 * d, d);
    if (config.qk_norm) {
      norm(name + ".attn.q_norm", config.head_size());
      norm(name + ".attn.k_norm", config.head_size());
    }
    if (config.head_scale) add(name + ".attn.head_scale", {config.heads});
    if (config.head_alpha) add(name + ".attn.alpha", {config.heads});
    if (config.gate) linear(name + ".attn.gate", d, d);
    linear(name + ".attn.proj", d, d);
    norm(name + ".norm2", d);
    mlp(name + ".mlp");
  }
  if (!config.norm_after_pooling) norm("norm", d);
  if (config.pooling == Pooling::map) {
    add("attn_pool.latent", {1, 1, d});
    linear("attn_pool.q", d, d);
    linear("attn_pool.kv", 2 * d, d);
    linear("attn_pool.proj", d, d);
    norm("attn_pool.norm", d);
    mlp("attn_pool.mlp");
  }
  if (config.norm_after_pooling) norm("fc_norm", d);
  linear("head", config.classes, d);
  return all;
}

namespace {

/// With so many tokens after the keys and values of the last block.
double flops_of(const VitConfig& config, std::int64_t last_tokens) {
  const auto d = static_cast<double>(config.width);
  const auto mlp = static_cast<double>(config.mlp);
  const auto tokens = static_cast<double>(config.tokens());
  const double patches = 2 * static_cast<double>(config.patches()) * static_cast<double>(config.patch_values()) * d;
  const double qkv = 2 * tokens * 3 * d * d;
  const double after_keys = 2 * (d * d * (config.gate ? 2 : 1) + 2 * d * mlp) + 4 * tokens * d;  // of a token
  const double all_tokens = static_cast<double>(config.depth - 1) * tokens + static_cast<double>(last_tokens);
  double pooling = 0;
  if (config.pooling == Pooling::map)
    pooling = 2 * d * d * (2 + 2 * tokens) + 4 * static_cast<double>(config.patches()) * d + 4 * d * mlp;
  const double head = 2 * d * static_cast<double>(config.classes);
  return patches + static_cast<double>(config.depth) * qkv + all_tokens * after_keys + pooling + head;
}

}  // namespace

double vit_forward_flops(const VitConfig& config) { return flops_of(config, config.tokens()); }

double vit_computed_flops(const VitConfig& config) { return flops_of(config, config.pooled_tokens()); }

}  // namespace sylvit
