// What a Vision Transformer is made of: sizes, options, presets, and its parameters under timm's names.
#pragma once

#include <sylvit/custom_score.hpp>
#include <sylvit/export.hpp>
#include <sylvit/score.hpp>
#include <sylvit/tensor.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sylvit {

/// What of the last layer's tokens the head sees.
enum class Pooling : std::uint8_t {
  token,    ///< the class token
  average,  ///< the mean of the patch tokens
  map       ///< one softmax attention of a learned query over the patch tokens, then an MLP (timm's attn_pool)
};

enum class Positions : std::uint8_t {
  learned,
  sincos  ///< fixed 2-D sines and cosines, as in BigVision; no parameter
};

struct SYLVIT_API VitConfig {
  std::int64_t width = 384;
  std::int64_t depth = 12;
  std::int64_t heads = 6;
  std::int64_t mlp = 1536;
  std::int64_t patch = 16;
  std::int64_t image_height = 224;
  std::int64_t image_width = 224;
  std::int64_t channels = 3;
  std::int64_t classes = 1000;

  Score score = Score::softmax;
  CustomScore custom_score = {};  ///< with Score::custom: which
  float alpha = 1.0F;             ///< point-wise scores: weights are N^-alpha h(s)
  float divisor = 0.0F;           ///< N; 0: the number of tokens
  bool qk_norm = false;           ///< layer norm of queries and keys, per head
  bool gate = false;              ///< the attention output is multiplied with a projection of the block's normed input
  bool head_scale = false;        ///< a learned factor on each head's weights
  bool head_alpha = false;        ///< a learned alpha for each head; point-wise scores only
  Pooling pooling = Pooling::token;
  bool class_token = true;          ///< Pooling::token needs it
  bool norm_after_pooling = false;  ///< Pooling::average: normalise the mean (timm's fc_norm), not the tokens
  Positions positions = Positions::learned;
  bool gelu_tanh = false;  ///< GELU's usual approximation in the MLPs, instead of the exact one
  float norm_epsilon = 1e-6F;

  std::int64_t head_size() const { return width / heads; }
  std::int64_t grid_height() const { return image_height / patch; }
  std::int64_t grid_width() const { return image_width / patch; }
  std::int64_t patches() const { return grid_height() * grid_width(); }
  std::int64_t tokens() const { return patches() + (class_token ? 1 : 0); }
  std::int64_t patch_values() const { return channels * patch * patch; }

  /// Throws Error naming the first thing that does not fit.
  void check() const;
  bool operator==(const VitConfig&) const = default;
};

/// "Ti/16", "S/16", "B/32", "L/8", …, or timm's "vit_small_patch16_224"; throws Error that suggests the nearest.
SYLVIT_API VitConfig vit_preset(std::string_view name);

struct VitParameter {
  std::string name;  ///< timm's, e.g. "blocks.0.attn.qkv.weight"
  Shape shape;
};

/// Every parameter in a fixed order. Linear weights are [out, in], as in timm.
SYLVIT_API std::vector<VitParameter> vit_parameters(const VitConfig& config);

/// Floating-point operations of the forward pass for one image: 2 for each multiplication in a matrix product.
SYLVIT_API double vit_forward_flops(const VitConfig& config);

}  // namespace sylvit
