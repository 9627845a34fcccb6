// Attention with the score `identity`, in time and memory linear in L. Without a function between the two products,
//
//     O = f (Q K^T) V = f Q M,     M = K^T V  (d x d),     f = m N^-alpha scale of the head
//
// and backward, with the sums running over the query heads h that share a key head:
//
//     dM = sum_h f_h Q_h^T dO_h        dQ = f dO M^T        dV = K dM        dK = V dM^T
//     row dots, for the gradients of m and alpha:  N^-alpha scale (Q M)_i . dO_i = N^-alpha scale Q_i . (dO M^T)_i
//
// So there are two kernels. Neither knows a causal mask, which would forbid all this.
//
// AttentionLinearSum: A^T B, summed over the rows of a sequence. A work-group owns a stripe of the matrix and walks
// over the rows in blocks, which lie in local memory as floats; the sums stay there between the blocks:
//
//                    B: channels, in panels of lanes x columns
//                   +-----------+-----------+
//        row_block  |  panel 0  |  panel 1  |
//                   +-----------+-----------+
//     A: stripe       |           |
//     +--------+      v           v
//     |        |    +-----------+-----------+
//     | `rows` |--> | tile      | tile      |   stripe of M, summed block after block
//     | channels    +-----------+-----------+
//     | at a   |--> | tile      | tile      |
//     | time   |    +-----------+-----------+
//     +--------+
//
// AttentionLinearProduct: factor * A M. A work-group owns row_block rows of A in local memory and takes `rows` of them
// at a time past the panels of M, which are read where they are:
//
//                      M: panel 0     panel 1
//                    +-----------+-----------+
//      `rows` of A ->| tile      | tile      |-> out
//                    +-----------+-----------+
//
// Matrices are stored in panels too: [panel][padded row][lanes * columns], with zeros beyond the head size, so that
// every stride is a compile-time constant. Sums over rows run in the order of the rows and heads, whatever the tile
// numbers are. Rows beyond a sequence's length are never read, and get zeros where they are written.
#pragma once

#include <sylvit/float16.hpp>

#include "kernels/attention_common.hpp"
#include "kernels/description.hpp"
#include "kernels/sycl.hpp"
#include "kernels/tile.hpp"

namespace sylvit::kernels {

struct AttentionLinearConfig {
  int head_size;   ///< the head size d compiled for; d may be smaller at run time
  int lanes;       ///< work-items that share a tile
  int columns;     ///< columns of the tile that each of them holds
  int rows;        ///< rows of the tile
  int row_block;   ///< rows in local memory at a time, a multiple of rows
  int stripe;      ///< rows of the matrix that a work-group of AttentionLinearSum owns, a multiple of lanes
  int sub_groups;  ///< sub-groups of a work-group

  static constexpr const char *name = "AttentionLinearConfig", *record = "attention_linear";
  template <class Visit>
  static constexpr void members(const Visit& visit) {
    visit("head_size", &AttentionLinearConfig::head_size);
    visit("lanes", &AttentionLinearConfig::lanes);
    visit("columns", &AttentionLinearConfig::columns);
    visit("rows", &AttentionLinearConfig::rows);
    visit("row_block", &AttentionLinearConfig::row_block);
    visit("stripe", &AttentionLinearConfig::stripe);
    visit("sub_groups", &AttentionLinearConfig::sub_groups);
  }
  constexpr int sub_group_size() const { return sub_group_of_lanes(lanes); }
  constexpr int work_items() const { return lanes * sub_groups; }
  constexpr int tile() const { return lanes * columns; }
  constexpr int panels() const { return (head_size + tile() - 1) / tile(); }
  /// Rows and columns of a stored matrix.
  constexpr int padded() const { return panels() * tile(); }
  constexpr int stripes() const { return (padded() + stripe - 1) / stripe; }
  constexpr int matrix_floats() const { return padded() * padded(); }
  constexpr int local_floats_of_sum() const { return row_block * (stripe + padded()) + stripe * padded(); }
  constexpr int local_floats_of_product() const { return row_block * (padded() + lanes); }
  constexpr int local_floats() const {
    return local_floats_of_sum() > local_floats_of_product() ? local_floats_of_sum() : local_floats_of_product();
  }
  constexpr bool valid() const {
    return head_size > 0 && lanes > 0 && columns > 0 && rows > 0 && row_block > 0 && stripe > 0 && sub_groups > 0 &&
           row_block % rows == 0 && stripe % lanes == 0;
  }
};

/// What a head's result is multiplied with: m N^-alpha scale. alpha = 0 and scale = 1 without pointers: 1.
struct AttentionLinearFactor {
  const float* head_scale;  ///< m, [heads]; null: 1
  const float* head_alpha;  ///< [heads]; null: alpha
  float scale;
  float alpha;
  float divisor;  ///< 0: the number of keys of the sequence

  [[gnu::always_inline]] float without_head_scale(std::int64_t head, int keys) const {
    if (keys == 0) return 0.0F;
    const float exponent = head_alpha != nullptr ? head_alpha[head] : alpha;
    const float n = divisor > 0.0F ? divisor : static_cast<float>(keys);
    return scale * (exponent == 1.0F ? 1.0F / n : sycl::pow(n, -exponent));
  }
  [[gnu::always_inline]] float of(std::int64_t head, int keys) const {
    return without_head_scale(head, keys) * (head_scale != nullptr ? head_scale[head] : 1.0F);
  }
};

/// Which rows of a tensor count: those of the keys end at the sequence's length, those of the queries only where there
/// is no key at all.
struct AttentionLinearRows {
  const std::int32_t* lengths;  ///< keys of each sequence; null: keys
  int keys;
  int length;  ///< rows of the tensor
  int are_keys;

  [[gnu::always_inline]] int keys_of(std::int64_t batch) const { return kernels::keys_of(lengths, batch, keys); }
  [[gnu::always_inline]] int present(std::int64_t batch) const {
    const int count = keys_of(batch);
    return are_keys != 0 ? count : (count == 0 ? 0 : length);
  }
};

/// `width` channels of a row to local memory, as floats, in panels that lie panel_distance apart; zeros beyond
/// `present`.
template <int lanes, int width, int panel, int panel_distance, class T>
[[gnu::always_inline]] inline void stage_channels(float* to, const T* from, int lane, int present, float factor) {
  if (present >= width) {
#pragma unroll
    for (int c = 0; c < width; c += lanes)
      to[c / panel * panel_distance + c % panel + lane] = factor * static_cast<float>(from[c + lane]);
  } else {
#pragma unroll
    for (int c = 0; c < width; c += lanes)
      to[c / panel * panel_distance + c % panel + lane] =
          c + lane < present ? factor * static_cast<float>(from[c + lane]) : 0.0F;
  }
}

/// A single work-item needs no barrier, and AdaptiveCpp's CPU compiler has got loops around one wrong.
template <AttentionLinearConfig config>
[[gnu::always_inline]] inline void meet(const sycl::nd_item<3>& item) {
  if constexpr (config.work_items() > 1) barrier(item);
}

/// Launched over (batch, matrices of a sequence, config.stripes()) work-groups.
struct AttentionLinearSumArguments {
  const void* left;   ///< A, [batch, heads, rows.length, head_size], times the factor
  const void* right;  ///< B, of the same shape
  float* sum;         ///< A^T B, [batch, matrices, matrix_floats]
  float* transposed;  ///< its transpose, or null
  AttentionStrides left_strides;
  AttentionStrides right_strides;
  AttentionLinearFactor factor;
  AttentionLinearRows rows;
  int heads_per_matrix;
  int head_size;
};

template <class T, AttentionLinearConfig config>
struct AttentionLinearSum {
  using Arguments = AttentionLinearSumArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    AttentionLinearSum group(arguments, item, local);
    group.walk(item);
  }

 private:
  static constexpr int lanes = config.lanes;
  static constexpr int columns = config.columns;
  static constexpr int rows = config.rows;
  static constexpr int tile = config.tile();
  static constexpr int padded = config.padded();
  static constexpr int row_block = config.row_block;
  static constexpr int stripe = config.stripe;

  [[gnu::always_inline]] AttentionLinearSum(const Arguments& arguments, const sycl::nd_item<3>& item, float* local)
      : args(arguments) {
    batch = group_of(item, 0);
    matrix = group_of(item, 1);
    first_channel = static_cast<int>(group_of(item, 2)) * stripe;
    const std::int64_t matrices = static_cast<std::int64_t>(item.get_group_range(1));
    const std::int64_t offset = (batch * matrices + matrix) * config.matrix_floats();
    sum = args.sum + offset;
    transposed = args.transposed == nullptr ? nullptr : args.transposed + offset;
    const int id = lane_of(item);
    sub_group = config.sub_groups == 1 ? 0 : id / lanes;
    lane = config.sub_groups == 1 ? id : id % lanes;
    left_rows = local;
    right_panels = left_rows + row_block * stripe;
    sums = right_panels + row_block * padded;
  }

  /// One block of rows of one head.
  struct Block {
    int count;
    bool fresh;  ///< nothing summed yet
    bool last;   ///< nothing to come
  };

  [[gnu::always_inline]] void walk(const sycl::nd_item<3>& item) {
    const int present = args.rows.present(batch);
    const int keys = args.rows.keys_of(batch);
    // One loop: a loop over the heads around a do-while over the rows, with the barriers in it, gave wrong sums under
    // AdaptiveCpp's CPU compiler (several work-items). At least one block a head, so that a sequence without any row
    // gets its zeros.
    const int blocks_of_head = present == 0 ? 1 : (present + row_block - 1) / row_block;
    const int blocks = blocks_of_head * args.heads_per_matrix;
    for (int n = 0; n < blocks; ++n) {
      const std::int64_t head = matrix * args.heads_per_matrix + n / blocks_of_head;
      const int first = n % blocks_of_head * row_block;
      const int rest = present - first;
      const Block block{rest < row_block ? rest : row_block, n == 0, n == blocks - 1};
      stage(head, first, block.count, args.factor.of(head, keys));
      meet<config>(item);
      add(block);
      meet<config>(item);
    }
  }

  [[gnu::always_inline]] void stage(std::int64_t head, int first, int count, float factor) {
    const T* left = static_cast<const T*>(args.left) + args.left_strides.at(batch, head) + first_channel;
    const T* right = static_cast<const T*>(args.right) + args.right_strides.at(batch, head);
    for (int j = sub_group; j < count; j += config.sub_groups) {
      stage_channels<lanes, stripe, stripe, stripe>(left_rows + j * stripe, left + (first + j) * args.left_strides.row,
                                                    lane, args.head_size - first_channel, factor);
      stage_channels<lanes, padded, tile, tile * row_block>(
          right_panels + j * tile, right + (first + j) * args.right_strides.row, lane, args.head_size, 1.0F);
    }
  }

  /// The tiles of this sub-group, panel after panel.
  [[gnu::always_inline]] void add(const Block& block) {
    constexpr int whole = stripe / rows;
    constexpr int rest = stripe % rows;
    for (int t = sub_group; t < whole * config.panels(); t += config.sub_groups)
      add_tile<rows>(block, t % whole * rows, t / whole);
    if constexpr (rest > 0)
      for (int panel = sub_group; panel < config.panels(); panel += config.sub_groups)
        add_tile<rest>(block, whole * rows, panel);
  }

  template <int height>
  [[gnu::always_inline]] void add_tile(const Block& block, int row, int panel) {
    float* kept = sums + row * padded + panel * tile + lane;
    RegisterTile<height, columns> result;
    if (block.fresh) {
      result.clear();
    } else {
#pragma unroll
      for (int r = 0; r < height; ++r) {
#pragma unroll
        for (int v = 0; v < columns; ++v) result.value[r][v] = kept[r * padded + v * lanes];
      }
    }
    accumulate<TileStrides{1, stripe, tile, lanes}>(result, left_rows + row,
                                                    right_panels + panel * tile * row_block + lane, block.count);
    if (block.last) return store(result, first_channel + row, panel);
#pragma unroll
    for (int r = 0; r < height; ++r) {
#pragma unroll
      for (int v = 0; v < columns; ++v) kept[r * padded + v * lanes] = result.value[r][v];
    }
  }

  template <int height>
  [[gnu::always_inline]] void store(const RegisterTile<height, columns>& result, int row, int panel) {
    float* to = sum + (panel * padded + row) * tile + lane;
#pragma unroll
    for (int r = 0; r < height; ++r) {
      if (row + r < padded) {
#pragma unroll
        for (int v = 0; v < columns; ++v) to[r * tile + v * lanes] = result.value[r][v];
      }
    }
    if (transposed == nullptr) return;
#pragma unroll
    for (int r = 0; r < height; ++r) {
      if (row + r < padded) {
        float* column = transposed + ((row + r) / tile * padded + panel * tile + lane) * tile + (row + r) % tile;
#pragma unroll
        for (int v = 0; v < columns; ++v) column[v * lanes * tile] = result.value[r][v];
      }
    }
  }

  const Arguments& args;
  std::int64_t batch;
  std::int64_t matrix;
  int first_channel;
  float* sum;
  float* transposed;
  int sub_group;
  int lane;
  float* left_rows;
  float* right_panels;
  float* sums;
};

struct AttentionLinearSumKernel : Description<AttentionLinearConfig, AttentionLinearSumArguments, Parameters::type> {
  static constexpr const char *header = "attention_linear.hpp", *functor = "AttentionLinearSum",
                              *arguments = "AttentionLinearSumArguments";
  static constexpr int local_floats(const AttentionLinearConfig& config) { return config.local_floats_of_sum(); }
};

/// Launched over (batch, heads, ceil(rows.length / config.row_block)) work-groups.
struct AttentionLinearProductArguments {
  const void* in;       ///< A, [batch, heads, rows.length, head_size]
  const float* matrix;  ///< M, [batch, heads / heads_per_matrix, matrix_floats]
  void* out;            ///< factor * A M, of A's shape
  const void* other;    ///< for the row dots: a tensor of A's shape
  float* row_dots;      ///< other_i . (A M)_i times the factor without m, [batch, heads, rows.length]; or null
  AttentionStrides in_strides;
  AttentionStrides out_strides;
  AttentionStrides other_strides;
  AttentionLinearFactor factor;
  AttentionLinearRows rows;
  int heads_per_matrix;
  int head_size;
};

template <class T, AttentionLinearConfig config>
struct AttentionLinearProduct {
  using Arguments = AttentionLinearProductArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    AttentionLinearProduct group(arguments, item, local);
    group.stage();
    meet<config>(item);
    group.multiply();
    if (arguments.row_dots == nullptr) return;
    meet<config>(item);
    group.store_row_dots(lane_of(item));
  }

 private:
  static constexpr int lanes = config.lanes;
  static constexpr int columns = config.columns;
  static constexpr int rows = config.rows;
  static constexpr int tile = config.tile();
  static constexpr int padded = config.padded();
  static constexpr int row_block = config.row_block;

  [[gnu::always_inline]] AttentionLinearProduct(const Arguments& arguments, const sycl::nd_item<3>& item, float* local)
      : args(arguments) {
    const std::int64_t batch = group_of(item, 0);
    const std::int64_t heads = static_cast<std::int64_t>(item.get_group_range(1));
    head = group_of(item, 1);
    first = static_cast<int>(group_of(item, 2)) * row_block;
    const int rest = args.rows.length - first;
    count = rest < row_block ? rest : row_block;
    keys = args.rows.keys_of(batch);
    const int present = args.rows.present(batch) - first;
    computed = present < 0 ? 0 : (present < count ? present : count);
    in = static_cast<const T*>(args.in) + args.in_strides.at(batch, head) + first * args.in_strides.row;
    out = static_cast<T*>(args.out) + args.out_strides.at(batch, head) + first * args.out_strides.row;
    other = static_cast<const T*>(args.other) + args.other_strides.at(batch, head) + first * args.other_strides.row;
    row_dots = args.row_dots == nullptr ? nullptr : args.row_dots + (batch * heads + head) * args.rows.length + first;
    matrix = args.matrix +
             (batch * heads + head) / args.heads_per_matrix * static_cast<std::int64_t>(config.matrix_floats());
    const int id = lane_of(item);
    sub_group = config.sub_groups == 1 ? 0 : id / lanes;
    lane = config.sub_groups == 1 ? id : id % lanes;
    in_rows = local;
    dots = in_rows + row_block * padded;
  }

  /// The rows of A, and the last one again until the tile is full.
  [[gnu::always_inline]] void stage() {
    const int filled = (computed + rows - 1) / rows * rows;
    for (int j = sub_group; j < filled; j += config.sub_groups) {
      const int row = j < computed ? j : computed - 1;
      stage_channels<lanes, padded, padded, padded>(in_rows + j * padded, in + row * args.in_strides.row, lane,
                                                    args.head_size, 1.0F);
    }
  }

  [[gnu::always_inline]] void multiply() {
    const float factor = args.factor.of(head, keys);
    const bool whole = args.head_size == padded;
    for (int row = sub_group * rows; row < count; row += config.sub_groups * rows) {
      for (int panel = 0; panel < config.panels(); ++panel) {
        RegisterTile<rows, columns> result;
        result.clear();
        accumulate<TileStrides{padded, 1, tile, lanes}>(result, in_rows + row * padded,
                                                        matrix + panel * padded * tile + lane,
                                                        row < computed ? config.head_size : 0);
        if (row_dots != nullptr) add_to_dots(result, row, panel);
#pragma unroll
        for (int r = 0; r < rows; ++r) {
          if (row + r < count) {
            const bool zero = row + r >= computed;
            T* to = out + (row + r) * args.out_strides.row;
#pragma unroll
            for (int v = 0; v < columns; ++v) {
              const int c = panel * tile + v * lanes + lane;
              const float value = zero ? 0.0F : factor * result.value[r][v];
              if (whole) {
                to[c] = static_cast<T>(value);
              } else if (c < args.head_size) {
                to[c] = static_cast<T>(value);
              }
            }
          }
        }
      }
    }
  }

  /// Each lane adds up its own channels.
  [[gnu::always_inline]] void add_to_dots(const RegisterTile<rows, columns>& result, int row, int panel) {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      float dot = panel == 0 ? 0.0F : dots[(row + r) * lanes + lane];
      if (row + r < computed) {
        const T* from = other + (row + r) * args.other_strides.row;
#pragma unroll
        for (int v = 0; v < columns; ++v) {
          const int c = panel * tile + v * lanes + lane;
          if (c < args.head_size) dot = sycl::fma(static_cast<float>(from[c]), result.value[r][v], dot);
        }
      }
      dots[(row + r) * lanes + lane] = dot;
    }
  }

  /// … and a work-item the lanes of a row.
  [[gnu::always_inline]] void store_row_dots(int work_item) {
    const float factor = args.factor.without_head_scale(head, keys);
    for (int row = work_item; row < count; row += config.work_items()) {
      float total = 0.0F;
      for (int l = 0; l < lanes; ++l) total += dots[row * lanes + l];
      row_dots[row] = factor * total;
    }
  }

  const Arguments& args;
  std::int64_t head;
  int first;
  int count;     ///< rows of this work-group
  int computed;  ///< of which those before the sequence's end
  int keys;
  const T* in;
  T* out;
  const T* other;
  float* row_dots;
  const float* matrix;
  int sub_group;
  int lane;
  float* in_rows;
  float* dots;
};

struct AttentionLinearProductKernel
    : Description<AttentionLinearConfig, AttentionLinearProductArguments, Parameters::type> {
  static constexpr const char *header = "attention_linear.hpp", *functor = "AttentionLinearProduct",
                              *arguments = "AttentionLinearProductArguments";
  static constexpr int local_floats(const AttentionLinearConfig& config) { return config.local_floats_of_product(); }
};

}  // namespace sylvit::kernels
