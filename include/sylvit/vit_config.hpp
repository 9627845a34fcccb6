// What a Vision Transformer is made of: sizes, options, presets, and its parameters under timm's names.
#pragma once

#include <sylvit/custom_score.hpp>
#include <sylvit/export.hpp>
#include <sylvit/score.hpp>
#include <sylvit/tensor.hpp>

#include <array>
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

/// How tokens know where they are.
enum class Positions : std::uint8_t {
  learned,  ///< a parameter
  sincos    ///< fixed 2-D sines and cosines, as in BigVision; no parameter
};

/// All of them.
inline constexpr std::array all_poolings{Pooling::token, Pooling::average, Pooling::map};
/// All of them.
inline constexpr std::array all_positions{Positions::learned, Positions::sincos};

/// "tok", "gap" or "map".
SYLVIT_API std::string_view name_of(Pooling pooling) noexcept;
/// The pooling of that name; throws Error that lists the known names.
SYLVIT_API Pooling parse_pooling(std::string_view name);
/// "learned" or "sincos": the name of the enumerator.
SYLVIT_API std::string_view name_of(Positions positions) noexcept;
/// The positions of that name; throws Error that lists the known names.
SYLVIT_API Positions parse_positions(std::string_view name);

/// What a Vision Transformer is made of.
///
/// Threads: a value; any number of threads may read one at once.
struct SYLVIT_API VitConfig {
  std::int64_t width = 384;         ///< numbers of a token
  std::int64_t depth = 12;          ///< blocks
  std::int64_t heads = 6;           ///< of each block's attention
  std::int64_t mlp = 1536;          ///< hidden width of each block's MLP
  std::int64_t patch = 16;          ///< height and width of a patch in pixels
  std::int64_t image_height = 224;  ///< in pixels, whole patches
  std::int64_t image_width = 224;   ///< in pixels, whole patches
  std::int64_t channels = 3;        ///< of a pixel
  std::int64_t classes = 1000;      ///< logits of an image; at least 1, because every model has a head

  Score score = Score::softmax;   ///< of the blocks' attention
  CustomScore custom_score = {};  ///< with Score::custom: which
  float alpha = 1.0F;             ///< point-wise scores: weights are N^-alpha h(s)
  float divisor = 0.0F;           ///< N; 0: the number of tokens
  bool qk_norm = false;           ///< layer norm of queries and keys, per head
  bool gate = false;              ///< the attention output is multiplied with a projection of the block's normed input
  bool head_scale = false;        ///< a learned factor on each head's weights
  bool head_alpha = false;        ///< a learned alpha for each head; point-wise scores only
  Pooling pooling = Pooling::token;          ///< what the head sees
  bool class_token = true;                   ///< Pooling::token needs it
  bool norm_after_pooling = false;           ///< Pooling::average: normalise the mean (timm's fc_norm), not the tokens
  Positions positions = Positions::learned;  ///< what is added to the tokens
  bool gelu_tanh = false;                    ///< GELU's usual approximation in the MLPs, instead of the exact one
  float norm_epsilon = 1e-6F;                ///< of every layer norm

  /// Numbers of a token that a head sees.
  std::int64_t head_size() const { return width / heads; }
  /// Patches above each other.
  std::int64_t grid_height() const { return image_height / patch; }
  /// Patches beside each other.
  std::int64_t grid_width() const { return image_width / patch; }
  /// Patches of an image.
  std::int64_t patches() const { return grid_height() * grid_width(); }
  /// Tokens of an image.
  std::int64_t tokens() const { return patches() + (class_token ? 1 : 0); }
  /// Tokens of an image that the pooling looks at: the class token, or all. Behind the last block's keys and values
  /// only they are computed.
  std::int64_t pooled_tokens() const { return pooling == Pooling::token ? 1 : tokens(); }
  /// Numbers of a patch.
  std::int64_t patch_values() const { return channels * patch * patch; }

  /// Throws Error naming the first thing that does not fit.
  void check() const;
  /// The same model?
  bool operator==(const VitConfig&) const = default;
};

/// "Ti/16", "S/16", "B/32", "L/8", …, or timm's "vit_small_patch16_224"; throws Error that suggests the nearest.
SYLVIT_API VitConfig vit_preset(std::string_view name);

/// One of a model's parameters.
struct VitParameter {
  std::string name;  ///< timm's, e.g. "blocks.0.attn.qkv.weight"
  Shape shape;       ///< as in timm
};

/// Every parameter in a fixed order. Linear weights are [out, in], as in timm.
SYLVIT_API std::vector<VitParameter> vit_parameters(const VitConfig& config);

/// Floating-point operations of the model's forward pass for one image, as papers count them: 2 for each multiplication
/// in a matrix product, every token through every block.
SYLVIT_API double vit_forward_flops(const VitConfig& config);
/// Those that Vit::forward carries out: of the last block, only what VitConfig::pooled_tokens() asks for.
SYLVIT_API double vit_computed_flops(const VitConfig& config);

}  // namespace sylvit
