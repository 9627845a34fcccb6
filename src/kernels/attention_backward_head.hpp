// Attention backward, cut 1: a work-group owns a whole KV head and all query heads that share it.
//
//     groups = (batch, kv_heads, 1)                 5 tile products for each block of queries x keys: the fewest
//
//              query blocks →                       for each key block: load K, V once; all query heads and query
//         key  +---+---+---+                        blocks pass by; dK, dV leave local memory at the end of the row;
//      blocks  | → | → | → | dK, dV                 dQ is summed in global memory from row to row (f32: in dQ itself,
//         ↓    +---+---+---+                        16-bit types: in the workspace, [batch, heads, queries, d] floats,
//              | → | → | → | dK, dV                 needed only when keys > key_block).
//              +---+---+---+
//                dQ  dQ  dQ
#pragma once

#include "kernels/attention_backward_block.hpp"
#include "kernels/description.hpp"

namespace sylvit::kernels {

template <class Score, class T, AttentionBackwardConfig config>
struct AttentionBackwardHead {
  using Arguments = AttentionBackwardArguments;

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    const int kv_head = static_cast<int>(group_of(item, 1));
    const int group = arguments.heads / arguments.kv_heads;
    const AttentionBackwardBlocks<Score, T, config, QueryGradient::sum, true> blocks(
        arguments, item, local, static_cast<int>(group_of(item, 0)), kv_head);
    const int visible = blocks.visible_key_blocks();
    for (int key_block = 0; key_block < visible; ++key_block)
      blocks.pass_queries(key_block, kv_head * group, (kv_head + 1) * group, 0, blocks.query_blocks());
    for (int key_block = visible; key_block < blocks.key_blocks(); ++key_block)
      blocks.store_zero_key_gradients(key_block);
  }
};

struct AttentionBackwardHeadKernel
    : Description<AttentionBackwardConfig, AttentionBackwardArguments, Parameters::score_type> {
  static constexpr const char *header = "attention_backward_head.hpp", *functor = "AttentionBackwardHead",
                              *arguments = "AttentionBackwardArguments";
  static constexpr BackwardCut cut = BackwardCut::head;
  static constexpr int local_floats(const AttentionBackwardConfig& config) { return config.local_floats(); }
};

}  // namespace sylvit::kernels
