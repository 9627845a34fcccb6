// What the attention backward kernels share: their tile numbers, their arguments, and where partial sums lie. The maths
// and the picture are in attention_backward_block.hpp.
#pragma once

#include "kernels/attention_common.hpp"
#include "kernels/description.hpp"
#include "kernels/sycl.hpp"

namespace sylvit::kernels {

/// How the backward pass is cut into work-groups. The bits of the result do not depend on it.
enum class BackwardCut { head, split, partial };

struct AttentionBackwardConfig {
  int head_size;    ///< Capacity D, at least the head size of the arguments; columns beyond that one are zeros.
  int lanes;        ///< Work-items that share a register tile.
  int columns;      ///< Columns of the tile that each of them holds.
  int rows;         ///< Rows of the tile.
  int query_block;  ///< Queries in local memory at a time, a multiple of rows.
  int key_block;    ///< Keys in local memory at a time, a multiple of width().
  int sub_groups;   ///< Sub-groups in a work-group.

  static constexpr const char *name = "AttentionBackwardConfig", *record = "attention_backward";
  static constexpr const char* host_number = "cut";  ///< the BackwardCut, which only the host needs
  template <class Visit>
  static constexpr void members(const Visit& visit) {
    visit("head_size", &AttentionBackwardConfig::head_size);
    visit("lanes", &AttentionBackwardConfig::lanes);
    visit("columns", &AttentionBackwardConfig::columns);
    visit("rows", &AttentionBackwardConfig::rows);
    visit("query_block", &AttentionBackwardConfig::query_block);
    visit("key_block", &AttentionBackwardConfig::key_block);
    visit("sub_groups", &AttentionBackwardConfig::sub_groups);
  }
  template <class Tries>
  static constexpr void search(const Tries& tries) {
    tries("query_block", Step::rows, 4, 8, 16, 24, 36, 48, 64, 96);
    tries("key_block", Step::width, 16, 32, 48, 64, 96, 128, 160, 208, 256);
    tries("cut", Step::one, 0, 1, 2);
  }
  constexpr int sub_group_size() const { return sub_group_of_lanes(lanes); }
  constexpr int width() const { return lanes * columns; }
  constexpr int work_items() const { return lanes * sub_groups; }
  /// Columns of a row tile: whole register tiles.
  constexpr int padded_head() const { return (head_size + width() - 1) / width() * width(); }
  /// Rows of the key-gradient tiles: whole register tiles.
  constexpr int padded_keys() const { return (key_block + rows - 1) / rows * rows; }
  /// Distance of rows in local memory: an odd number of cache lines, so that a column spreads over all cache sets.
  static constexpr int pitch(int floats) {
    constexpr int line = 16;
    const int lines = (floats + line - 1) / line;
    return (lines | 1) * line;
  }
  /// Distance of the columns of a transposed panel; odd where many work-items write them, for the memory banks of GPUs.
  constexpr int panel_pitch() const { return sub_groups == 1 ? width() : width() | 1; }
  constexpr int row_pitch() const { return pitch(padded_head()); }
  constexpr int score_pitch() const { return pitch(padded_keys() > key_block ? padded_keys() : key_block); }
  // Where things lie in local memory.
  constexpr int transposed_size() const { return key_block / width() * head_size * panel_pitch(); }
  constexpr int transposed_keys() const { return 0; }
  constexpr int transposed_values() const { return transposed_keys() + transposed_size(); }
  constexpr int keys() const { return transposed_values() + transposed_size(); }
  constexpr int queries() const { return keys() + key_block * row_pitch(); }
  constexpr int output_gradients() const { return queries() + query_block * row_pitch(); }
  constexpr int weights() const { return output_gradients() + query_block * row_pitch(); }
  constexpr int score_gradients() const { return weights() + query_block * score_pitch(); }
  constexpr int row_dots() const { return score_gradients() + query_block * score_pitch(); }
  constexpr int key_gradients() const { return row_dots() + query_block * width(); }
  constexpr int value_gradients() const { return key_gradients() + padded_keys() * padded_head(); }
  constexpr int local_floats() const { return value_gradients() + padded_keys() * padded_head(); }
  /// For the kernel that gives dQ alone.
  constexpr int local_floats_of_queries() const { return key_gradients(); }

  constexpr bool valid() const {
    return head_size > 0 && lanes > 0 && columns > 0 && rows > 0 && sub_groups > 0 && query_block > 0 &&
           query_block % rows == 0 && key_block > 0 && key_block % width() == 0;
  }
};

struct AttentionBackwardArguments {
  const void* q;
  const void* k;
  const void* v;
  const void* o_gradient;
  void* q_gradient;
  void* k_gradient;
  void* v_gradient;
  AttentionStrides q_strides, k_strides, v_strides, o_gradient_strides, q_gradient_strides, k_gradient_strides,
      v_gradient_strides;
  const std::int32_t* lengths;  ///< Keys of each sequence, [batch]; null: all.
  const float* head_scale;      ///< m, [heads]; null: 1.
  const float* head_alpha;      ///< α, [heads]; null: `alpha`.
  const float* lse;             ///< Softmax: log-sum-exp of the rows of S, [batch, heads, queries].
  const float* delta;           ///< Softmax: Σ_c dO·O of each row, same shape.
  float* row_dots;              ///< Wanted for the gradients of m and α: Σ_j N^-α h(S) dP of each row; or null.
  float* workspace;             ///< f32 sums of dQ, see the cuts.
  int heads, kv_heads, queries, keys, head_size;
  int causal;
  int query_share;              ///< Query blocks of one work-group of AttentionBackwardQueries.
  float scale, alpha, divisor;  ///< divisor <= 0: the number of keys of the sequence.
};

/// Where the share of dQ of one key block lies in the workspace of the partial cut, and after all of them that of the
/// row dots: [key_blocks, batch, heads, queries, d], then [key_blocks, batch, heads, queries].
struct AttentionPartials {
  std::int64_t rows;  ///< batch · heads · queries
  std::int64_t head_size;
  std::int64_t key_blocks;

  std::int64_t query_gradient(int key_block, std::int64_t row) const { return (key_block * rows + row) * head_size; }
  std::int64_t row_dot(int key_block, std::int64_t row) const {
    return key_blocks * rows * head_size + key_block * rows + row;
  }
};

}  // namespace sylvit::kernels
