// Attention backward, cut 2: two kernels that know nothing of each other, each with as many work-groups as there are
// blocks. Both compute the tiles of P and dS, so a block of queries x keys costs 7 tile products (3 + 4) instead of 5.
//
//     AttentionBackwardQueries                             AttentionBackwardKeys
//     groups = (batch, heads,                              groups = (batch, kv_heads,
//               ceil(query_blocks / query_share))                    key_blocks)
//
//              query blocks →                                       query blocks →
//         key  +---+---+---+                                   key  +---+---+---+
//      blocks  | ↓ | ↓ | ↓ |                                blocks  | → | → | → | dK, dV
//         ↓    +---+---+---+                                   ↓    +---+---+---+
//              | ↓ | ↓ | ↓ |                                        | → | → | → | dK, dV
//              +---+---+---+                                        +---+---+---+
//                dQ  dQ  dQ
//
// AttentionBackwardQueries takes query_share query blocks past each key block that it loads. Its workspace is that of
// AttentionBackwardHead: 16-bit types need [batch, heads, queries, d] floats when keys > key_block.
#pragma once

#include "kernels/attention_backward_block.hpp"
#include "kernels/description.hpp"

namespace sylvit::kernels {

template <class Score, class T, AttentionBackwardConfig config>
struct AttentionBackwardQueries {
  using Arguments = AttentionBackwardArguments;

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    const int batch = static_cast<int>(group_of(item, 0));
    const int head = static_cast<int>(group_of(item, 1));
    const int kv_head = head / (arguments.heads / arguments.kv_heads);
    const AttentionBackwardBlocks<Score, T, config, QueryGradient::sum, false> blocks(arguments, item, local, batch,
                                                                                      kv_head);
    const int begin = static_cast<int>(group_of(item, 2)) * arguments.query_share;
    const int whole_end = begin + arguments.query_share;
    const int end = whole_end < blocks.query_blocks() ? whole_end : blocks.query_blocks();
    const int last = blocks.last_key_block(end - 1);
    for (int key_block = 0; key_block <= last; ++key_block) blocks.pass_queries(key_block, head, head + 1, begin, end);
  }
};

struct AttentionBackwardQueriesKernel
    : Description<AttentionBackwardConfig, AttentionBackwardArguments, Parameters::score_type> {
  static constexpr const char *header = "attention_backward_split.hpp", *functor = "AttentionBackwardQueries",
                              *arguments = "AttentionBackwardArguments";
  static constexpr BackwardCut cut = BackwardCut::split;
  static constexpr int local_floats(const AttentionBackwardConfig& config) { return config.local_floats_of_queries(); }
};

template <class Score, class T, AttentionBackwardConfig config>
struct AttentionBackwardKeys {
  using Arguments = AttentionBackwardArguments;

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    own_key_block<Score, T, config, QueryGradient::none>(arguments, item, local);
  }
};

struct AttentionBackwardKeysKernel
    : Description<AttentionBackwardConfig, AttentionBackwardArguments, Parameters::score_type> {
  static constexpr const char *header = "attention_backward_split.hpp", *functor = "AttentionBackwardKeys",
                              *arguments = "AttentionBackwardArguments";
  static constexpr BackwardCut cut = BackwardCut::split;
  static constexpr int local_floats(const AttentionBackwardConfig& config) { return config.local_floats(); }
};

}  // namespace sylvit::kernels
