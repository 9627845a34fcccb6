// The reference of the whole model: a Vision Transformer, its losses and its gradients in plain fp64, written to be
// read beside the maths rather than to be fast.
//
//   x_0   = [class token; patches · Wᵀ + b] + positions
//   h     = LN1(x)
//   x    += (attention(h Wqkvᵀ + b) ⊙ (h Wgᵀ + bg)) Wprojᵀ + b       the gate ⊙ (…) only where the model has one
//   x    += fc2(gelu(fc1(LN2(x))))                                   both for each block
//   logits = head(pool(norm(x))), or head(fc_norm(pool(x))) when the norm comes after the pooling
//
// Parameters go by the names and shapes of vit_parameters(config): linear weights are [out, in]; a patch is read as
// [channel, y, x]; q, k and v are packed as [3, heads, d]. Tensors are dense and row-major.
#pragma once

#include <sylvit/vit_config.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sylvit::reference {

using VitTensors = std::map<std::string, std::vector<double>>;

struct VitOutput {
  std::vector<double> logits;  // [B, classes]

  /// What the layers put out, in the order they run, [B, tokens, D] where nothing else is said:
  ///   "embedding"           tokens with their positions
  ///   "blocks.N.heads"      the heads' outputs side by side, before the gate
  ///   "blocks.N.attention"  what the attention branch adds to x: after gate and output projection
  ///   "blocks.N"            x after the block
  ///   "norm"                the final norm; absent with norm_after_pooling
  ///   "pooled"              [B, D]: what the head sees
  std::vector<std::pair<std::string, std::vector<double>>> layers;

  /// The layer of that name; throws Error when there is none.
  const std::vector<double>& layer(const std::string& name) const;
};

/// Gets the output of each step of a forward pass, in order, under the name and in the layout that sylvit::VitStep has
/// it: "patches", "embedding", "blocks.N.norm1", "blocks.N.attn.qkv", "blocks.N.attn" (the heads),
/// "blocks.N.attn.gate", "blocks.N.attn.gate product", "blocks.N.attn.proj" (x after attention), "blocks.N.norm2",
/// "blocks.N.mlp.fc1" (after GELU), "blocks.N.mlp.fc2" (x after the block), then those of the head, up to "head" (the
/// logits). Behind the last block's "qkv" there are rows for VitConfig::pooled_tokens() alone. Two steps are left out
/// because the device computes them otherwise: "patch_embed.proj" (its bias comes with the positions) and, where there
/// is a class token, "attn_pool.kv" (of which only the patches' rows are ever read).
using VitStepObserver = std::function<void(const std::string& step, const std::vector<double>& output)>;

/// The mean over the images of a cross-entropy between logits z and targets t:
///   softmax: -Σ_c t_c log softmax(z)_c                                          as PyTorch's cross_entropy
///   sigmoid: -Σ_c t_c log sigmoid(z_c) + (1 - t_c) log sigmoid(-z_c)            as BigVision's
struct VitLoss {
  enum class Kind : std::uint8_t { softmax, sigmoid };

  Kind kind = Kind::softmax;
  double label_smoothing = 0;  // s: the targets are t (1 - s) + s / classes
  // Exactly one of both is given; a label stands for a target of 1 at that class and 0 elsewhere.
  std::vector<std::int64_t> labels;  // [B]
  std::vector<double> targets;       // [B, classes]
};

struct VitLossValue {
  double loss = 0;
  std::vector<double> grad_logits;  // [B, classes]
};

struct VitGradients {
  double loss = 0;
  std::vector<double> logits;  // [B, classes]
  VitTensors gradients;        // one for each parameter, of its size
};

/// BigVision's fixed positions [tokens, D]: sin(x w), cos(x w), sin(y w), cos(y w) with w_i = 10000^(-i / (D/4 - 1))
/// for the patch in row y and column x, rows first; zeros for the class token.
std::vector<double> sincos_positions(const VitConfig& config);

/// All of these throw Error when sizes do not agree or a number makes no sense. Images are [B, C, H, W].
VitOutput vit_forward(const VitConfig& config, const VitTensors& parameters, const std::vector<double>& images,
                      const VitStepObserver& observe = {});
VitLossValue vit_loss(const VitLoss& loss, const std::vector<double>& logits, std::int64_t classes);
VitGradients vit_backward(const VitConfig& config, const VitTensors& parameters, const std::vector<double>& images,
                          const VitLoss& loss);

}  // namespace sylvit::reference
