// Attention, forward:
//
//     s_ij = scale * (q_i . k_j)
//     point-wise    o_i = m N^-alpha  sum_j h(s_ij) v_j
//     softmax       o_i = m  sum_j exp(s_ij - lse_i) v_j,   lse_i = log sum_j exp(s_ij)
//
// over the keys j that query i sees. N is the given divisor, or the number of keys of this sequence; m a factor per
// head.
//
// A work-group owns some queries of one head and walks over the keys in blocks. A block of K and V lies in local
// memory; each sub-group takes its query tiles (lanes x columns queries each) past it, one after the other:
//
//                 query tile                                     channels, in panels of lanes x columns
//                 q q q q q q q q  (lanes)                       c c c c c c c c  (lanes)
//               +-----------------+                            +-----------------+
//      k row -> |  s = K Q^T,     |       weights        w   ->|  o = W V,       |   `rows` queries
//      k row -> |  then w = h(s)  |  ==> [key][query] ==> w  ->|  summed over    |   at a time
//      `rows` keys at a time      |    in local memory       ->|  the block      |
//               +-----------------+                            +-----------------+
//
// In the first product a lane owns queries: so only Q needs transposing, once, K is taken row by row as it is, and the
// maximum and the sum of softmax stay within a lane. In the second product a lane owns channels: so the output leaves
// in its natural layout. Sums over the keys run in the order of the keys: the result does not depend on the tile
// numbers, except that softmax rescales once a key block.
//
// Rows past the end are clamped, not branched around: padding queries repeat the last one and are never stored, padding
// keys repeat the last one and are left out of the second product. Nothing beyond a sequence's length is ever read.
#pragma once

#include <sylvit/float16.hpp>

#include <limits>

#include "kernels/attention_common.hpp"
#include "kernels/description.hpp"
#include "kernels/scores.hpp"
#include "kernels/sycl.hpp"
#include "kernels/tile.hpp"

namespace sylvit::kernels {

struct AttentionForwardConfig {
  int head_size;    ///< the head size d compiled for; d may be smaller at run time, at some cost
  int lanes;        ///< work-items that share a tile: a sub-group, or 1 where `columns` is the vector loop
  int columns;      ///< queries (first product) and channels (second product) a work-item holds
  int rows;         ///< rows of the register tile
  int key_block;    ///< keys in local memory at a time, a multiple of rows
  int query_tiles;  ///< tiles of lanes * columns queries that a sub-group takes past each key block
  int sub_groups;   ///< sub-groups that share the key block
  int resident;     ///< 1: key_block holds all keys, so nothing is kept between key blocks

  static constexpr const char *name = "AttentionForwardConfig", *record = "attention_forward";
  template <class Visit>
  static constexpr void members(const Visit& visit) {
    visit("head_size", &AttentionForwardConfig::head_size);
    visit("lanes", &AttentionForwardConfig::lanes);
    visit("columns", &AttentionForwardConfig::columns);
    visit("rows", &AttentionForwardConfig::rows);
    visit("key_block", &AttentionForwardConfig::key_block);
    visit("query_tiles", &AttentionForwardConfig::query_tiles);
    visit("sub_groups", &AttentionForwardConfig::sub_groups);
    visit("resident", &AttentionForwardConfig::resident);
  }
  template <class Tries>
  static constexpr void search(const Tries& tries) {
    tries("query_tiles", Step::one, 1, 2, 3, 4, 6, 8, 10, 13, 16, 20, 26);
    tries("key_block", Step::rows, 16, 32, 48, 64, 96, 128, 192, 256, 384);
  }
  constexpr int sub_group_size() const { return sub_group_of_lanes(lanes); }
  constexpr int work_items() const { return lanes * sub_groups; }
  constexpr int tile() const { return lanes * columns; }
  constexpr int queries() const { return tile() * query_tiles * sub_groups; }
  /// Query tiles of a sub-group that are kept in local memory.
  constexpr int kept_tiles() const { return resident != 0 ? 1 : query_tiles; }
  /// Channels in local memory: the head size, up to whole lanes.
  constexpr int channels() const { return (head_size + lanes - 1) / lanes * lanes; }
  constexpr int local_floats() const {
    const int keys_and_values = key_block * (head_size + channels());
    const int kept_queries = sub_groups * kept_tiles() * tile();
    const int weights = sub_groups * key_block * tile();
    const int outputs = resident != 0 ? 0 : kept_queries * channels();
    const int softmax_state = 3 * kept_queries;
    return keys_and_values + kept_queries * head_size + outputs + weights + softmax_state;
  }
  constexpr bool valid() const {
    return head_size > 0 && lanes > 0 && columns > 0 && rows > 0 && key_block > 0 && query_tiles > 0 &&
           sub_groups > 0 && key_block % rows == 0 && (resident == 0 || resident == 1);
  }
};

/// Launched over (batch, query heads, ceil(queries / config.queries())) work-groups.
struct AttentionForwardArguments {
  const void* q;
  const void* k;
  const void* v;
  void* o;
  float* lse;                   ///< [batch, heads, queries], natural logarithm; softmax only, may be null
  const std::int32_t* lengths;  ///< keys of each sequence; null: keys
  const float* head_scale;      ///< [heads]; null: 1
  const float* head_alpha;      ///< [heads]; null: alpha
  AttentionStrides q_strides;
  AttentionStrides k_strides;
  AttentionStrides v_strides;
  AttentionStrides o_strides;
  int queries;
  int keys;
  int head_size;
  int heads_per_kv_head;  ///< query heads that share a key head
  int causal;             ///< query i sees keys j <= i only
  float scale;
  float alpha;
  float divisor;  ///< 0: the number of keys of the sequence
};

/// Everything is forced inline: a call, or this object left in memory, would hide from the compiler that all lanes hold
/// the same pointers and bounds, and it would then mask or gather every access.
template <class Score, class T, AttentionForwardConfig config>
struct AttentionForward {
  using Arguments = AttentionForwardArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    AttentionForward group(arguments, item, local);
    group.walk(item);
  }

 private:
  static constexpr int lanes = config.lanes;
  static constexpr int columns = config.columns;
  static constexpr int rows = config.rows;
  static constexpr int tile = config.tile();
  static constexpr int depth = config.head_size;
  static constexpr int channels = config.channels();
  static constexpr int key_block = config.key_block;
  static constexpr bool resident = config.resident != 0;
  static constexpr int kept_queries = tile * config.kept_tiles();  // of a sub-group
  static constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
  static constexpr int whole_panels = channels / tile;
  static constexpr int rest_columns = channels % tile / lanes;  // of the last, narrower panel

  [[gnu::always_inline]] AttentionForward(const Arguments& arguments, const sycl::nd_item<3>& item, float* local)
      : args(arguments) {
    const std::int64_t batch = group_of(item, 0);
    head = group_of(item, 1);
    const std::int64_t key_head = head / args.heads_per_kv_head;
    q = static_cast<const T*>(args.q) + batch * args.q_strides.batch + head * args.q_strides.head;
    k = static_cast<const T*>(args.k) + batch * args.k_strides.batch + key_head * args.k_strides.head;
    v = static_cast<const T*>(args.v) + batch * args.v_strides.batch + key_head * args.v_strides.head;
    o = static_cast<T*>(args.o) + batch * args.o_strides.batch + head * args.o_strides.head;
    lse = args.lse + (batch * static_cast<std::int64_t>(item.get_group_range(1)) + head) * args.queries;
    keys = keys_of(args.lengths, batch, args.keys);
    first_query = static_cast<int>(group_of(item, 2)) * config.queries();

    const int id = lane_of(item);
    sub_group = config.sub_groups == 1 ? 0 : id / lanes;
    lane = config.sub_groups == 1 ? id : id % lanes;

    float* next = local;
    const auto take = [&next](int count) {
      float* here = next;
      next += count;
      return here;
    };
    key_rows = take(key_block * depth);
    value_panels = take(key_block * channels);
    query_columns = take(config.sub_groups * kept_queries * depth) + sub_group * kept_queries * depth;
    outputs = next;
    if constexpr (!resident)
      outputs = take(config.sub_groups * kept_queries * channels) + sub_group * kept_queries * channels;
    weights = take(config.sub_groups * key_block * tile) + sub_group * key_block * tile;
    maximum = take(config.sub_groups * kept_queries) + sub_group * kept_queries;
    sum = take(config.sub_groups * kept_queries) + sub_group * kept_queries;
    rescale = take(config.sub_groups * kept_queries) + sub_group * kept_queries;
  }

  /// One query tile at one key block.
  struct Block {
    int turn;
    int query;      ///< first of the tile
    int first_key;  ///< first of the block
    int count;      ///< keys
    bool last;      ///< no more keys for this tile
  };

  [[gnu::always_inline]] void walk(const sycl::nd_item<3>& item) {
    const int past_last_query = smaller(first_query + config.queries(), args.queries);
    const int visible = args.causal != 0 ? smaller(keys, past_last_query) : keys;
    const int queries_per_turn = tile * config.sub_groups;
    const int turns = (past_last_query - first_query + queries_per_turn - 1) / queries_per_turn;

    if constexpr (!resident) {
      for (int turn = 0; turn < turns; ++turn) transpose_queries(turn);
    }

    // Runs at least once, so that queries without any key get their zeros.
    int first_key = 0;
    do {
      stage(key_rows, value_panels, first_key, smaller(key_block, visible - first_key));
      barrier(item);
      for (int turn = 0; turn < turns; ++turn) {
        // The same for all sub-groups, so that they meet at the barriers; one without queries works on clamped ones.
        const int past_turn = first_query + (turn + 1) * queries_per_turn;
        const int turn_keys = args.causal != 0 ? smaller(visible, past_turn) : visible;
        const bool active = first_key == 0 || first_key < turn_keys;
        const Block block{turn, query_of(turn), first_key, smaller(key_block, turn_keys - first_key),
                          first_key + key_block >= turn_keys};
        if constexpr (resident) transpose_queries(turn);
        if (active) weigh(block);
        barrier(item);
        if (active) mix(block);
        barrier(item);
      }
      first_key += key_block;
    } while (first_key < visible);
  }

  static int smaller(int a, int b) { return a < b ? a : b; }

  static int between(int low, int x, int high) { return x < low ? low : smaller(x, high); }

  /// Where a turn's tile keeps its state.
  static int slot_of(int turn) { return resident ? 0 : turn * tile; }

  /// First query of this sub-group's tile in a turn.
  int query_of(int turn) const { return first_query + (turn * config.sub_groups + sub_group) * tile; }

  /// [channel][query of the tile], times the scale. Each lane writes what it alone will read.
  [[gnu::always_inline]] void transpose_queries(int turn) {
    const float scale = is_softmax<Score> ? args.scale * log2_of_e : args.scale;
    float* to = query_columns + slot_of(turn) * depth + lane;
#pragma unroll
    for (int column = 0; column < columns; ++column) {
      const int query = smaller(query_of(turn) + column * lanes + lane, args.queries - 1);
      const T* from = q + query * args.q_strides.row;
      for (int c = 0; c < args.head_size; ++c) to[c * tile + column * lanes] = scale * static_cast<float>(from[c]);
      for (int c = args.head_size; c < depth; ++c) to[c * tile + column * lanes] = 0.0F;
    }
  }

  /// Keys as rows, values in panels: [panel][key][channel of the panel].
  [[gnu::always_inline]] void stage(float* key_to, float* value_to, int first_key, int count) {
    const int padded = (count + rows - 1) / rows * rows;
    for (int j = sub_group; j < padded; j += config.sub_groups) {
      const int row = first_key + smaller(j, count - 1);
      const T* key = k + row * args.k_strides.row;
      const T* value = v + row * args.v_strides.row;
      if (args.head_size == channels) {
#pragma unroll
        for (int c = 0; c < channels; c += lanes) {
          key_to[j * depth + c + lane] = static_cast<float>(key[c + lane]);
          value_to[panel_offset(c) + j * panel_width(c) + c % tile + lane] = static_cast<float>(value[c + lane]);
        }
      } else {
#pragma unroll
        for (int c = 0; c < channels; c += lanes) {
          const bool inside = c + lane < args.head_size;
          if (c + lane < depth) key_to[j * depth + c + lane] = inside ? static_cast<float>(key[c + lane]) : 0.0F;
          value_to[panel_offset(c) + j * panel_width(c) + c % tile + lane] =
              inside ? static_cast<float>(value[c + lane]) : 0.0F;
        }
      }
    }
  }

  static constexpr int panel_offset(int channel) { return channel / tile * tile * key_block; }
  static constexpr int panel_width(int channel) { return channel / tile < whole_panels ? tile : rest_columns * lanes; }

  /// A cheap score is taken right in the registers; others in a pass of their own, where they are compiled once and not
  /// rows x columns times.
  [[gnu::always_inline]] static float value_if_cheap(float s) {
    if constexpr (is_cheap<Score>) {
      return Score::value(s);
    } else {
      return s;
    }
  }

  /// First product: the weights of one query tile for the block's keys.
  [[gnu::always_inline]] void weigh(const Block& block) {
    const int count = block.count;
    const float* columns_of_q = query_columns + slot_of(block.turn) * depth + lane;
    float* to = weights + lane;
    float largest[columns];
    if constexpr (is_softmax<Score>) {
#pragma unroll
      for (int column = 0; column < columns; ++column) largest[column] = minus_infinity;
    }
    for (int j = 0; j < count; j += rows) {
      RegisterTile<rows, columns> scores;
      scores.clear();
      accumulate<TileStrides{depth, 1, tile, lanes}>(scores, key_rows + j * depth, columns_of_q, depth);
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        for_columns<lanes, columns>([&](int column) __attribute__((always_inline)) {
          const float s = scores.value[r][column];
          if constexpr (is_softmax<Score>) largest[column] = s > largest[column] ? s : largest[column];
          to[(j + r) * tile + column * lanes] = value_if_cheap(s);
        });
      }
    }
    if constexpr (!is_softmax<Score> && !is_cheap<Score>) {
      for (int j = 0; j < count; ++j) {
        for_columns<lanes, columns>([&](int column) __attribute__((always_inline)) {
          float& weight = to[j * tile + column * lanes];
          weight = Score::value(weight);
        });
      }
    }
    const bool diagonal = args.causal != 0 && block.first_key + count > block.query + 1;
    if (diagonal) hide_future(block);
    if constexpr (is_softmax<Score>) {
      if (diagonal) {
#pragma unroll
        for (int column = 0; column < columns; ++column) {
          largest[column] = minus_infinity;
          for (int j = 0; j < count; ++j) {
            const float s = to[j * tile + column * lanes];
            largest[column] = s > largest[column] ? s : largest[column];
          }
        }
      }
      exponentiate(block, largest);
    }
  }

  /// Causal: what lies beyond the query weighs nothing.
  [[gnu::always_inline]] void hide_future(const Block& block) {
    const int first_hidden = block.query + 1 - block.first_key;
    for (int j = first_hidden < 0 ? 0 : first_hidden; j < block.count; ++j) {
#pragma unroll
      for (int column = 0; column < columns; ++column) {
        float& weight = weights[j * tile + column * lanes + lane];
        const bool seen = block.first_key + j <= block.query + column * lanes + lane;
        weight = seen ? weight : (is_softmax<Score> ? minus_infinity : 0.0F);
      }
    }
  }

  /// Scores (of base 2) to weights relative to the largest score so far.
  [[gnu::always_inline]] void exponentiate(const Block& block, const float (&largest)[columns]) {
    float shift[columns];
    float total[columns];
#pragma unroll
    for (int column = 0; column < columns; ++column) {
      const int slot = slot_of(block.turn) + column * lanes + lane;
      const float before = block.first_key == 0 ? minus_infinity : maximum[slot];
      shift[column] = largest[column] > before ? largest[column] : before;
      const float factor = block.first_key == 0 ? 0.0F : fast_exp2(before - shift[column]);
      total[column] = block.first_key == 0 ? 0.0F : sum[slot] * factor;
      maximum[slot] = shift[column];
      rescale[slot] = factor;
    }
    float* to = weights + lane;
    for (int j = 0; j < block.count; ++j) {
      for_columns<lanes, columns>([&](int column) __attribute__((always_inline)) {
        const float weight = fast_exp2(to[j * tile + column * lanes] - shift[column]);
        total[column] += weight;
        to[j * tile + column * lanes] = weight;
      });
    }
#pragma unroll
    for (int column = 0; column < columns; ++column) sum[slot_of(block.turn) + column * lanes + lane] = total[column];
  }

  /// Second product: adds the block's keys to the outputs of one query tile; stores them after the last block.
  [[gnu::always_inline]] void mix(const Block& block) {
    if constexpr (is_softmax<Score>) {
      if (block.last && args.lse != nullptr) {
#pragma unroll
        for (int column = 0; column < columns; ++column) {
          const int slot = slot_of(block.turn) + column * lanes + lane;
          const int row = block.query + column * lanes + lane;
          if (row < args.queries) lse[row] = (maximum[slot] + sycl::log2(sum[slot])) * ln_of_2;
        }
      }
    }
    for (int panel = 0; panel < whole_panels; ++panel) mix_panel<columns>(block, panel);
    if constexpr (rest_columns > 0) mix_panel<rest_columns>(block, whole_panels);
  }

  template <int width>
  [[gnu::always_inline]] void mix_panel(const Block& block, int panel) {
    constexpr int rest_rows = tile % rows;
    for (int row = 0; row < tile - rest_rows; row += rows) {
      if (block.query + row < args.queries) mix_rows<rows, width>(block, panel, row);
    }
    if constexpr (rest_rows > 0) {
      constexpr int row = tile - rest_rows;
      if (block.query + row < args.queries) mix_rows<rest_rows, width>(block, panel, row);
    }
  }

  template <int height, int width>
  [[gnu::always_inline]] void mix_rows(const Block& block, int panel, int row) {
    const int channel = panel * tile + lane;
    const int slot = slot_of(block.turn) + row;
    float* kept = outputs + slot * channels + channel;
    RegisterTile<height, width> result;
    if (resident || block.first_key == 0) {
      result.clear();
    } else {
#pragma unroll
      for (int r = 0; r < height; ++r) {
        const float factor = is_softmax<Score> ? rescale[slot + r] : 1.0F;
#pragma unroll
        for (int column = 0; column < width; ++column)
          result.value[r][column] = kept[r * channels + column * lanes] * factor;
      }
    }
    const float* value = value_panels + panel * tile * key_block + lane;
    constexpr TileStrides strides{1, tile, width * lanes, lanes};
    if (args.causal == 0) {
      accumulate<strides>(result, weights + row, value, block.count);
    } else {
      const int first_row_sees = block.query + row + 1 - block.first_key;
      const int all_rows_see = between(0, first_row_sees, block.count);
      const int last_row_sees = between(0, first_row_sees + height - 1, block.count);
      accumulate<strides>(result, weights + row, value, all_rows_see);
      // The diagonal, row by row: a hidden key's weight is 0, but 0 times a NaN in its value would be seen.
      for (int j = all_rows_see; j < last_row_sees; ++j) {
#pragma unroll
        for (int r = 1; r < height; ++r) {
          if (j < first_row_sees + r) {
#pragma unroll
            for (int column = 0; column < width; ++column) {
              result.value[r][column] =
                  sycl::fma(weights[j * tile + row + r], value[(j * width + column) * lanes], result.value[r][column]);
            }
          }
        }
      }
    }
    if (!resident && !block.last) {
#pragma unroll
      for (int r = 0; r < height; ++r) {
#pragma unroll
        for (int column = 0; column < width; ++column) kept[r * channels + column * lanes] = result.value[r][column];
      }
      return;
    }
    const float factor = head_factor();
#pragma unroll
    for (int r = 0; r < height; ++r) {
      const int query = block.query + row + r;
      if (query < args.queries) {
        const float total = is_softmax<Score> ? sum[slot + r] : 1.0F;
        const float row_factor = is_softmax<Score> ? (total == 0.0F ? 0.0F : factor / total) : factor;
        T* to = o + query * args.o_strides.row;
#pragma unroll
        for (int column = 0; column < width; ++column) {
          const int c = channel + column * lanes;
          if (args.head_size == channels) {
            to[c] = static_cast<T>(result.value[r][column] * row_factor);
          } else if (c < args.head_size) {
            to[c] = static_cast<T>(result.value[r][column] * row_factor);
          }
        }
      }
    }
  }

  /// m N^-alpha.
  float head_factor() const {
    const float multiplier = args.head_scale != nullptr ? args.head_scale[head] : 1.0F;
    if constexpr (is_softmax<Score>) return multiplier;
    const float alpha = args.head_alpha != nullptr ? args.head_alpha[head] : args.alpha;
    const float divisor = args.divisor > 0.0F ? args.divisor : static_cast<float>(keys);
    if (keys == 0) return 0.0F;
    return multiplier * (alpha == 1.0F ? 1.0F / divisor : sycl::pow(divisor, -alpha));
  }

  const Arguments& args;
  std::int64_t head;
  const T* q;
  const T* k;
  const T* v;
  T* o;
  float* lse;
  int keys;
  int first_query;
  int sub_group;
  int lane;
  float* key_rows;
  float* value_panels;
  float* query_columns;
  float* outputs;
  float* weights;
  float* maximum;
  float* sum;
  float* rescale;
};

struct AttentionForwardKernel : Description<AttentionForwardConfig, AttentionForwardArguments, Parameters::score_type> {
  static constexpr const char *header = "attention_forward.hpp", *functor = "AttentionForward",
                              *arguments = "AttentionForwardArguments";
  static constexpr int local_floats(const AttentionForwardConfig& config) { return config.local_floats(); }
};

}  // namespace sylvit::kernels
