#include "vit/weights.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <cmath>

#include "io/messages.hpp"
#include "vit/positions.hpp"

namespace sylvit::vit {

namespace {

std::int64_t extent(const io::WeightsFile& file, const std::string& name, std::size_t axis, std::size_t rank) {
  const io::TensorInfo& info = file.at(name);
  if (info.shape.rank() != rank)
    throw Error(name + " in " + file.name() + " is " + info.shape.text() + ", and must have " + std::to_string(rank) +
                " axes");
  if (info.shape.elements() < 1)
    throw Error(name + " in " + file.name() + " is " + info.shape.text() + ": it is empty");
  return info.shape[axis];
}

/// The side of a square of that many patches; 0 if there is none.
std::int64_t square_root(std::int64_t patches) {
  const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(patches))));
  return side * side == patches ? side : 0;
}

/// Learned positions for this model, from those of another grid if need be.
std::vector<float> positions_for(const io::WeightsFile& file, const VitConfig& config, bool& interpolated) {
  const std::string name = "pos_embed";
  const Shape expected{1, config.tokens(), config.width};
  const io::TensorInfo& info = file.at(name);
  interpolated = false;
  if (info.shape == expected) return file.read_f32(name);
  const std::int64_t first = config.class_token ? 1 : 0;
  const bool fits = info.shape.rank() == 3 && info.shape[0] == 1 && info.shape[2] == config.width;
  const std::int64_t side = fits ? square_root(info.shape[1] - first) : 0;
  if (side == 0)
    throw Error(name + " in " + file.name() + " is " + info.shape.text() + ", and the model needs " + expected.text() +
                " or the positions of a square grid");
  interpolated = true;
  const std::vector<float> from = file.read_f32(name);
  const auto offset = static_cast<std::ptrdiff_t>(first * config.width);
  std::vector<float> result(from.begin(), from.begin() + offset);
  const std::vector<float> grid = resized_positions({from.begin() + offset, from.end()}, side, side,
                                                    config.grid_height(), config.grid_width(), config.width);
  result.insert(result.end(), grid.begin(), grid.end());
  return result;
}

}  // namespace

TensorConfig config_of_tensors(const io::WeightsFile& file) {
  const auto has = [&](const std::string& name) { return file.find(name) != nullptr; };
  if (!has("patch_embed.proj.weight") || !has("blocks.0.attn.qkv.weight") || !has("blocks.0.mlp.fc1.weight"))
    throw Error(file.name() + " holds no Vision Transformer under timm's names",
                "patch_embed.proj.weight, blocks.0.attn.qkv.weight and blocks.0.mlp.fc1.weight are expected");
  TensorConfig result;
  VitConfig& config = result.config;
  result.told = {
      "width",       "channels",           "patch",    "mlp", "depth", "qk_norm", "gate", "head_scale", "head_alpha",
      "class_token", "norm_after_pooling", "positions"};
  const auto tell = [&](bool whether, std::string_view member) {
    if (whether) result.told.push_back(member);
  };
  config.width = extent(file, "patch_embed.proj.weight", 0, 4);
  config.channels = extent(file, "patch_embed.proj.weight", 1, 4);
  config.patch = extent(file, "patch_embed.proj.weight", 2, 4);
  config.mlp = extent(file, "blocks.0.mlp.fc1.weight", 0, 2);
  config.depth = 0;
  while (has("blocks." + std::to_string(config.depth) + ".norm1.weight")) ++config.depth;
  config.heads = file.heads().value_or(std::max<std::int64_t>(1, config.width / 64));
  config.qk_norm = has("blocks.0.attn.q_norm.weight");
  config.gate = has("blocks.0.attn.gate.weight");
  config.head_scale = has("blocks.0.attn.head_scale");
  config.head_alpha = has("blocks.0.attn.alpha");
  if (config.head_alpha) config.score = Score::relu;
  if (config.qk_norm)
    config.heads = std::max<std::int64_t>(1, config.width / extent(file, "blocks.0.attn.q_norm.weight", 0, 1));
  if (config.head_scale) config.heads = extent(file, "blocks.0.attn.head_scale", 0, 1);
  tell(file.heads() || config.qk_norm || config.head_scale, "heads");
  config.class_token = has("cls_token");
  config.pooling = has("attn_pool.latent")                        ? Pooling::map
                   : has("fc_norm.weight") || !config.class_token ? Pooling::average
                                                                  : Pooling::token;
  config.norm_after_pooling = has("fc_norm.weight");
  tell(config.pooling != Pooling::token, "pooling");
  config.positions = has("pos_embed") ? Positions::learned : Positions::sincos;
  tell(has("head.weight"), "classes");
  config.classes = has("head.weight") ? extent(file, "head.weight", 0, 2) : 0;  // 0: no head, which check() refuses
  if (has("pos_embed")) {
    const std::int64_t side = square_root(extent(file, "pos_embed", 1, 3) - (config.class_token ? 1 : 0));
    if (side > 0) config.image_height = config.image_width = side * config.patch;
    tell(side > 0, "image_height");
    tell(side > 0, "image_width");
  }
  return result;
}

VitConfig adapted_to(VitConfig config, const io::WeightsFile& file) {
  if (config.pooling != Pooling::token) config.class_token = file.find("cls_token") != nullptr;
  if (config.pooling == Pooling::average) config.norm_after_pooling = file.find("fc_norm.weight") != nullptr;
  return config;
}

VitWeights read_weights(const io::WeightsFile& file, const VitConfig& config) {
  config.check();  // so that a file cannot make the list endless
  const std::vector<VitParameter> wanted = vit_parameters(config);
  std::vector<std::string_view> names;
  for (const VitParameter& parameter : wanted) names.push_back(parameter.name);
  std::ranges::sort(names);
  for (const io::TensorInfo& info : file.tensors())
    if (!std::ranges::binary_search(names, std::string_view(info.name)))
      throw Error(file.name() + " holds " + io::in_quotes(info.name) + " " + info.shape.text() +
                      ", which this model does not have",
                  "check the model's options, or see 'sylvit info'");
  // No shape under timm's names would tell.
  if (file.heads().value_or(config.heads) != config.heads)
    throw Error(file.name() + " has " + std::to_string(*file.heads()) + " heads, and the model has " +
                std::to_string(config.heads));
  VitWeights weights;
  for (const VitParameter& parameter : wanted)
    weights.values.push_back(parameter.name == "pos_embed" ? positions_for(file, config, weights.interpolated)
                                                           : file.read_f32(parameter.name, parameter.shape));
  return weights;
}

bool load_weights(const io::WeightsFile& file, VitParameters& parameters) {
  const VitWeights weights = read_weights(file, parameters.config());
  const std::span<const VitParameter> wanted = parameters.values().parameters();
  for (std::size_t i = 0; i < wanted.size(); ++i) parameters.write(wanted[i].name, weights.values[i]);
  parameters.update_copy();
  return weights.interpolated;
}

}  // namespace sylvit::vit
