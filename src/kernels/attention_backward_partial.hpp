// Attention backward, cut 3: a work-group owns a block of keys, and leaves its share of dQ in the workspace; a second,
// small kernel adds the shares in the order of the key blocks. 5 tile products, and more work-groups than cut 1.
//
//     AttentionBackwardPartial                             AttentionBackwardPartialSum
//     groups = (batch, kv_heads, key_blocks)               groups = (batch, heads, query_blocks)
//
//              query blocks →
//         key  +---+---+---+                               dQ = share 0 + share 1 + …
//      blocks  | → | → | → | dK, dV, share 0 of dQ         (causal: only the shares of key blocks that the query
//         ↓    +---+---+---+                                block sees; the others were never written)
//              | → | → | → | dK, dV, share 1 of dQ
//              +---+---+---+
//
// Workspace: key_blocks · batch · heads · queries · (d + 1) floats (see AttentionPartials): for few, large key blocks.
#pragma once

#include "kernels/attention_backward_block.hpp"
#include "kernels/description.hpp"

namespace sylvit::kernels {

template <class Score, class T, AttentionBackwardConfig config>
struct AttentionBackwardPartial {
  using Arguments = AttentionBackwardArguments;

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    own_key_block<Score, T, config, QueryGradient::partial>(arguments, item, local);
  }
};

struct AttentionBackwardPartialKernel
    : Description<AttentionBackwardConfig, AttentionBackwardArguments, Parameters::score_type> {
  static constexpr const char *header = "attention_backward_partial.hpp", *functor = "AttentionBackwardPartial",
                              *arguments = "AttentionBackwardArguments";
  static constexpr BackwardCut cut = BackwardCut::partial;
  static constexpr int local_floats(const AttentionBackwardConfig& config) { return config.local_floats(); }
};

template <class T, AttentionBackwardConfig config>
struct AttentionBackwardPartialSum {
  using Arguments = AttentionBackwardArguments;

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float*) {
    const Arguments args = arguments;
    const int batch = static_cast<int>(group_of(item, 0));
    const int head = static_cast<int>(group_of(item, 1));
    const int query_block = static_cast<int>(group_of(item, 2));
    const AttentionBackwardBlocks<Identity, T, config, QueryGradient::none, false> blocks(args, item, nullptr, batch,
                                                                                          0);
    const AttentionPartials partials = blocks.partials();
    const int shares = blocks.last_key_block(query_block) + 1;
    const int first = query_block * config.query_block;
    const int end = first + config.query_block < args.queries ? first + config.query_block : args.queries;
    for (int row = first; row < end; ++row) {
      const std::int64_t index = blocks.row_index(head, row);
      T* out = static_cast<T*>(args.q_gradient) + args.q_gradient_strides.at(batch, head) +
               row * args.q_gradient_strides.row;
      for (int c = lane_of(item); c < args.head_size; c += config.work_items()) {
        float sum = args.workspace[partials.query_gradient(0, index) + c];
        for (int share = 1; share < shares; ++share) sum += args.workspace[partials.query_gradient(share, index) + c];
        out[c] = static_cast<T>(sum);
      }
    }
    if (args.row_dots == nullptr) return;
    for (int row = first + lane_of(item); row < end; row += config.work_items()) {
      const std::int64_t index = blocks.row_index(head, row);
      float sum = args.workspace[partials.row_dot(0, index)];
      for (int share = 1; share < shares; ++share) sum += args.workspace[partials.row_dot(share, index)];
      args.row_dots[index] = sum;
    }
  }
};

struct AttentionBackwardPartialSumKernel
    : Description<AttentionBackwardConfig, AttentionBackwardArguments, Parameters::type> {
  static constexpr const char *header = "attention_backward_partial.hpp", *functor = "AttentionBackwardPartialSum",
                              *arguments = "AttentionBackwardArguments";
  static constexpr BackwardCut cut = BackwardCut::partial;
};

}  // namespace sylvit::kernels
