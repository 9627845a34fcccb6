#include "reference/vit.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "reference/attention.hpp"

namespace sylvit::reference {
namespace {

using Values = std::vector<double>;
using Row = std::span<double>;
using ConstRow = std::span<const double>;

std::size_t count(std::int64_t number) { return static_cast<std::size_t>(number); }

template <class T>
auto row(T& tensor, std::size_t index, std::size_t size) {
  return std::span(tensor).subspan(index * size, size);
}

void add(Row sum, ConstRow values) { add_scaled(sum, 1, values); }

Values product(const Values& a, const Values& b) {
  Values result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = a[i] * b[i];
  return result;
}

/// The model, and its sizes as indices.
struct Model {
  const VitConfig& config;
  const VitTensors& parameters;
  std::size_t batch;
  std::size_t tokens = count(config.tokens());
  std::size_t patches = count(config.patches());
  std::size_t first_patch = tokens - patches;  // after the class token
  std::size_t width = count(config.width);
  std::size_t heads = count(config.heads);
  std::size_t head_size = count(config.head_size());

  const Values& operator[](const std::string& name) const { return parameters.at(name); }
};

[[noreturn]] void fail(const std::string& sentence) { throw Error("reference model: " + sentence); }

void check_size(const std::string& name, std::size_t given, std::size_t expected) {
  if (given != expected)
    fail(name + " has " + std::to_string(given) + " elements instead of " + std::to_string(expected));
}

Model checked_model(const VitConfig& config, const VitTensors& parameters, const Values& images) {
  config.check();
  const std::vector<VitParameter> expected = vit_parameters(config);
  for (const VitParameter& parameter : expected) {
    const auto found = parameters.find(parameter.name);
    if (found == parameters.end()) fail("the parameter " + parameter.name + " is missing");
    check_size(parameter.name, found->second.size(), count(parameter.shape.elements()));
  }
  for (const auto& given : parameters)
    if (std::ranges::find(expected, given.first, &VitParameter::name) == expected.end())
      fail("the model has no parameter " + given.first);
  const std::size_t image_size = count(config.channels * config.image_height * config.image_width);
  const std::size_t batch = images.size() / image_size;
  if (batch == 0 || images.size() % image_size != 0)
    fail("the images have " + std::to_string(images.size()) + " elements, which is not one image or more of " +
         std::to_string(image_size));
  return {config, parameters, batch};
}

// Layers. A layer's backward takes its input and the gradient of its output, adds the gradients of its parameters to
// `gradients`, and returns the gradient of the input.

/// y = x Wᵀ + b, for each row of x.
Values linear(const Model& model, const std::string& name, const Values& x) {
  const Values& weight = model[name + ".weight"];
  const Values& bias = model[name + ".bias"];
  const std::size_t out = bias.size();
  const std::size_t in = weight.size() / out;
  Values y(x.size() / in * out);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = bias[i % out] + dot(row(x, i / out, in), row(weight, i % out, in));
  return y;
}

Values linear_backward(const Model& model, const std::string& name, const Values& x, const Values& grad_y,
                       VitTensors& gradients) {
  const Values& weight = model[name + ".weight"];
  Values& grad_weight = gradients.at(name + ".weight");
  Values& grad_bias = gradients.at(name + ".bias");
  const std::size_t out = grad_bias.size();
  const std::size_t in = weight.size() / out;
  Values grad_x(x.size(), 0);
  for (std::size_t i = 0; i < grad_y.size(); ++i) {
    add_scaled(row(grad_x, i / out, in), grad_y[i], row(weight, i % out, in));
    add_scaled(row(grad_weight, i % out, in), grad_y[i], row(x, i / out, in));
    grad_bias[i % out] += grad_y[i];
  }
  return grad_x;
}

/// x̂ = (x - mean) / sqrt(biased variance + ε); returns the factor 1 / sqrt(…).
double standardise(ConstRow x, double epsilon, Row result) {
  const auto size = static_cast<double>(x.size());
  double mean = 0;
  for (const double value : x) mean += value / size;
  double variance = 0;
  for (const double value : x) variance += (value - mean) * (value - mean) / size;
  const double factor = 1 / std::sqrt(variance + epsilon);
  for (std::size_t c = 0; c < x.size(); ++c) result[c] = (x[c] - mean) * factor;
  return factor;
}

/// y = x̂ ⊙ w + b, for each row of x.
Values layer_norm(const Model& model, const std::string& name, const Values& x) {
  const Values& weight = model[name + ".weight"];
  const Values& bias = model[name + ".bias"];
  const std::size_t size = bias.size();
  Values y(x.size());
  for (std::size_t r = 0; r < x.size() / size; ++r) {
    const Row result = row(y, r, size);
    standardise(row(x, r, size), model.config.norm_epsilon, result);
    for (std::size_t c = 0; c < size; ++c) result[c] = result[c] * weight[c] + bias[c];
  }
  return y;
}

Values layer_norm_backward(const Model& model, const std::string& name, const Values& x, const Values& grad_y,
                           VitTensors& gradients) {
  const Values& weight = model[name + ".weight"];
  Values& grad_weight = gradients.at(name + ".weight");
  Values& grad_bias = gradients.at(name + ".bias");
  const std::size_t size = weight.size();
  Values grad_x(x.size());
  Values standard(size);
  Values grad_standard(size);
  for (std::size_t r = 0; r < x.size() / size; ++r) {
    const double factor = standardise(row(x, r, size), model.config.norm_epsilon, standard);
    double mean = 0;
    double mean_along_x = 0;
    for (std::size_t c = 0; c < size; ++c) {
      const double gradient = grad_y[r * size + c];
      grad_weight[c] += gradient * standard[c];
      grad_bias[c] += gradient;
      grad_standard[c] = gradient * weight[c];
      mean += grad_standard[c] / static_cast<double>(size);
      mean_along_x += grad_standard[c] * standard[c] / static_cast<double>(size);
    }
    for (std::size_t c = 0; c < size; ++c)
      grad_x[r * size + c] = factor * (grad_standard[c] - mean - standard[c] * mean_along_x);
  }
  return grad_x;
}

/// The same function as the score of that name.
Score gelu_kind(const Model& model) { return model.config.gelu_tanh ? Score::gelu_tanh : Score::gelu; }

Values gelu(const Model& model, const Values& x) {
  Values y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = score_value(gelu_kind(model), x[i]);
  return y;
}

Values gelu_backward(const Model& model, const Values& x, const Values& grad_y) {
  Values grad_x(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) grad_x[i] = score_slope(gelu_kind(model), x[i]) * grad_y[i];
  return grad_x;
}

/// y = fc2(gelu(fc1(norm(x)))), with all that its backward needs.
struct MlpRecord {
  Values x, normed, hidden, activated, y;
};

MlpRecord mlp(const Model& model, const std::string& norm, const std::string& name, const Values& x) {
  MlpRecord record;
  record.x = x;
  record.normed = layer_norm(model, norm, x);
  record.hidden = linear(model, name + ".fc1", record.normed);
  record.activated = gelu(model, record.hidden);
  record.y = linear(model, name + ".fc2", record.activated);
  return record;
}

Values mlp_backward(const Model& model, const std::string& norm, const std::string& name, const MlpRecord& record,
                    const Values& grad_y, VitTensors& gradients) {
  const Values grad_activated = linear_backward(model, name + ".fc2", record.activated, grad_y, gradients);
  const Values grad_hidden = gelu_backward(model, record.hidden, grad_activated);
  const Values grad_normed = linear_backward(model, name + ".fc1", record.normed, grad_hidden, gradients);
  return layer_norm_backward(model, norm, record.x, grad_normed, gradients);
}

/// Calls visit(part, row of [B, tokens, parts, heads, d], row of the part's [B, heads, tokens, d]).
template <class Visit>
void for_each_head_row(const Model& model, std::size_t tokens, std::size_t parts, Visit visit) {
  for (std::size_t b = 0; b < model.batch; ++b)
    for (std::size_t n = 0; n < tokens; ++n)
      for (std::size_t part = 0; part < parts; ++part)
        for (std::size_t h = 0; h < model.heads; ++h)
          visit(part, ((b * tokens + n) * parts + part) * model.heads + h, (b * model.heads + h) * tokens + n);
}

/// [B, tokens, parts, heads, d] to `parts` tensors [B, heads, tokens, d].
std::vector<Values> split_heads(const Model& model, const Values& packed, std::size_t tokens, std::size_t parts) {
  std::vector<Values> split(parts, Values(packed.size() / parts));
  for_each_head_row(model, tokens, parts, [&](std::size_t part, std::size_t from, std::size_t to) {
    std::ranges::copy(row(packed, from, model.head_size), row(split[part], to, model.head_size).begin());
  });
  return split;
}

/// The inverse; also the backward of split_heads, as that is of this.
Values join_heads(const Model& model, const std::vector<Values>& split, std::size_t tokens) {
  Values packed(split.size() * split[0].size());
  for_each_head_row(model, tokens, split.size(), [&](std::size_t part, std::size_t to, std::size_t from) {
    std::ranges::copy(row(split[part], from, model.head_size), row(packed, to, model.head_size).begin());
  });
  return packed;
}

/// [B, C, H, W] to [B, patches, C, p, p].
Values cut_patches(const Model& model, const Values& images) {
  const std::size_t height = count(model.config.image_height);
  const std::size_t width = count(model.config.image_width);
  const std::size_t channels = count(model.config.channels);
  const std::size_t size = count(model.config.patch);
  Values patches;
  patches.reserve(images.size());
  for (std::size_t b = 0; b < model.batch; ++b)
    for (std::size_t top = 0; top < height; top += size)
      for (std::size_t left = 0; left < width; left += size)
        for (std::size_t c = 0; c < channels; ++c)
          for (std::size_t y = 0; y < size; ++y)
            for (std::size_t x = 0; x < size; ++x)
              patches.push_back(images[((b * channels + c) * height + top + y) * width + left + x]);
  return patches;
}

/// Tokens [B, tokens, D] of the patches.
Values embed(const Model& model, const Values& patches) {
  const bool learned = model.config.positions == Positions::learned;
  const Values positions = learned ? model["pos_embed"] : sincos_positions(model.config);
  const Values embedded = linear(model, "patch_embed.proj", patches);
  const std::size_t patch_size = model.patches * model.width;
  Values x;
  for (std::size_t b = 0; b < model.batch; ++b) {
    if (model.config.class_token) x.insert(x.end(), model["cls_token"].begin(), model["cls_token"].end());
    const ConstRow of_image = row(embedded, b, patch_size);
    x.insert(x.end(), of_image.begin(), of_image.end());
    add(row(x, b, positions.size()), positions);
  }
  return x;
}

void embed_backward(const Model& model, const Values& patches, const Values& grad_x, VitTensors& gradients) {
  Values grad_embedded;
  for (std::size_t b = 0; b < model.batch; ++b) {
    const ConstRow of_image = row(grad_x, b, model.tokens * model.width);
    if (model.config.positions == Positions::learned) add(gradients.at("pos_embed"), of_image);
    if (model.config.class_token) add(gradients.at("cls_token"), of_image.first(model.width));
    const ConstRow of_patches = of_image.last(model.patches * model.width);
    grad_embedded.insert(grad_embedded.end(), of_patches.begin(), of_patches.end());
  }
  linear_backward(model, "patch_embed.proj", patches, grad_embedded, gradients);
}

AttentionShape attention_shape(const Model& model, std::int64_t queries, std::int64_t keys) {
  return {static_cast<std::int64_t>(model.batch),
          model.config.heads,
          model.config.heads,
          queries,
          keys,
          model.config.head_size()};
}

AttentionProblem block_attention(const Model& model, const std::string& name, const Values& qkv) {
  const VitConfig& config = model.config;
  const std::vector<Values> split = split_heads(model, qkv, model.tokens, 3);
  AttentionProblem problem;
  problem.shape = attention_shape(model, config.tokens(), config.tokens());
  problem.score = config.score;
  problem.alpha = config.alpha;
  if (config.divisor != 0) problem.divisor = config.divisor;
  problem.q = split[0];
  problem.k = split[1];
  problem.v = split[2];
  problem.epsilon = config.norm_epsilon;
  if (config.qk_norm) {
    problem.qk_norm = true;
    problem.q_norm = {model[name + ".q_norm.weight"], model[name + ".q_norm.bias"]};
    problem.k_norm = {model[name + ".k_norm.weight"], model[name + ".k_norm.bias"]};
  }
  if (config.head_scale) problem.head_scale = model[name + ".head_scale"];
  if (config.head_alpha) problem.head_alpha = model[name + ".alpha"];
  return problem;
}

/// Returns the gradient of qkv.
Values block_attention_backward(const Model& model, const std::string& name, const AttentionProblem& problem,
                                const Values& grad_o, VitTensors& gradients) {
  const AttentionGradients from = attention_backward(problem, grad_o);
  if (model.config.qk_norm) {
    add(gradients.at(name + ".q_norm.weight"), from.q_norm.weight);
    add(gradients.at(name + ".q_norm.bias"), from.q_norm.bias);
    add(gradients.at(name + ".k_norm.weight"), from.k_norm.weight);
    add(gradients.at(name + ".k_norm.bias"), from.k_norm.bias);
  }
  if (model.config.head_scale) add(gradients.at(name + ".head_scale"), from.head_scale);
  if (model.config.head_alpha) add(gradients.at(name + ".alpha"), from.head_alpha);
  return join_heads(model, {from.q, from.k, from.v}, model.tokens);
}

/// x + attention branch + MLP branch, with all that its backward needs.
struct BlockRecord {
  Values x, normed;
  AttentionProblem attention;
  Values heads, gate, gated, branch;
  MlpRecord mlp;
  Values y;
};

BlockRecord block(const Model& model, const std::string& name, const Values& x) {
  BlockRecord record;
  record.x = x;
  record.normed = layer_norm(model, name + ".norm1", x);
  record.attention = block_attention(model, name + ".attn", linear(model, name + ".attn.qkv", record.normed));
  record.heads = join_heads(model, {attention_forward(record.attention).o}, model.tokens);
  record.gated = record.heads;
  if (model.config.gate) {
    record.gate = linear(model, name + ".attn.gate", record.normed);
    record.gated = product(record.heads, record.gate);
  }
  record.branch = linear(model, name + ".attn.proj", record.gated);
  Values middle = x;
  add(middle, record.branch);
  record.mlp = mlp(model, name + ".norm2", name + ".mlp", middle);
  record.y = middle;
  add(record.y, record.mlp.y);
  return record;
}

Values block_backward(const Model& model, const std::string& name, const BlockRecord& record, const Values& grad_y,
                      VitTensors& gradients) {
  Values grad_middle = grad_y;
  add(grad_middle, mlp_backward(model, name + ".norm2", name + ".mlp", record.mlp, grad_y, gradients));

  Values grad_heads = linear_backward(model, name + ".attn.proj", record.gated, grad_middle, gradients);
  Values grad_normed(record.normed.size(), 0);
  if (model.config.gate) {
    const Values grad_gate = product(grad_heads, record.heads);
    add(grad_normed, linear_backward(model, name + ".attn.gate", record.normed, grad_gate, gradients));
    grad_heads = product(grad_heads, record.gate);
  }
  const Values grad_o = split_heads(model, grad_heads, model.tokens, 1)[0];
  const Values grad_qkv = block_attention_backward(model, name + ".attn", record.attention, grad_o, gradients);
  add(grad_normed, linear_backward(model, name + ".attn.qkv", record.normed, grad_qkv, gradients));

  Values grad_x = grad_middle;
  add(grad_x, layer_norm_backward(model, name + ".norm1", record.x, grad_normed, gradients));
  return grad_x;
}

/// The tokens after the class token, [B, tokens, D] to [B, patches, D].
Values patch_tokens(const Model& model, const Values& x) {
  Values patches;
  for (std::size_t b = 0; b < model.batch; ++b) {
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>((b * model.tokens + model.first_patch) * model.width);
    patches.insert(patches.end(), begin, begin + static_cast<std::ptrdiff_t>(model.patches * model.width));
  }
  return patches;
}

Values patch_tokens_backward(const Model& model, const Values& grad_patches) {
  Values grad_x(model.batch * model.tokens * model.width, 0);
  for (std::size_t b = 0; b < model.batch; ++b)
    for (std::size_t n = 0; n < model.patches; ++n)
      std::ranges::copy(row(grad_patches, b * model.patches + n, model.width),
                        row(grad_x, b * model.tokens + model.first_patch + n, model.width).begin());
  return grad_x;
}

/// One learned query looks at all patches: y = z + mlp(z) with z = proj(attention), with all that its backward needs.
struct MapRecord {
  Values x;  // the patches' tokens
  AttentionProblem attention;
  Values heads;
  MlpRecord mlp;
  Values y;
};

MapRecord map_pool(const Model& model, const Values& x) {
  MapRecord record;
  record.x = patch_tokens(model, x);
  const Values query = linear(model, "attn_pool.q", model["attn_pool.latent"]);
  const std::vector<Values> kv = split_heads(model, linear(model, "attn_pool.kv", record.x), model.patches, 2);
  record.attention.shape = attention_shape(model, 1, model.config.patches());
  for (std::size_t b = 0; b < model.batch; ++b)
    record.attention.q.insert(record.attention.q.end(), query.begin(), query.end());
  record.attention.k = kv[0];
  record.attention.v = kv[1];
  record.heads = attention_forward(record.attention).o;  // [B, heads, 1, d] lies as [B, 1, D]
  const Values projected = linear(model, "attn_pool.proj", record.heads);
  record.mlp = mlp(model, "attn_pool.norm", "attn_pool.mlp", projected);
  record.y = projected;
  add(record.y, record.mlp.y);
  return record;
}

Values map_pool_backward(const Model& model, const MapRecord& record, const Values& grad_y, VitTensors& gradients) {
  Values grad_projected = grad_y;
  add(grad_projected, mlp_backward(model, "attn_pool.norm", "attn_pool.mlp", record.mlp, grad_y, gradients));
  const Values grad_heads = linear_backward(model, "attn_pool.proj", record.heads, grad_projected, gradients);
  const AttentionGradients from = attention_backward(record.attention, grad_heads);

  Values grad_query(model.width, 0);
  for (std::size_t b = 0; b < model.batch; ++b) add(grad_query, row(from.q, b, model.width));
  add(gradients.at("attn_pool.latent"),
      linear_backward(model, "attn_pool.q", model["attn_pool.latent"], grad_query, gradients));
  const Values grad_kv = join_heads(model, {from.k, from.v}, model.patches);
  return patch_tokens_backward(model, linear_backward(model, "attn_pool.kv", record.x, grad_kv, gradients));
}

/// The class token, or the patch tokens.
struct PooledTokens {
  std::size_t first, count;

  explicit PooledTokens(const Model& model)
      : first(model.config.pooling == Pooling::token ? 0 : model.first_patch),
        count(model.config.pooling == Pooling::token ? 1 : model.patches) {}
  double weight() const { return 1 / static_cast<double>(count); }
};

/// The mean of the pooled tokens, [B, tokens, D] to [B, D].
Values mean_pool(const Model& model, const Values& x) {
  const PooledTokens pooled(model);
  Values y(model.batch * model.width, 0);
  for (std::size_t b = 0; b < model.batch; ++b)
    for (std::size_t n = pooled.first; n < pooled.first + pooled.count; ++n)
      add_scaled(row(y, b, model.width), pooled.weight(), row(x, b * model.tokens + n, model.width));
  return y;
}

Values mean_pool_backward(const Model& model, const Values& grad_y) {
  const PooledTokens pooled(model);
  Values grad_x(model.batch * model.tokens * model.width, 0);
  for (std::size_t b = 0; b < model.batch; ++b)
    for (std::size_t n = pooled.first; n < pooled.first + pooled.count; ++n)
      add_scaled(row(grad_x, b * model.tokens + n, model.width), pooled.weight(), row(grad_y, b, model.width));
  return grad_x;
}

/// The whole model, with all that its backward needs.
struct Record {
  Values patches, embedding;
  std::vector<BlockRecord> blocks;
  Values normed;      // empty with norm_after_pooling
  MapRecord map;      // Pooling::map only
  Values pooled_raw;  // norm_after_pooling only: before fc_norm
  Values pooled, logits;
};

std::string block_name(std::size_t index) { return "blocks." + std::to_string(index); }

Record forward(const Model& model, const Values& images) {
  Record record;
  record.patches = cut_patches(model, images);
  record.embedding = embed(model, record.patches);
  for (std::size_t i = 0; i < count(model.config.depth); ++i)
    record.blocks.push_back(block(model, block_name(i), i == 0 ? record.embedding : record.blocks[i - 1].y));
  const Values& last = record.blocks.back().y;
  if (model.config.norm_after_pooling) {
    record.pooled_raw = mean_pool(model, last);
    record.pooled = layer_norm(model, "fc_norm", record.pooled_raw);
  } else {
    record.normed = layer_norm(model, "norm", last);
    if (model.config.pooling == Pooling::map) {
      record.map = map_pool(model, record.normed);
      record.pooled = record.map.y;
    } else {
      record.pooled = mean_pool(model, record.normed);
    }
  }
  record.logits = linear(model, "head", record.pooled);
  return record;
}

void backward(const Model& model, const Record& record, const Values& grad_logits, VitTensors& gradients) {
  const Values grad_pooled = linear_backward(model, "head", record.pooled, grad_logits, gradients);
  const Values& last = record.blocks.back().y;
  Values grad_x;
  if (model.config.norm_after_pooling) {
    const Values grad_raw = layer_norm_backward(model, "fc_norm", record.pooled_raw, grad_pooled, gradients);
    grad_x = mean_pool_backward(model, grad_raw);
  } else {
    const Values grad_normed = model.config.pooling == Pooling::map
                                   ? map_pool_backward(model, record.map, grad_pooled, gradients)
                                   : mean_pool_backward(model, grad_pooled);
    grad_x = layer_norm_backward(model, "norm", last, grad_normed, gradients);
  }
  for (std::size_t i = record.blocks.size(); i-- > 0;)
    grad_x = block_backward(model, block_name(i), record.blocks[i], grad_x, gradients);
  embed_backward(model, record.patches, grad_x, gradients);
}

/// Of [B, tokens, ...], the first tokens of each image.
Values first_tokens(const Model& model, const Values& rows, std::size_t tokens) {
  const std::size_t images = model.batch;
  const std::size_t of_image = rows.size() / images;
  const std::size_t wanted = of_image / model.tokens * tokens;
  Values first;
  for (std::size_t b = 0; b < images; ++b)
    first.insert(first.end(), rows.begin() + static_cast<std::ptrdiff_t>(b * of_image),
                 rows.begin() + static_cast<std::ptrdiff_t>(b * of_image + wanted));
  return first;
}

/// `tokens`: of an image, those that the device takes beyond the block's keys and values.
void observe_block(const Model& model, const std::string& name, const BlockRecord& record, std::size_t tokens,
                   const VitStepObserver& observe_all) {
  const auto observe = [&](const std::string& step, const Values& rows) {
    observe_all(step, first_tokens(model, rows, tokens));
  };
  observe_all(name + ".norm1", record.normed);
  observe_all(name + ".attn.qkv",
              join_heads(model, {record.attention.q, record.attention.k, record.attention.v}, model.tokens));
  observe(name + ".attn", record.heads);
  if (model.config.gate) {
    observe(name + ".attn.gate", record.gate);
    observe(name + ".attn.gate product", record.gated);
  }
  observe(name + ".attn.proj", record.mlp.x);
  observe(name + ".norm2", record.mlp.normed);
  observe(name + ".mlp.fc1", record.mlp.activated);
  observe(name + ".mlp.fc2", record.y);
}

void observe_map(const Model& model, const MapRecord& record, const VitStepObserver& observe) {
  const auto query = record.attention.q.begin();
  observe("attn_pool.q", {query, query + static_cast<std::ptrdiff_t>(model.width)});
  if (!model.config.class_token)
    observe("attn_pool.kv", join_heads(model, {record.attention.k, record.attention.v}, model.patches));
  observe("attn_pool", record.heads);
  observe("attn_pool.proj", record.mlp.x);
  observe("attn_pool.norm", record.mlp.normed);
  observe("attn_pool.mlp.fc1", record.mlp.activated);
  observe("attn_pool.mlp.fc2", record.y);
}

void observe_steps(const Model& model, const Record& record, const VitStepObserver& observe) {
  observe("patches", record.patches);
  observe("embedding", record.embedding);
  for (std::size_t i = 0; i < record.blocks.size(); ++i) {
    const bool last = i + 1 == record.blocks.size();
    const std::int64_t tokens = last ? model.config.pooled_tokens() : model.config.tokens();
    observe_block(model, block_name(i), record.blocks[i], count(tokens), observe);
  }
  if (model.config.norm_after_pooling) {
    observe("pooling", record.pooled_raw);
    observe("fc_norm", record.pooled);
  } else if (model.config.pooling == Pooling::token) {
    observe("norm", record.pooled);  // of the class tokens alone
  } else {
    observe("norm", record.normed);
    if (model.config.pooling == Pooling::map)
      observe_map(model, record.map, observe);
    else
      observe("pooling", record.pooled);
  }
  observe("head", record.logits);
}

/// The targets after smoothing, [B, classes].
Values smooth_targets(const VitLoss& loss, std::size_t batch, std::size_t classes) {
  if (!(loss.label_smoothing >= 0 && loss.label_smoothing <= 1))
    fail("a label smoothing of " + std::to_string(loss.label_smoothing) + " is not in 0 to 1");
  if (loss.labels.empty() == loss.targets.empty()) fail("a loss takes either labels or targets");
  Values targets = loss.targets;
  if (targets.empty()) {
    check_size("the loss's labels", loss.labels.size(), batch);
    targets.assign(batch * classes, 0);
    for (std::size_t b = 0; b < batch; ++b) {
      if (loss.labels[b] < 0 || count(loss.labels[b]) >= classes)
        fail("the label " + std::to_string(loss.labels[b]) + " is not one of " + std::to_string(classes) + " classes");
      targets[b * classes + count(loss.labels[b])] = 1;
    }
  }
  check_size("the loss's targets", targets.size(), batch * classes);
  for (double& target : targets)
    target = target * (1 - loss.label_smoothing) + loss.label_smoothing / static_cast<double>(classes);
  return targets;
}

/// The loss of one image, and its gradient.
double softmax_loss(ConstRow logits, ConstRow targets, Row gradient) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  const double log_sum_exp = largest + std::log(sum);
  double loss = 0;
  double total = 0;  // of the targets, which need not be 1
  for (std::size_t c = 0; c < logits.size(); ++c) {
    loss -= targets[c] * (logits[c] - log_sum_exp);
    total += targets[c];
  }
  for (std::size_t c = 0; c < logits.size(); ++c) gradient[c] = total * std::exp(logits[c] - log_sum_exp) - targets[c];
  return loss;
}

double sigmoid_loss(ConstRow logits, ConstRow targets, Row gradient) {
  double loss = 0;
  for (std::size_t c = 0; c < logits.size(); ++c) {
    // -log sigmoid(z) = softplus(-z) = softplus(z) - z
    loss += score_value(Score::softplus, logits[c]) - targets[c] * logits[c];
    gradient[c] = score_value(Score::sigmoid, logits[c]) - targets[c];
  }
  return loss;
}

}  // namespace

const std::vector<double>& VitOutput::layer(const std::string& name) const {
  for (const auto& [known, values] : layers)
    if (known == name) return values;
  fail("the output has no layer " + name);
}

std::vector<double> sincos_positions(const VitConfig& config) {
  constexpr double temperature = 10000;
  const std::size_t quarter = count(config.width) / 4;
  std::vector<double> positions;
  positions.reserve(count(config.tokens() * config.width));
  if (config.class_token) positions.assign(count(config.width), 0);
  for (std::int64_t y = 0; y < config.grid_height(); ++y)
    for (std::int64_t x = 0; x < config.grid_width(); ++x)
      for (const std::int64_t coordinate : {x, y})
        for (const bool cosine : {false, true})
          for (std::size_t i = 0; i < quarter; ++i) {
            const double w = std::pow(temperature, -static_cast<double>(i) / static_cast<double>(quarter - 1));
            const double angle = static_cast<double>(coordinate) * w;
            positions.push_back(cosine ? std::cos(angle) : std::sin(angle));
          }
  return positions;
}

VitOutput vit_forward(const VitConfig& config, const VitTensors& parameters, const std::vector<double>& images,
                      const VitStepObserver& observe) {
  const Model model = checked_model(config, parameters, images);
  const Record record = forward(model, images);
  if (observe) observe_steps(model, record, observe);
  VitOutput output;
  output.logits = record.logits;
  const auto keep = [&](const std::string& name, const Values& values) { output.layers.emplace_back(name, values); };
  keep("embedding", record.embedding);
  for (std::size_t i = 0; i < record.blocks.size(); ++i) {
    keep(block_name(i) + ".heads", record.blocks[i].heads);
    keep(block_name(i) + ".attention", record.blocks[i].branch);
    keep(block_name(i), record.blocks[i].y);
  }
  if (!config.norm_after_pooling) keep("norm", record.normed);
  keep("pooled", record.pooled);
  return output;
}

VitLossValue vit_loss(const VitLoss& loss, const std::vector<double>& logits, std::int64_t classes) {
  if (classes < 1) fail("a loss over " + std::to_string(classes) + " classes makes no sense");
  const std::size_t size = count(classes);
  const std::size_t batch = logits.size() / size;
  if (batch == 0 || logits.size() % size != 0)
    fail(std::to_string(logits.size()) + " logits are not one row or more of " + std::to_string(size) + " classes");
  const Values targets = smooth_targets(loss, batch, size);
  VitLossValue result{0, Values(logits.size())};
  for (std::size_t b = 0; b < batch; ++b) {
    const auto of_image = loss.kind == VitLoss::Kind::sigmoid ? sigmoid_loss : softmax_loss;
    result.loss += of_image(row(logits, b, size), row(targets, b, size), row(result.grad_logits, b, size));
  }
  result.loss /= static_cast<double>(batch);
  for (double& gradient : result.grad_logits) gradient /= static_cast<double>(batch);
  return result;
}

VitGradients vit_backward(const VitConfig& config, const VitTensors& parameters, const std::vector<double>& images,
                          const VitLoss& loss) {
  const Model model = checked_model(config, parameters, images);
  const Record record = forward(model, images);
  const VitLossValue value = vit_loss(loss, record.logits, config.classes);
  VitGradients result{value.loss, record.logits, {}};
  for (const auto& [name, values] : parameters) result.gradients[name].assign(values.size(), 0);
  backward(model, record, value.grad_logits, result.gradients);
  return result;
}

}  // namespace sylvit::reference
