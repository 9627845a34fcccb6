#include "vit/pass.hpp"

#include "nn/activation.hpp"
#include "nn/column_sums.hpp"
#include "nn/layer_norm.hpp"
#include "nn/tokens.hpp"

namespace sylvit::vit {

namespace {

std::string block_name(std::size_t index) { return "blocks." + std::to_string(index); }

/// Rows of a dense view as a matrix, whatever axes stand before the last.
TensorView matrix(const TensorView& view) {
  const std::int64_t columns = view.extent(view.shape().rank() - 1);
  return {view.data(), view.dtype(), {columns == 0 ? 0 : view.shape().elements() / columns, columns}};
}

TensorView flat(const TensorView& view) { return {view.data(), view.dtype(), {view.shape().elements()}}; }

double bytes_of(const TensorView& view) {
  return view ? static_cast<double>(view.shape().elements()) * static_cast<double>(size_of(view.dtype())) : 0;
}

}  // namespace

void VitPass::done(const std::string& name, double flops, const sycl::event& event, const TensorView& output,
                   std::initializer_list<const TensorView*> others, std::optional<GemmProvider> provider) {
  last_.assign(1, event);
  if (!observer_) return;
  double bytes = bytes_of(output);
  for (const TensorView* other : others) bytes += bytes_of(*other);
  observer_({name, flops, bytes, event, output, provider});
}

// ---- operations

void VitPass::product(const std::string& name, const Gemm& gemm) {
  need([&] { return gemm_workspace(device_, gemm); });
  const double flops = 2.0 * static_cast<double>(gemm.c.shape().elements()) * static_cast<double>(gemm.a.extent(1));
  std::optional<GemmProvider> provider;
  if (observer_) provider = gemm_providers(device_, gemm).front();
  done(name, flops, sylvit::gemm(device_, gemm, memory_.scratch, last_), gemm.c,
       {&gemm.a, &gemm.b, &gemm.bias, &gemm.residual, &gemm.pre_activation}, provider);
}

void VitPass::linear(const std::string& name, const TensorView& in, const TensorView& out, const After& then) {
  product_with_weights(name, {.a = in,
                              .b = matrix_operand(name),
                              .c = out,
                              .epilogue = then.epilogue,
                              .bias = value(name + ".bias"),
                              .residual = then.residual,
                              .pre_activation = then.pre_activation});
}

void VitPass::product_with_weights(const std::string& name, Gemm gemm) {
  if (packed_ != nullptr) {
    void* place = packed_->place(name, [&] { return gemm_packed_bytes(device_, gemm); });
    if (place != nullptr && packed_->stale())
      done(name + " packing", 0, gemm_pack(device_, gemm, place, last_), {}, {&gemm.b});
    gemm.packed_b = place;
  }
  product(name, gemm);
}

TensorView VitPass::matrix_operand(const std::string& name) const {
  const TensorView weight = parameters_.operand(name + ".weight");
  // A convolution's weights are rows too.
  const std::int64_t out = weight.extent(0);
  return TensorView(weight.data(), weight.dtype(), {out, weight.shape().elements() / out}).permute({1, 0});
}

void VitPass::linear_backward(const std::string& name, const TensorView& in, const TensorView& out_gradient,
                              const TensorView& in_gradient, float beta) {
  column_sum(name + ".bias gradient", out_gradient, gradient(name + ".bias"));
  const TensorView weight_gradient = gradient(name + ".weight");
  const std::int64_t out = weight_gradient.extent(0);
  product(name + ".weight gradient",
          {.a = out_gradient.permute({1, 0}),
           .b = in,
           .c = {weight_gradient.data(), DType::f32, {out, weight_gradient.shape().elements() / out}}});
  if (in_gradient)
    product(name + " gradient",
            {.a = out_gradient, .b = matrix_operand(name).permute({1, 0}), .c = in_gradient, .beta = beta});
}

void VitPass::norm(const std::string& name, const TensorView& in, const TensorView& out, const TensorView& statistics) {
  done(name, 0,
       layer_norm_forward(device_, in, value(name + ".weight"), value(name + ".bias"), config_.norm_epsilon, out,
                          statistics, last_),
       out, {&in, &statistics});
}

void VitPass::norm_backward(const std::string& name, const TensorView& in, const TensorView& statistics,
                            const TensorView& out_gradient, const TensorView& residual, const TensorView& in_gradient) {
  const LayerNormBackward pass{.in = in,
                               .weight = value(name + ".weight"),
                               .statistics = statistics,
                               .out_gradient = out_gradient,
                               .residual = residual,
                               .in_gradient = in_gradient,
                               .weight_gradient = gradient(name + ".weight"),
                               .bias_gradient = gradient(name + ".bias"),
                               .epsilon = config_.norm_epsilon};
  need([&] { return layer_norm_backward_workspace(pass); });
  done(name + " gradient", 0, layer_norm_backward(device_, pass, memory_.scratch, last_), in_gradient,
       {&in, &out_gradient, &residual});
}

void VitPass::column_sum(const std::string& name, const TensorView& in, const TensorView& out) {
  need([&] { return column_sums_workspace(in); });
  done(name, 0, column_sums(device_, in, out, memory_.scratch, last_), out, {&in});
}

// ---- attention

TensorView VitPass::heads_view(const TensorView& rows, std::int64_t length, std::int64_t first_column) const {
  const std::int64_t pitch = rows.extent(1);
  const std::int64_t d = config_.head_size();
  return {rows.as<std::byte>() + static_cast<std::size_t>(first_column) * size_of(rows.dtype()),
          rows.dtype(),
          {batch_, config_.heads, length, d},
          {length * pitch, d, pitch, 1}};
}

AttentionDescription VitPass::attention_of_blocks() const {
  return {.score = config_.score,
          .custom_score = config_.custom_score,
          .alpha = config_.alpha,
          .divisor = config_.divisor,
          .qk_norm = config_.qk_norm,
          .norm_epsilon = config_.norm_epsilon};
}

/// Inputs of attention, or their gradients, which have the same names: slices of the packed buffer, and the parameters'
/// tensors in the buffer that is given.
template <class Tensors>
Tensors VitPass::attention_tensors(std::size_t block, const TensorView& qkv, const VitBuffer& parameters) const {
  const std::string name = block_name(block) + ".attn";
  const std::int64_t tokens = config_.tokens();
  Tensors tensors{.q = heads_view(qkv, tokens, 0).slice(2, 0, continuing_tokens(block)),
                  .k = heads_view(qkv, tokens, config_.width),
                  .v = heads_view(qkv, tokens, 2 * config_.width)};
  if (config_.head_scale) tensors.head_scale = parameters.at(name + ".head_scale");
  if (config_.head_alpha) tensors.head_alpha = parameters.at(name + ".alpha");
  if (config_.qk_norm) {
    tensors.q_norm_weight = parameters.at(name + ".q_norm.weight");
    tensors.q_norm_bias = parameters.at(name + ".q_norm.bias");
    tensors.k_norm_weight = parameters.at(name + ".k_norm.weight");
    tensors.k_norm_bias = parameters.at(name + ".k_norm.bias");
  }
  return tensors;
}

/// Of [rows, columns] with a row a token: the heads of the patches, without the class token.
TensorView VitPass::patch_heads(const TensorView& rows, std::int64_t first_column) const {
  const std::int64_t tokens = config_.tokens();
  return heads_view(rows, tokens, first_column).slice(2, tokens - config_.patches(), config_.patches());
}

/// One learned query for all images; its view repeats it.
AttentionInputs VitPass::map_inputs() const {
  const std::int64_t d = config_.head_size();
  const TensorView& key_values = memory_.map.key_values;
  const TensorView& query = memory_.map.query;
  return {.q = {query.data(), query.dtype(), {batch_, config_.heads, 1, d}, {0, d, config_.width, 1}},
          .k = patch_heads(key_values, 0),
          .v = patch_heads(key_values, config_.width)};
}

void VitPass::run_attention(const std::string& name, const AttentionDescription& description,
                            const AttentionInputs& inputs, const TensorView& o, const TensorView& lse) {
  need([&] { return attention_forward_workspace(device_, description, inputs); });
  const double flops = 4.0 * static_cast<double>(inputs.q.shape().elements()) * static_cast<double>(inputs.k.extent(2));
  // The heads side by side, a row a token: as they lie in memory.
  done(name, flops, attention_forward(device_, description, inputs, o, lse, memory_.scratch, last_),
       o.permute({0, 2, 1, 3}), {&inputs.q, &inputs.k, &inputs.v, &lse});
}

void VitPass::run_attention_backward(const std::string& name, const AttentionDescription& description,
                                     const AttentionInputs& inputs, const TensorView& o, const TensorView& lse,
                                     const TensorView& o_gradient, const AttentionGradients& gradients) {
  need([&] { return attention_backward_workspace(device_, description, inputs, gradients); });
  const double flops =
      10.0 * static_cast<double>(inputs.q.shape().elements()) * static_cast<double>(inputs.k.extent(2));
  done(name + " gradient", flops,
       attention_backward(device_, description, inputs, o, lse, o_gradient, gradients, memory_.scratch, last_),
       gradients.q, {&gradients.k, &gradients.v, &inputs.q, &inputs.k, &inputs.v, &o, &lse, &o_gradient});
}

// ---- forward

void VitPass::forward(const TensorView& images, const TensorView& logits) {
  embed(images);
  for (std::size_t i = 0; i < memory_.blocks.size(); ++i) block_forward(i, true);
  head_forward(logits);
}

void VitPass::embed(const TensorView& images) {
  const std::string name = "patch_embed.proj";
  done("patches", 0, patch_rows(device_, images, config_.patch, memory_.patches, last_), memory_.patches, {&images});
  product_with_weights(name, {.a = memory_.patches, .b = matrix_operand(name), .c = memory_.embedded});
  TokenParameters token{.bias = value(name + ".bias"), .positions = parameters_.positions()};
  if (config_.class_token) token.class_token = flat(value("cls_token"));
  const TensorView tokens = as_tokens(memory_.blocks.front().x);
  done("embedding", 0, assemble_tokens(device_, memory_.embedded, token, tokens, last_), tokens,
       {&memory_.embedded, &token.positions});
}

/// `whole`: also the last product, whose result the backward pass does not need. Of the last block, only what the
/// pooling looks at is computed.
void VitPass::block_forward(std::size_t index, bool whole) {
  const VitBlockMemory& block = memory_.blocks[index];
  const std::string name = block_name(index);
  const std::string attention = name + ".attn";
  const TensorView& out = index + 1 < memory_.blocks.size() ? memory_.blocks[index + 1].x : memory_.x;
  norm(name + ".norm1", block.x, memory_.normed, block.statistics1);
  linear(attention + ".qkv", memory_.normed, block.qkv);
  run_attention(attention, attention_of_blocks(),
                attention_tensors<AttentionInputs>(index, block.qkv, parameters_.values()),
                heads_view(block.heads, continuing_tokens(index), 0), block.lse);
  if (config_.gate) {
    linear(attention + ".gate", continuing_rows(index, memory_.normed), block.gate);
    done(attention + ".gate product", 0, multiply(device_, block.heads, block.gate, block.gated, last_), block.gated,
         {&block.heads, &block.gate});
  }
  linear(attention + ".proj", config_.gate ? block.gated : block.heads, block.mid,
         {Epilogue::bias_residual, continuing_rows(index, block.x), {}});
  const TensorView normed = front_for(index, memory_.normed);
  const TensorView activated = front_for(index, memory_.activated);
  norm(name + ".norm2", block.mid, normed, block.statistics2);
  linear(name + ".mlp.fc1", normed, activated, {gelu(), {}, block.u});
  if (whole) linear(name + ".mlp.fc2", activated, out, {Epilogue::bias_residual, block.mid, {}});
}

void VitPass::head_forward(const TensorView& logits) {
  const TensorView& x = memory_.x;
  const TensorView tokens = as_tokens(x);
  switch (config_.pooling) {
    case Pooling::token:
      norm("norm", x, memory_.pooled, class_statistics());
      break;
    case Pooling::average:
      if (config_.norm_after_pooling) {
        done("pooling", 0, pool_average(device_, tokens, config_.class_token, memory_.mean, last_), memory_.mean,
             {&tokens});
        norm("fc_norm", memory_.mean, memory_.pooled, class_statistics());
      } else {
        norm("norm", x, memory_.tokens, memory_.statistics);
        done("pooling", 0, pool_average(device_, as_tokens(memory_.tokens), config_.class_token, memory_.pooled, last_),
             memory_.pooled, {&memory_.tokens});
      }
      break;
    case Pooling::map: {
      const VitMapMemory& map = memory_.map;
      norm("norm", x, memory_.tokens, memory_.statistics);
      linear("attn_pool.q", matrix(parameters_.operand("attn_pool.latent")), map.query);
      linear("attn_pool.kv", memory_.tokens, map.key_values);
      run_attention("attn_pool", {}, map_inputs(), heads_view(map.heads, 1, 0), map.lse);
      linear("attn_pool.proj", map.heads, map.y);
      norm("attn_pool.norm", map.y, map.normed, map.statistics);
      linear("attn_pool.mlp.fc1", map.normed, map.activated, {gelu(), {}, map.u});
      linear("attn_pool.mlp.fc2", map.activated, memory_.pooled, {Epilogue::bias_residual, map.y, {}});
      break;
    }
  }
  linear("head", memory_.pooled, logits);
}

/// Of [rows, width] with a row a token: [batch, tokens, width].
TensorView VitPass::as_tokens(const TensorView& rows) const {
  return {rows.data(), rows.dtype(), {batch_, config_.tokens(), config_.width}};
}

/// The class token of each image, [batch, width].
TensorView VitPass::class_tokens(const TensorView& rows) const {
  return {rows.data(), rows.dtype(), {batch_, config_.width}, {config_.tokens() * config_.width, 1}};
}

/// Statistics of one row an image.
TensorView VitPass::class_statistics() const {
  return memory_.statistics ? TensorView(memory_.statistics.data(), DType::f32, {batch_, 2}) : TensorView();
}

// ---- backward

void VitPass::backward(const TensorView& images, const TensorView& logits_gradient, const VitBuffer& gradients) {
  gradients_ = &gradients;
  head_backward(logits_gradient);
  for (std::size_t i = memory_.blocks.size(); i-- > 0;) block_backward(i);
  embed_backward(images);
}

void VitPass::head_backward(const TensorView& logits_gradient) {
  const TensorView& x = memory_.x;
  const TensorView& x_gradient = memory_.x_gradient;
  const TensorView& pooled = memory_.pooled_gradient;
  linear_backward("head", memory_.pooled, logits_gradient, pooled);
  switch (config_.pooling) {
    case Pooling::token:
      norm_backward("norm", x, class_statistics(), pooled, {}, memory_.y_gradient);
      break;
    case Pooling::average:
      if (config_.norm_after_pooling) {
        norm_backward("fc_norm", memory_.mean, class_statistics(), pooled, {}, memory_.pooled_gradient2);
        done(
            "pooling gradient", 0,
            pool_average_backward(device_, memory_.pooled_gradient2, config_.class_token, as_tokens(x_gradient), last_),
            x_gradient, {&memory_.pooled_gradient2});
      } else {
        done("pooling gradient", 0,
             pool_average_backward(device_, pooled, config_.class_token, as_tokens(memory_.normed_gradient), last_),
             memory_.normed_gradient, {&pooled});
        norm_backward("norm", x, memory_.statistics, memory_.normed_gradient, {}, x_gradient);
      }
      break;
    case Pooling::map:
      map_backward();
      norm_backward("norm", x, memory_.statistics, memory_.normed_gradient, {}, x_gradient);
      break;
  }
}

/// From the gradient of what the head sees to that of the normed tokens.
void VitPass::map_backward() {
  const VitMapMemory& map = memory_.map;
  const TensorView& y_gradient = memory_.pooled_gradient;
  const TensorView& normed_gradient = memory_.pooled_gradient2;
  linear_backward("attn_pool.mlp.fc2", map.activated, y_gradient, memory_.map_activated_gradient);
  done("attn_pool.mlp gelu gradient", 0,
       gelu_backward(device_, gelu_form(), map.u, memory_.map_activated_gradient, memory_.map_activated_gradient, {},
                     last_),
       memory_.map_activated_gradient, {&map.u, &memory_.map_activated_gradient});
  linear_backward("attn_pool.mlp.fc1", map.normed, memory_.map_activated_gradient, normed_gradient);
  norm_backward("attn_pool.norm", map.y, map.statistics, normed_gradient, y_gradient, y_gradient);
  linear_backward("attn_pool.proj", map.heads, y_gradient, memory_.map_heads_gradient);
  // Each image has a share in the one query's gradient.
  const TensorView& query_shares = memory_.pooled_gradient2;
  const TensorView& key_values = memory_.map_key_values_gradient;
  if (config_.class_token) done("attn_pool gradient", 0, fill(device_, key_values, 0.0F, last_), key_values);
  run_attention_backward("attn_pool", {}, map_inputs(), heads_view(map.heads, 1, 0), map.lse,
                         heads_view(memory_.map_heads_gradient, 1, 0),
                         {.q = heads_view(query_shares, 1, 0),
                          .k = patch_heads(key_values, 0),
                          .v = patch_heads(key_values, config_.width)});
  column_sum("attn_pool.q gradient", query_shares, memory_.map_query_sum);
  done("attn_pool.q gradient", 0, convert(device_, memory_.map_query_sum, flat(memory_.map_query_gradient), last_),
       memory_.map_query_gradient, {&memory_.map_query_sum});
  linear_backward("attn_pool.q", matrix(parameters_.operand("attn_pool.latent")), memory_.map_query_gradient, {});
  product("attn_pool.latent gradient", {.a = memory_.map_query_gradient,
                                        .b = matrix_operand("attn_pool.q").permute({1, 0}),
                                        .c = matrix(gradient("attn_pool.latent"))});
  linear_backward("attn_pool.kv", memory_.tokens, key_values, memory_.normed_gradient);
}

void VitPass::block_backward(std::size_t index) {
  const VitBlockMemory& block = memory_.blocks[index];
  const std::string name = block_name(index);
  const std::string attention = name + ".attn";
  const bool last = index + 1 == memory_.blocks.size();
  const TensorView& y_gradient = last ? memory_.y_gradient : memory_.x_gradient;
  if (options_.recompute) block_forward(index, false);

  // The MLP. Its activations are computed again from what gelu was taken of, and so is the norm.
  const TensorView u_gradient = front_for(index, memory_.activated_gradient);
  const TensorView activated = front_for(index, memory_.activated);
  const TensorView mlp_in = front_for(index, memory_.normed);
  const TensorView mlp_in_gradient = front_for(index, memory_.normed_gradient);
  product(name + ".mlp.fc2 gradient",
          {.a = y_gradient, .b = matrix_operand(name + ".mlp.fc2").permute({1, 0}), .c = u_gradient});
  done(name + ".mlp gelu gradient", 0,
       gelu_backward(device_, gelu_form(), block.u, u_gradient, u_gradient, activated, last_), u_gradient,
       {&block.u, &u_gradient, &activated});
  linear_backward(name + ".mlp.fc2", activated, y_gradient, {});
  norm(name + ".norm2", block.mid, mlp_in, {});
  linear_backward(name + ".mlp.fc1", mlp_in, u_gradient, mlp_in_gradient);
  norm_backward(name + ".norm2", block.mid, block.statistics2, mlp_in_gradient, y_gradient, y_gradient);

  // The attention.
  const TensorView heads_gradient = front_for(index, memory_.heads_gradient);
  const TensorView gate_gradient = front_for(index, memory_.gate_gradient);
  linear_backward(attention + ".proj", config_.gate ? block.gated : block.heads, y_gradient, heads_gradient);
  if (config_.gate)
    done(attention + ".gate product gradient", 0,
         multiply_backward(device_, block.heads, block.gate, heads_gradient, heads_gradient, gate_gradient, last_),
         heads_gradient, {&block.heads, &block.gate, &heads_gradient, &gate_gradient});
  const std::int64_t tokens = continuing_tokens(index);
  const bool all_tokens = tokens == config_.tokens();
  if (!all_tokens)  // the queries that nobody has asked
    done(attention + " gradient", 0, fill(device_, memory_.qkv_gradient, 0.0F, last_), memory_.qkv_gradient);
  run_attention_backward(attention, attention_of_blocks(),
                         attention_tensors<AttentionInputs>(index, block.qkv, parameters_.values()),
                         heads_view(block.heads, tokens, 0), block.lse, heads_view(heads_gradient, tokens, 0),
                         attention_tensors<AttentionGradients>(index, memory_.qkv_gradient, *gradients_));
  const TensorView& normed = memory_.normed;
  const TensorView& normed_gradient = memory_.normed_gradient;
  norm(name + ".norm1", block.x, normed, {});
  linear_backward(attention + ".qkv", normed, memory_.qkv_gradient, normed_gradient);
  if (config_.gate)
    linear_backward(attention + ".gate", continuing_rows(index, normed), gate_gradient,
                    continuing_rows(index, normed_gradient), 1.0F);
  const TensorView& x_gradient = memory_.x_gradient;
  if (!all_tokens)
    done("pooling gradient", 0, pool_token_backward(device_, y_gradient, as_tokens(x_gradient), last_), x_gradient,
         {&y_gradient});
  norm_backward(name + ".norm1", block.x, block.statistics1, normed_gradient, x_gradient, x_gradient);
}

void VitPass::embed_backward(const TensorView& images) {
  const TensorView& x_gradient = memory_.x_gradient;
  TokenGradients gradients{.embedded = memory_.embedded};
  if (config_.positions == Positions::learned)
    gradients.positions = {gradient("pos_embed").data(), DType::f32, {config_.tokens(), config_.width}};
  if (config_.class_token) gradients.class_token = flat(gradient("cls_token"));
  done("embedding gradient", 0,
       assemble_tokens_backward(device_, as_tokens(x_gradient), config_.class_token, gradients, last_),
       memory_.embedded, {&x_gradient, &gradients.positions});
  done("patches", 0, patch_rows(device_, images, config_.patch, memory_.patches, last_), memory_.patches, {&images});
  linear_backward("patch_embed.proj", memory_.patches, memory_.embedded, {});
}

}  // namespace sylvit::vit
