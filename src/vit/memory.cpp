#include "vit/memory.hpp"

namespace sylvit::vit {

VitMemory::VitMemory(const VitConfig& config, const VitOptions& options, std::int64_t batch, std::size_t scratch_bytes,
                     Workspace& space) {
  const DType type = options.dtype;
  const std::int64_t d = config.width;
  const std::int64_t rows = batch * config.tokens();
  const bool pools_all = config.pooled_tokens() == config.tokens();
  const bool training = options.use == VitUse::training;
  const bool keeps_blocks = training && !options.recompute;
  const bool map_pooling = config.pooling == Pooling::map;
  const bool all_normed = config.pooling != Pooling::token && !config.norm_after_pooling;
  const Shape row_shape{rows, d};
  const Shape image_shape{batch, d};
  const Shape statistics_shape{rows, 2};

  const auto attention_memory = [&](VitBlockMemory& block, std::int64_t continued) {
    const Shape shape{batch * continued, d};
    block.statistics1 = space.take_if(training, DType::f32, statistics_shape);
    block.qkv = space.take(type, {rows, 3 * d});
    block.lse = space.take_if(training && config.score == Score::softmax, DType::f32, {batch, config.heads, continued});
    block.heads = space.take(type, shape);
    block.gate = space.take_if(config.gate, type, shape);
    block.gated = space.take_if(config.gate, type, shape);
  };

  normed = space.take(type, row_shape);
  x = space.take(type, {batch * config.pooled_tokens(), d});
  blocks.resize(static_cast<std::size_t>(config.depth));
  // Where blocks share their memory, the last one takes less of it than the others.
  const auto share = [&](const auto& take) {
    const std::size_t mark = space.mark();
    VitBlockMemory last;
    take(last, config.pooled_tokens());
    space.release(mark);
    VitBlockMemory other;
    take(other, config.tokens());
    for (VitBlockMemory& block : blocks) block = other;
    blocks.back() = last;
  };
  if (training) {
    const auto keep = [&](VitBlockMemory& block, std::int64_t continued) {
      attention_memory(block, continued);
      block.mid = space.take(type, {batch * continued, d});
      block.statistics2 = space.take(DType::f32, {batch * continued, 2});
      block.u = space.take(type, {batch * continued, config.mlp});
    };
    if (!keeps_blocks) share(keep);
    for (VitBlockMemory& block : blocks) {
      if (keeps_blocks) keep(block, &block == &blocks.back() ? config.pooled_tokens() : config.tokens());
      block.x = space.take(type, row_shape);
    }
  }

  // The head.
  statistics = space.take_if(training, DType::f32, statistics_shape);
  tokens = space.take_if(all_normed, type, row_shape);
  mean = space.take_if(config.norm_after_pooling, type, image_shape);
  pooled = space.take(type, image_shape);
  if (map_pooling) {
    map.query = space.take(type, {1, d});
    map.key_values = space.take(type, {rows, 2 * d});
    map.lse = space.take(DType::f32, {batch, config.heads, 1});
    map.heads = space.take(type, image_shape);
    map.y = space.take(type, image_shape);
    map.normed = space.take(type, image_shape);
    map.statistics = space.take(DType::f32, {batch, 2});
    map.u = space.take(type, {batch, config.mlp});
    map.activated = space.take(type, {batch, config.mlp});
  }
  if (training) {
    x_gradient = space.take(type, row_shape);
    normed_gradient = space.take(type, row_shape);
    activated = space.take(type, {rows, config.mlp});
    pooled_gradient = space.take(type, image_shape);
    pooled_gradient2 = space.take(type, image_shape);
    y_gradient = pools_all ? x_gradient : pooled_gradient2;
    if (map_pooling) {
      map_heads_gradient = space.take(type, image_shape);
      map_activated_gradient = space.take(type, {batch, config.mlp});
      map_key_values_gradient = space.take(type, {rows, 2 * d});
      map_query_gradient = space.take(type, {1, d});
      map_query_sum = space.take(DType::f32, {d});
    }
  }
  // What the blocks of an inference pass add to, one after the other.
  const TensorView stream = training ? TensorView() : (pools_all ? x : space.take(type, row_shape));
  scratch = space.take(scratch_bytes);

  // From here on, memory that is used for one thing after the other.
  const std::size_t mark = space.mark();
  patches = space.take(type, {batch * config.patches(), config.patch_values()});
  embedded = space.take(type, {batch * config.patches(), d});
  space.release(mark);
  if (training) {
    activated_gradient = space.take(type, {rows, config.mlp});
    space.release(mark);
    qkv_gradient = space.take(type, {rows, 3 * d});
    heads_gradient = space.take(type, row_shape);
    gate_gradient = space.take_if(config.gate, type, row_shape);
  } else {
    share(attention_memory);
    space.release(mark);
    activated = space.take(type, {rows, config.mlp});
    for (VitBlockMemory& block : blocks) block.x = block.mid = stream;
    blocks.back().mid = x;
  }
}

}  // namespace sylvit::vit
