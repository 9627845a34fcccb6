// The core of the attention backward pass: one block of queries against one block of keys. The three ways to cut the
// work (attention_backward_head.hpp, _split.hpp, _partial.hpp) are only different loops over such blocks.
//
//     S  = scale · Q Kᵀ          P  = m N^-α h(S)                 (softmax: P = m exp(S - lse))
//     dP = dO Vᵀ                 dS = scale · m N^-α dP ∘ h'(S)   (softmax: dS = scale · p ∘ (m dP - delta), P = m p)
//     dV += Pᵀ dO                dK += dSᵀ Q                      dQ = dS K
//
// Local memory during a block (q: query_block rows, j: key_block columns, d: head size):
//
//                 Kᵀ, Vᵀ   in panels of `width` keys: [panel][d][width]
//                 +-----+-----+-----+
//               d |     |     |     |
//                 +-----+-----+-----+
//     Q, dO                j                       K
//     +---+       +-----+-----+-----+            +---+
//   q |   |  (1)  |     |  P, dS    |  q   (3)   |   | j     (1) rows of Q, dO times panels of Kᵀ, Vᵀ give P, dS
//     |   |  -->  |     |     |     |  -->  dQ   |   |       (2) columns of P, dS times dO, Q are added to dV, dK
//     +---+       +-----+-----+-----+            +---+       (3) rows of dS times K give this block's share of dQ
//                          | (2)
//                          v   dV, dK: [j][d], kept in local memory while the queries pass by
//
// Every product runs as register tiles of `rows` x `width`: a sub-group of `lanes` work-items shares a tile, each holds
// `columns` of its columns, lane by lane. Sub-groups of one work-group share the rows in turn.
//
// Order of summation: S and dP along d, dV and dK along all queries (and query heads of the group), dQ along the keys
// of a block and then block by block. So the bits of the results depend on key_block alone, neither on the other
// numbers of the configuration, nor on the cut, nor on what else is in the batch.
#pragma once

#include <sylvit/float16.hpp>

#include "kernels/attention_backward_config.hpp"
#include "kernels/scores.hpp"
#include "kernels/sycl.hpp"
#include "kernels/tile.hpp"

namespace sylvit::kernels {

enum class QueryGradient {
  none,
  sum,     ///< Added up over the key blocks, one after the other, in global memory.
  partial  ///< Each key block's share on its own, in the workspace.
};

template <class Score, class T, AttentionBackwardConfig config, QueryGradient query_gradient, bool wants_key_gradient>
class AttentionBackwardBlocks {
  static_assert(config.valid());
  static constexpr bool wants_query_gradient = query_gradient != QueryGradient::none;
  static constexpr int D = config.head_size;
  static constexpr int width = config.width();
  static constexpr int rows = config.rows;
  static constexpr int columns = config.columns;
  static constexpr int lanes = config.lanes;
  static constexpr int panel_pitch = config.panel_pitch();
  static constexpr int row_pitch = config.row_pitch();
  static constexpr int score_pitch = config.score_pitch();
  static constexpr int head_pitch = config.padded_head();

  // By value: where an argument is chosen with a null check, a reference would keep all of them in private memory, and
  // the CPU compiler would take each for different from lane to lane.
  const AttentionBackwardArguments args;
  const sycl::nd_item<3>& item;
  float* const local;
  const int lane;
  const int sub_group;
  const int batch;
  const int kv_head;
  const int length;  ///< Keys of this sequence.

 public:
  [[gnu::always_inline]] AttentionBackwardBlocks(const AttentionBackwardArguments& arguments,
                                                 const sycl::nd_item<3>& work_item, float* memory, int b, int group)
      : args(arguments),
        item(work_item),
        local(memory),
        // With one sub-group the compiler sees at once that every address but the lane's own column is uniform.
        lane(config.sub_groups == 1 ? lane_of(work_item) : lane_of(work_item) % lanes),
        sub_group(config.sub_groups == 1 ? 0 : lane_of(work_item) / lanes),
        batch(b),
        kv_head(group),
        length(keys_of(arguments.lengths, b, arguments.keys)) {}

  [[gnu::always_inline]] int key_blocks() const { return (args.keys + config.key_block - 1) / config.key_block; }
  [[gnu::always_inline]] int query_blocks() const {
    return (args.queries + config.query_block - 1) / config.query_block;
  }
  /// Key blocks with a visible key; never less than one, so that every dQ is written.
  [[gnu::always_inline]] int visible_key_blocks() const {
    return length <= config.key_block ? 1 : (length + config.key_block - 1) / config.key_block;
  }
  /// The first query block that sees a key of this block.
  [[gnu::always_inline]] int first_query_block(int key_block) const {
    return args.causal != 0 ? key_block * config.key_block / config.query_block : 0;
  }
  /// The last key block that this query block sees: after it, dQ is complete.
  [[gnu::always_inline]] int last_key_block(int query_block) const {
    const int last = visible_key_blocks() - 1;
    if (args.causal == 0) return last;
    const int diagonal = ((query_block + 1) * config.query_block - 1) / config.key_block;
    return diagonal < last ? diagonal : last;
  }

  [[gnu::always_inline]] std::int64_t row_index(int head, std::int64_t row) const {
    return (static_cast<std::int64_t>(batch) * args.heads + head) * args.queries + row;
  }
  [[gnu::always_inline]] AttentionPartials partials() const {
    const std::int64_t batches = static_cast<std::int64_t>(item.get_group_range(0));
    return {batches * args.heads * args.queries, args.head_size, key_blocks()};
  }

  /// Takes these blocks of these query heads past one key block. A query block must pass the key blocks in order: its
  /// dQ is begun at the first and complete after the last.
  [[gnu::always_inline]] void pass_queries(int key_block, int query_head_begin, int query_head_end,
                                           int query_block_begin, int query_block_end) const {
    load_keys(key_block);
    if constexpr (wants_key_gradient) clear_key_gradients();
    const int begin = larger(query_block_begin, first_query_block(key_block));
    for (int head = query_head_begin; head < query_head_end; ++head) {
      for (int query_block = begin; query_block < query_block_end; ++query_block) {
        load_queries(head, query_block);
        synchronise();
        score_tiles(head, query_block, key_block);
        synchronise();
        if constexpr (wants_key_gradient) add_key_gradients(query_block, key_block);
        if constexpr (wants_query_gradient) add_query_gradients(head, query_block, key_block);
        if (args.row_dots != nullptr && wants_query_gradient) add_row_dots(head, query_block, key_block);
        synchronise();
      }
    }
    if constexpr (wants_key_gradient) store_key_gradients(key_block);
  }

  /// Keys that no query may see have zero gradients.
  [[gnu::always_inline]] void store_zero_key_gradients(int key_block) const {
    clear_key_gradients();
    synchronise();
    store_key_gradients(key_block);
  }

 private:
  /// A single work-item needs no barrier, and AdaptiveCpp's CPU compiler has got loops around one wrong.
  [[gnu::always_inline]] void synchronise() const {
    if constexpr (config.work_items() > 1) barrier(item);
  }

  [[gnu::always_inline]] int keys_in(int key_block) const {
    return smaller(config.key_block, args.keys - key_block * config.key_block);
  }
  [[gnu::always_inline]] int visible_keys_in(int key_block) const {
    const int left = smaller(keys_in(key_block), length - key_block * config.key_block);
    return left > 0 ? left : 0;
  }
  [[gnu::always_inline]] int queries_in(int query_block) const {
    return smaller(config.query_block, args.queries - query_block * config.query_block);
  }
  [[gnu::always_inline]] static int smaller(int a, int b) { return a < b ? a : b; }
  [[gnu::always_inline]] static int larger(int a, int b) { return a > b ? a : b; }

  /// Is this lane's column of the lanes from c on within the head size? That is a multiple of 8, so up to 8 lanes
  /// agree, and the compiler must see that: a branch that might diverge makes it mask the whole kernel.
  [[gnu::always_inline]] bool inside(int c) const { return (8 % lanes == 0 ? c : c + lane) < args.head_size; }

  /// Calls each(c) for the columns that lane 0 has of `count`. Unrolled where several lanes are at work: at head size
  /// 128 DPC++'s CPU compiler keeps the loop otherwise, and 16-bit types lose a third of all speed. A single
  /// work-item's loop is left to the compiler, which makes vectors of it.
  template <int count, class Each>
  [[gnu::always_inline]] static void for_columns(const Each& each) {
    if constexpr (lanes > 1) {
#pragma unroll
      for (int c = 0; c < count; c += lanes) each(c);
    } else {
      for (int c = 0; c < count; ++c) each(c);
    }
  }

  /// Rows of a tensor into local rows of row_pitch; rows from `valid` to `count` and columns beyond d become zeros.
  [[gnu::always_inline]] void load_rows(const T* from, std::int64_t stride, int valid, int count, float* to) const {
    for (int row = sub_group; row < count; row += config.sub_groups) {
      const T* source = from + (row < valid ? row : 0) * stride + lane;
      float* target = to + row * row_pitch + lane;
      for_columns<head_pitch>([&](int c) __attribute__((always_inline)) {
        if (row < valid && inside(c))
          target[c] = static_cast<float>(source[c]);
        else
          target[c] = 0.0F;
      });
    }
  }

  /// Rows of a tensor into panels [panel][d][panel_pitch]; rows from `valid` to the end of the last panel and columns
  /// beyond d become zeros. Read along the rows: scattered stores cost less than gathered loads.
  [[gnu::always_inline]] void load_transposed(const T* from, std::int64_t stride, int valid, float* to) const {
    const int count = (valid + width - 1) / width * width;
    for (int row = sub_group; row < count; row += config.sub_groups) {
      const T* source = from + (row < valid ? row : 0) * stride + lane;
      float* target = to + row / width * (D * panel_pitch) + row % width + lane * panel_pitch;
      for_columns<D>([&](int c) __attribute__((always_inline)) {
        if (row < valid && inside(c))
          target[c * panel_pitch] = static_cast<float>(source[c]);
        else if (D % lanes == 0 || c + lane < D)
          target[c * panel_pitch] = 0.0F;
      });
    }
  }

  [[gnu::always_inline]] void load_keys(int key_block) const {
    const std::int64_t first = static_cast<std::int64_t>(key_block) * config.key_block;
    const int valid = visible_keys_in(key_block);
    const T* k = static_cast<const T*>(args.k) + args.k_strides.at(batch, kv_head) + first * args.k_strides.row;
    const T* v = static_cast<const T*>(args.v) + args.v_strides.at(batch, kv_head) + first * args.v_strides.row;
    load_transposed(k, args.k_strides.row, valid, local + config.transposed_keys());
    load_transposed(v, args.v_strides.row, valid, local + config.transposed_values());
    if constexpr (wants_query_gradient) load_rows(k, args.k_strides.row, valid, valid, local + config.keys());
  }

  [[gnu::always_inline]] void load_queries(int head, int query_block) const {
    const std::int64_t first = static_cast<std::int64_t>(query_block) * config.query_block;
    const int valid = queries_in(query_block);
    const int count = (valid + rows - 1) / rows * rows;
    load_rows(static_cast<const T*>(args.q) + args.q_strides.at(batch, head) + first * args.q_strides.row,
              args.q_strides.row, valid, count, local + config.queries());
    load_rows(static_cast<const T*>(args.o_gradient) + args.o_gradient_strides.at(batch, head) +
                  first * args.o_gradient_strides.row,
              args.o_gradient_strides.row, valid, count, local + config.output_gradients());
    if (args.row_dots != nullptr)
      for (int row = sub_group; row < count; row += config.sub_groups)
        for (int x = lane; x < width; x += lanes) local[config.row_dots() + row * width + x] = 0.0F;
  }

  [[gnu::always_inline]] float head_scale(int head) const {
    return args.head_scale != nullptr ? args.head_scale[head] : 1.0F;
  }
  /// N^-α
  [[gnu::always_inline]] float normaliser(int head) const {
    if constexpr (is_softmax<Score>) return 1.0F;
    const float n = args.divisor > 0.0F ? args.divisor : static_cast<float>(larger(length, 1));
    return sycl::pow(n, -(args.head_alpha != nullptr ? args.head_alpha[head] : args.alpha));
  }

  /// (1): the tiles of P and dS.
  [[gnu::always_inline]] void score_tiles(int head, int query_block, int key_block) const {
    const int row0 = query_block * config.query_block;
    const int key0 = key_block * config.key_block;
    const int valid_rows = queries_in(query_block);
    const int valid_keys = visible_keys_in(key_block);
    const int panels = (valid_keys + width - 1) / width;
    const int row_tiles = (valid_rows + rows - 1) / rows;
    const float scale = args.scale;
    const float multiplier = head_scale(head);
    const float divided = normaliser(head);
    const float weight_factor = multiplier * divided;
    const float gradient_factor = scale * weight_factor;
    const bool wants_dots = args.row_dots != nullptr;
    const std::int64_t first_row = row_index(head, row0);
    for (int panel = 0; panel < panels; ++panel)
      for (int tile = sub_group; tile < row_tiles; tile += config.sub_groups) {
        const int tile_row = tile * rows;
        const int tile_key = panel * width;
        // Above the diagonal; step (2) looks up to a row of tiles beyond it.
        if (args.causal != 0 && key0 + tile_key > row0 + tile_row + 2 * (rows - 1)) continue;
        float* weights = local + config.weights() + tile_row * score_pitch + tile_key + lane;
        float* gradients = local + config.score_gradients() + tile_row * score_pitch + tile_key + lane;
        {
          RegisterTile<rows, columns> scores;
          scores.clear();
          accumulate<TileStrides{row_pitch, 1, panel_pitch, lanes}>(
              scores, local + config.queries() + tile_row * row_pitch,
              local + config.transposed_keys() + panel * D * panel_pitch + lane, D);
#pragma unroll
          for (int r = 0; r < rows; ++r)
#pragma unroll
            for (int x = 0; x < columns; ++x) weights[r * score_pitch + x * lanes] = scale * scores.value[r][x];
        }
        {
          RegisterTile<rows, columns> products;
          products.clear();
          accumulate<TileStrides{row_pitch, 1, panel_pitch, lanes}>(
              products, local + config.output_gradients() + tile_row * row_pitch,
              local + config.transposed_values() + panel * D * panel_pitch + lane, D);
#pragma unroll
          for (int r = 0; r < rows; ++r)
#pragma unroll
            for (int x = 0; x < columns; ++x) gradients[r * score_pitch + x * lanes] = products.value[r][x];
        }
        for (int r = 0; r < rows; ++r) {
          const int row = tile_row + r;
          int limit = row < valid_rows ? valid_keys : 0;
          if (args.causal != 0) limit = smaller(limit, row0 + row + 1 - key0);
          float lse = 0.0F;
          float delta = 0.0F;
          if constexpr (is_softmax<Score>) {
            lse = args.lse[first_row + smaller(row, valid_rows - 1)];
            delta = args.delta[first_row + smaller(row, valid_rows - 1)];
          }
          float* dots = local + config.row_dots() + row * width + lane;
          for (int x = 0; x < width; x += lanes) {
            const bool visible = tile_key + x + lane < limit;
            const float s = weights[r * score_pitch + x];
            const float product = gradients[r * score_pitch + x];
            float value;
            float weight;
            float gradient;
            if constexpr (is_softmax<Score>) {
              value = fast_exp(s - lse);
              weight = multiplier * value;
              gradient = scale * value * (multiplier * product - delta);
            } else {
              value = Score::value(s);
              weight = weight_factor * value;
              gradient = gradient_factor * product * Score::slope(s);
            }
            // Selected, not multiplied: what is masked must not bring its NaN along.
            weights[r * score_pitch + x] = visible ? weight : 0.0F;
            gradients[r * score_pitch + x] = visible ? gradient : 0.0F;
            if (wants_dots) dots[x] += visible ? divided * value * product : 0.0F;
          }
        }
      }
  }

  [[gnu::always_inline]] void clear_key_gradients() const {
    for (int row = sub_group; row < config.padded_keys(); row += config.sub_groups) {
      float* key = local + config.key_gradients() + row * head_pitch + lane;
      float* value = local + config.value_gradients() + row * head_pitch + lane;
#pragma unroll
      for (int c = 0; c < head_pitch; c += lanes) {
        key[c] = 0.0F;
        value[c] = 0.0F;
      }
    }
  }

  /// (2): dV += Pᵀ dO and dK += dSᵀ Q.
  [[gnu::always_inline]] void add_key_gradients(int query_block, int key_block) const {
    add_key_gradients(query_block, key_block, local + config.weights(), local + config.output_gradients(),
                      local + config.value_gradients());
    add_key_gradients(query_block, key_block, local + config.score_gradients(), local + config.queries(),
                      local + config.key_gradients());
  }
  [[gnu::always_inline]] void add_key_gradients(int query_block, int key_block, const float* left, const float* right,
                                                float* sums) const {
    const int valid_rows = queries_in(query_block);
    const int row_tiles = (visible_keys_in(key_block) + rows - 1) / rows;
    for (int tile = sub_group; tile < row_tiles; tile += config.sub_groups) {
      const int key = tile * rows;
      // Queries before the first key of the tile do not see it.
      const int diagonal = key_block * config.key_block + key - query_block * config.query_block;
      const int begin = args.causal != 0 ? larger(0, diagonal / rows * rows) : 0;
      for (int c = 0; c < head_pitch; c += width) {
        RegisterTile<rows, columns> sum;
        float* target = sums + key * head_pitch + c + lane;
#pragma unroll
        for (int r = 0; r < rows; ++r)
#pragma unroll
          for (int x = 0; x < columns; ++x) sum.value[r][x] = target[r * head_pitch + x * lanes];
        accumulate<TileStrides{1, score_pitch, row_pitch, lanes}>(
            sum, left + begin * score_pitch + key, right + begin * row_pitch + c + lane, valid_rows - begin);
#pragma unroll
        for (int r = 0; r < rows; ++r)
#pragma unroll
          for (int x = 0; x < columns; ++x) target[r * head_pitch + x * lanes] = sum.value[r][x];
      }
    }
  }

  [[gnu::always_inline]] void store_key_gradients(int key_block) const {
    const std::int64_t first = static_cast<std::int64_t>(key_block) * config.key_block;
    T* k_gradient = static_cast<T*>(args.k_gradient) + args.k_gradient_strides.at(batch, kv_head) +
                    first * args.k_gradient_strides.row;
    T* v_gradient = static_cast<T*>(args.v_gradient) + args.v_gradient_strides.at(batch, kv_head) +
                    first * args.v_gradient_strides.row;
    const int count = keys_in(key_block);
    const int visible = visible_keys_in(key_block);
    for (int row = sub_group; row < count; row += config.sub_groups) {
      const float* key = local + config.key_gradients() + row * head_pitch + lane;
      const float* value = local + config.value_gradients() + row * head_pitch + lane;
      T* key_target = k_gradient + row * args.k_gradient_strides.row + lane;
      T* value_target = v_gradient + row * args.v_gradient_strides.row + lane;
      const bool seen = row < visible;
      for (int c = 0; c < head_pitch; c += lanes) {
        if (!inside(c)) continue;
        key_target[c] = static_cast<T>(seen ? key[c] : 0.0F);
        value_target[c] = static_cast<T>(seen ? value[c] : 0.0F);
      }
    }
  }

  /// (3): dQ = dS K of this block, added to the sum of the blocks before.
  [[gnu::always_inline]] void add_query_gradients(int head, int query_block, int key_block) const {
    const std::int64_t row0 = static_cast<std::int64_t>(query_block) * config.query_block;
    const int valid_rows = queries_in(query_block);
    const int valid_keys = visible_keys_in(key_block);
    const int row_tiles = (valid_rows + rows - 1) / rows;
    const bool first = key_block == 0 || query_gradient == QueryGradient::partial;
    const bool last = key_block == last_key_block(query_block) && query_gradient != QueryGradient::partial;
    T* out =
        static_cast<T*>(args.q_gradient) + args.q_gradient_strides.at(batch, head) + row0 * args.q_gradient_strides.row;
    float* sums = args.workspace + row_index(head, row0) * args.head_size;
    std::int64_t sums_stride = args.head_size;
    if constexpr (query_gradient == QueryGradient::partial) {
      sums = args.workspace + partials().query_gradient(key_block, row_index(head, row0));
    } else if constexpr (sizeof(T) == sizeof(float)) {
      sums = static_cast<float*>(args.q_gradient) + args.q_gradient_strides.at(batch, head) +
             row0 * args.q_gradient_strides.row;
      sums_stride = args.q_gradient_strides.row;
    }
    for (int c0 = 0; c0 < head_pitch; c0 += width)
      for (int tile = sub_group; tile < row_tiles; tile += config.sub_groups) {
        const int row = tile * rows;
        RegisterTile<rows, columns> sum;
        sum.clear();
        int depth = valid_keys;
        if (args.causal != 0) {
          const int diagonal = static_cast<int>(row0) + row + rows - key_block * config.key_block;
          depth = smaller(depth, larger(diagonal, 0));
        }
        accumulate<TileStrides{score_pitch, 1, row_pitch, lanes}>(
            sum, local + config.score_gradients() + row * score_pitch, local + config.keys() + c0 + lane, depth);
        if constexpr (config.work_items() == 1) {
          // The loops below vectorise when they start from memory; Q has done its part and can make room.
          float* scratch = local + config.queries() + row * row_pitch + c0;
#pragma unroll
          for (int r = 0; r < rows; ++r)
#pragma unroll
            for (int x = 0; x < columns; ++x) scratch[r * row_pitch + x] = sum.value[r][x];
          for (int r = 0; r < rows && row + r < valid_rows; ++r) {
            float* sum_row = sums + (row + r) * sums_stride;
            T* out_row = out + (row + r) * args.q_gradient_strides.row;
            if (c0 + width <= args.head_size)
              store_row<true>(scratch + r * row_pitch, c0, sum_row, out_row, first, last);
            else
              store_row<false>(scratch + r * row_pitch, c0, sum_row, out_row, first, last);
          }
        } else {
#pragma unroll
          for (int r = 0; r < rows; ++r) {
            if (row + r >= valid_rows) continue;
            store_row<false>(sum.value[r], c0, sums + (row + r) * sums_stride + lane,
                             out + (row + r) * args.q_gradient_strides.row + lane, first, last);
          }
        }
      }
  }

  template <bool whole>
  [[gnu::always_inline]] void store_row(const float* values, int c0, float* sum_row, T* out_row, bool first,
                                        bool last) const {
    float total[columns];
#pragma unroll
    for (int x = 0; x < columns; ++x) {
      total[x] = values[x];
      if (!first && (whole || inside(c0 + x * lanes))) total[x] = sum_row[c0 + x * lanes] + total[x];
    }
    if (last) {
#pragma unroll
      for (int x = 0; x < columns; ++x)
        if (whole || inside(c0 + x * lanes)) out_row[c0 + x * lanes] = static_cast<T>(total[x]);
    } else {
#pragma unroll
      for (int x = 0; x < columns; ++x)
        if (whole || inside(c0 + x * lanes)) sum_row[c0 + x * lanes] = total[x];
    }
  }

  [[gnu::always_inline]] void add_row_dots(int head, int query_block, int key_block) const {
    const int row0 = query_block * config.query_block;
    const int valid_rows = queries_in(query_block);
    float* out = args.row_dots + row_index(head, row0);
    if constexpr (query_gradient == QueryGradient::partial)
      out = args.workspace + partials().row_dot(key_block, row_index(head, row0));
    const bool first = key_block == 0 || query_gradient == QueryGradient::partial;
    for (int row = sub_group * lanes + lane; row < valid_rows; row += config.work_items()) {
      float sum = 0.0F;
      for (int x = 0; x < width; ++x) sum += local[config.row_dots() + row * width + x];
      out[row] = first ? sum : out[row] + sum;
    }
  }
};

/// A work-group of groups = (batch, kv_heads, key_blocks): one block of keys, and all queries that see it.
template <class Score, class T, AttentionBackwardConfig config, QueryGradient query_gradient>
[[gnu::always_inline]] inline void own_key_block(const AttentionBackwardArguments& arguments,
                                                 const sycl::nd_item<3>& item, float* local) {
  const int kv_head = static_cast<int>(group_of(item, 1));
  const int key_block = static_cast<int>(group_of(item, 2));
  const int group = arguments.heads / arguments.kv_heads;
  const AttentionBackwardBlocks<Score, T, config, query_gradient, true> blocks(
      arguments, item, local, static_cast<int>(group_of(item, 0)), kv_head);
  if (key_block < blocks.visible_key_blocks())
    blocks.pass_queries(key_block, kv_head * group, (kv_head + 1) * group, 0, blocks.query_blocks());
  else
    blocks.store_zero_key_gradients(key_block);
}

}  // namespace sylvit::kernels
