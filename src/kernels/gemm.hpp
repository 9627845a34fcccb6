// The builtin matrix product, row-major, with what follows it in a network:
//
//     C = epilogue(alpha · A B + beta · C)          A [m, k], B [k, n], C [m, n], in a batch if wanted
//
//     none               the product
//     bias               + bias[n]
//     bias_gelu          u = product + bias, kept where asked; gelu(u)
//     bias_residual      + bias[n] + residual[m, n]
//
// GemmPack turns B into panels of `width` columns, f32, zeros after the last column:
//
//            n                         panel 0    panel 1
//        +-------+                    +-------+  +-------+
//      k |  B    |   (or Bᵀ)   ==>    | k     |  | k     |    a row of a panel is `columns` vectors of `lanes`
//        |       |                    |   w   |  |   w   |
//        +-------+                    +-------+  +-------+
//
// Gemm: a work-group owns row_block rows and up to `panels` panels of C. It takes depth_block of k at a time, and
// register tiles (tile.hpp) of `rows` x `width` pass over the panels, which are read where they lie:
//
//                                panel      panel
//                              +-------+  +-------+
//              depth_block     |       |  |       |
//           +-------------+    +-------+  +-------+
//      row  |  A          | -> | tile  |  | tile  |   sums of the work-group in local memory between depth blocks;
//     block |             | -> | tile  |  | tile  |   after the last, a tile goes through the epilogue into C
//           +-------------+    +-------+  +-------+
//
// A's rows are copied to local memory first where that pays (`staged`: work-groups of many sub-groups), and wherever
// they must be converted or turned; otherwise they too are read where they lie.
//
// The sum over k runs in order, whatever the tile numbers: a row of C has the same bits in any batch and configuration.
#pragma once

#include <sylvit/float16.hpp>

#include <type_traits>

#include "kernels/description.hpp"
#include "kernels/scores.hpp"
#include "kernels/sycl.hpp"
#include "kernels/tile.hpp"

namespace sylvit::kernels {

enum class GemmEpilogueKind : int { none, bias, bias_gelu, bias_gelu_tanh, bias_residual };

inline constexpr GemmEpilogueKind all_epilogues[] = {GemmEpilogueKind::none, GemmEpilogueKind::bias,
                                                     GemmEpilogueKind::bias_gelu, GemmEpilogueKind::bias_gelu_tanh,
                                                     GemmEpilogueKind::bias_residual};

constexpr const char* name_of(GemmEpilogueKind kind) {
  constexpr const char* names[] = {"none", "bias", "bias_gelu", "bias_gelu_tanh", "bias_residual"};
  return names[static_cast<int>(kind)];
}

constexpr bool is_gelu(GemmEpilogueKind kind) {
  return kind == GemmEpilogueKind::bias_gelu || kind == GemmEpilogueKind::bias_gelu_tanh;
}

struct GemmConfig {
  int lanes;        ///< work-items that share a register tile
  int columns;      ///< columns of the tile that each of them holds
  int rows;         ///< rows of the tile
  int row_block;    ///< rows of C a work-group owns, a multiple of rows
  int panels;       ///< panels of C a work-group owns at the most
  int depth_block;  ///< k in local memory at a time
  int sub_groups;   ///< sub-groups in a work-group
  int staged;       ///< 1: A goes through local memory even where it could be read in place

  static constexpr const char *name = "GemmConfig", *record = "gemm";
  template <class Visit>
  static constexpr void members(const Visit& visit) {
    visit("lanes", &GemmConfig::lanes);
    visit("columns", &GemmConfig::columns);
    visit("rows", &GemmConfig::rows);
    visit("row_block", &GemmConfig::row_block);
    visit("panels", &GemmConfig::panels);
    visit("depth_block", &GemmConfig::depth_block);
    visit("sub_groups", &GemmConfig::sub_groups);
    visit("staged", &GemmConfig::staged);
  }
  template <class Tries>
  static constexpr void search(const Tries& tries) {
    tries("row_block", Step::rows, 24, 48, 64, 96, 144, 192);
    tries("panels", Step::one, 1, 2, 4, 8, 12, 16, 24);
    tries("depth_block", Step::one, 32, 64, 128, 192, 256, 384, 512);
    tries("staged", Step::one, 0, 1);
  }
  constexpr int sub_group_size() const { return sub_group_of_lanes(lanes); }
  constexpr int width() const { return lanes * columns; }
  constexpr int work_items() const { return lanes * sub_groups; }
  /// Distance of the rows of A in local memory: an odd number of cache lines, so that they spread over the cache sets.
  constexpr int depth_pitch() const { return ((depth_block + 15) / 16 | 1) * 16; }
  /// Distance of two k of a register tile's rows where A is transposed: a whole number of them to a vector of eight.
  constexpr int transposed_pitch() const { return 8 % rows == 0 ? rows : (rows + 7) / 8 * 8; }
  /// A register tile's share of A where A is transposed; a cache line more, so that tiles spread over the cache sets.
  constexpr int transposed_tile_floats() const { return depth_block * transposed_pitch() + 16; }
  constexpr int staged_floats(bool transposed) const {
    return transposed ? row_block / rows * transposed_tile_floats() : row_block * depth_pitch();
  }
  /// Every sub-group has as many tiles as the one that has most.
  constexpr int sum_floats() const {
    return (row_block / rows + sub_groups - 1) / sub_groups * sub_groups * panels * rows * width();
  }
  /// The most that any form of the product asks for.
  constexpr int local_floats() const {
    const int plain = staged_floats(false);
    const int transposed = staged_floats(true);
    return sum_floats() + (plain > transposed ? plain : transposed);
  }
  constexpr bool valid() const {
    return lanes > 0 && columns > 0 && rows > 0 && row_block > 0 && row_block % rows == 0 && panels > 0 &&
           depth_block > 0 && sub_groups > 0 && (staged == 0 || staged == 1);
  }
};

/// Launched over (batch, ceil(total_panels / panels), ceil(k / depth_block)) work-groups of config.lanes.
struct GemmPackArguments {
  const void* b;
  float* packed;               ///< [batch, total_panels, k, width]
  std::int64_t row_stride;     ///< distance of B(k, n) and B(k + 1, n)
  std::int64_t column_stride;  ///< one of the two is 1
  std::int64_t batch_stride;
  int n;
  int k;
  int total_panels;
};

template <class T, GemmConfig config>
struct GemmPack {
  using Arguments = GemmPackArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    const std::int64_t batch = group_of(item, 0);
    const int first_panel = static_cast<int>(group_of(item, 1)) * config.panels;
    const int last_panel = smaller(first_panel + config.panels, args.total_panels);
    // Panels without padding; the one after them may be the last, partial one.
    const int whole_panels = smaller(last_panel, args.n / width);
    const int first = static_cast<int>(group_of(item, 2)) * config.depth_block;
    const int end = smaller(first + config.depth_block, args.k);
    const int lane = lane_of(item);
    const T* from = static_cast<const T*>(args.b) + batch * args.batch_stride;
    float* to = args.packed + batch * args.total_panels * args.k * width + lane;
    if (args.column_stride == 1) {
      // Row by row, a few panels side by side: B is read in long pieces.
      for (int k = first; k < end; ++k)
        for (int panel = first_panel; panel < whole_panels; ++panel) {
          const T* source = from + k * args.row_stride + panel * width + lane;
          float* target = to + (static_cast<std::int64_t>(panel) * args.k + k) * width;
#pragma unroll
          for (int x = 0; x < config.columns; ++x)
            target[x * config.lanes] = static_cast<float>(source[x * config.lanes]);
        }
    } else {
      for (int panel = first_panel; panel < whole_panels; ++panel)
#pragma unroll
        for (int x = 0; x < config.columns; ++x) {
          const T* source = from + (panel * width + x * config.lanes + lane) * args.column_stride;
          float* target = to + static_cast<std::int64_t>(panel) * args.k * width + x * config.lanes;
          for (int k = first; k < end; ++k)
            target[static_cast<std::int64_t>(k) * width] = static_cast<float>(source[k]);
        }
    }
    for (int panel = whole_panels; panel < last_panel; ++panel)
#pragma unroll
      for (int x = 0; x < config.columns; ++x) {
        const int column = panel * width + x * config.lanes + lane;
        const bool inside = column < args.n;
        const T* source = from + (inside ? column : 0) * args.column_stride;
        float* target = to + static_cast<std::int64_t>(panel) * args.k * width + x * config.lanes;
        for (int k = first; k < end; ++k) {
          const auto value = static_cast<float>(source[k * args.row_stride]);
          target[static_cast<std::int64_t>(k) * width] = inside ? value : 0.0F;
        }
      }
  }

 private:
  static constexpr int width = config.width();
  static int smaller(int a, int b) { return a < b ? a : b; }
};

struct GemmPackKernel : Description<GemmConfig, GemmPackArguments, Parameters::type> {
  static constexpr const char *header = "gemm.hpp", *functor = "GemmPack", *arguments = "GemmPackArguments";
  static constexpr int work_items(const GemmConfig& config) { return config.lanes; }
};

/// What happens to the product on its way to C.
struct GemmOutput {
  void* c;
  const float* bias;     ///< [n]
  const void* residual;  ///< [m, n], C's type
  void* pre_activation;  ///< [m, n], C's type: what gelu was taken of; null: not wanted
  std::int64_t c_stride, residual_stride, pre_activation_stride;  ///< distances of rows
  std::int64_t c_batch, residual_batch, pre_activation_batch;
  float alpha;
  float beta;  ///< 0: C is not read
  int epilogue;
};

/// Launched over (batch, ceil(total_panels / group_panels), ceil(m / row_block)) work-groups: neighbours share panels.
struct GemmArguments {
  const void* a;
  const float* packed;
  std::int64_t a_stride;  ///< distance of rows as they lie: of m, or of k where A is transposed
  std::int64_t a_batch;
  GemmOutput output;
  int m, n, k;
  int total_panels;
  int group_panels;  ///< of a work-group, up to config.panels
};

/// What a product is, beside its tile numbers.
struct GemmForm {
  GemmEpilogueKind epilogue;
  bool transposed;  ///< A lies as [k, m]
};

/// Whether A goes through local memory.
template <class T>
constexpr bool is_staged(const GemmForm& form, const GemmConfig& config) {
  return config.staged != 0 || form.transposed || !std::is_same_v<T, float>;
}

/// An element on its way to C, `column` of the rows that the pointers name. Every step is one rounding, written so that
/// no compiler joins two of them in one place and not in another: rows must not depend on where their tile ends.
template <class C, GemmEpilogueKind kind>
[[gnu::always_inline]] inline void finish_element(const GemmOutput& output, float product, const float* bias, C* c,
                                                  C* pre_activation, const C* residual, std::int64_t column) {
  float value = output.alpha * product;
  if constexpr (kind != GemmEpilogueKind::none) value = sycl::fma(output.alpha, product, bias[column]);
  if (output.beta != 0.0F) value = sycl::fma(output.beta, static_cast<float>(c[column]), value);
  if constexpr (kind == GemmEpilogueKind::bias_residual) value += static_cast<float>(residual[column]);
  if constexpr (is_gelu(kind)) {
    // Rounded before gelu sees it, so that a backward pass computes the same from what was kept.
    const auto rounded = static_cast<C>(value);
    if (pre_activation != nullptr) pre_activation[column] = rounded;
    value = static_cast<float>(rounded);
    value = kind == GemmEpilogueKind::bias_gelu ? Gelu::value(value) : GeluTanh::value(value);
  }
  c[column] = static_cast<C>(value);
}

template <class T, class C, GemmForm form, GemmConfig config>
struct Gemm {
  using Arguments = GemmArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    Gemm group(arguments, item, local);
    group.work(item);
  }

 private:
  static constexpr int lanes = config.lanes;
  static constexpr int columns = config.columns;
  static constexpr int rows = config.rows;
  static constexpr int width = config.width();
  static constexpr int pitch = config.depth_pitch();
  static constexpr int step_pitch = config.transposed_pitch();
  static constexpr int tile_floats = config.transposed_tile_floats();
  static constexpr bool staged = is_staged<T>(form, config);
  static constexpr GemmEpilogueKind kind = form.epilogue;
  /// Whole tiles go from the registers to C; not where a single work-item holds the vectors: AdaptiveCpp does not make
  /// vectors of such an epilogue, and the product runs at half its speed.
  static constexpr bool ends_in_registers = lanes > 1 && !is_gelu(kind);
  using Tile = RegisterTile<rows, columns>;

  const Arguments args;
  const std::int64_t batch;
  const int first_row, row_count, first_panel, panel_count;
  const int lane, sub_group;
  float* const sums;  // a register tile after the other
  float* const left;

  static int smaller(int a, int b) { return a < b ? a : b; }

  [[gnu::always_inline]] Gemm(const Arguments& arguments, const sycl::nd_item<3>& item, float* local)
      : args(arguments),
        batch(group_of(item, 0)),
        first_row(static_cast<int>(group_of(item, 2)) * config.row_block),
        row_count(smaller(config.row_block, arguments.m - first_row)),
        first_panel(static_cast<int>(group_of(item, 1)) * arguments.group_panels),
        panel_count(smaller(arguments.group_panels, arguments.total_panels - first_panel)),
        lane(config.sub_groups == 1 ? lane_of(item) : lane_of(item) % lanes),
        sub_group(config.sub_groups == 1 ? 0 : lane_of(item) / lanes),
        sums(local),
        left(local + config.sum_floats()) {}

  [[gnu::always_inline]] void work(const sycl::nd_item<3>& item) const {
    int k = 0;
    do {
      const int count = smaller(config.depth_block, args.k - k);
      if constexpr (staged) {
        if constexpr (form.transposed)
          stage_transposed(k, count);
        else
          stage(k, count);
        barrier(item);
      }
      multiply(k, count);
      if constexpr (staged) barrier(item);
      k += config.depth_block;
    } while (k < args.k);
  }

  /// Rows of A; those past the end repeat the last one and are never stored.
  [[gnu::always_inline]] void stage(int k, int count) const {
    const int padded = (row_count + rows - 1) / rows * rows;
    const T* from = static_cast<const T*>(args.a) + batch * args.a_batch + k;
    const int whole = count / lanes * lanes;
    for (int row = sub_group; row < padded; row += config.sub_groups) {
      const T* source = from + (first_row + smaller(row, row_count - 1)) * args.a_stride + lane;
      float* target = left + row * pitch + lane;
      for (int c = 0; c < whole; c += lanes) target[c] = static_cast<float>(source[c]);
      if (whole + lane < count) target[whole] = static_cast<float>(source[whole]);
    }
  }

  /// The same where A lies as [k, m]: a register tile's rows side by side, [tile][k][rows], a vector at a time. What
  /// stands after the last of the rows in a vector is read from the next tile and used by none. A row of A is read
  /// from end to end before the next: its neighbours often share a set of the cache.
  [[gnu::always_inline]] void stage_transposed(int k, int count) const {
    const int tiles = (row_count + rows - 1) / rows;
    const T* from = static_cast<const T*>(args.a) + batch * args.a_batch + k * args.a_stride + first_row;
    int whole_tiles = 0;
    if constexpr (lanes <= step_pitch) {
      const int vectors_end = args.m - first_row - step_pitch;
      whole_tiles = vectors_end < 0 ? 0 : smaller(tiles, vectors_end / rows + 1);
      for (int step = sub_group; step < count; step += config.sub_groups) {
        const T* source = from + step * args.a_stride + lane;
        float* target = left + step * step_pitch + lane;
        for (int tile = 0; tile < whole_tiles; ++tile)
#pragma unroll
          for (int row = 0; row < step_pitch; row += lanes)
            target[tile * tile_floats + row] = static_cast<float>(source[tile * rows + row]);
      }
    }
    for (int tile = whole_tiles + sub_group; tile < tiles; tile += config.sub_groups) {
      const T* source = from + tile * rows;
      float* target = left + tile * tile_floats;
      const int last = row_count - tile * rows - 1;
      for (int element = lane; element < count * step_pitch; element += lanes)
        target[element] =
            static_cast<float>(source[element / step_pitch * args.a_stride + smaller(element % step_pitch, last)]);
    }
  }

  /// All tiles of the work-group, over one depth block. What changes from tile to tile is counted up rather than
  /// computed anew: between two of the inner loops every instruction counts (90 against 87 % of the CPU's peak).
  [[gnu::always_inline]] void multiply(int k, int count) const {
    const int row_tiles = (row_count + rows - 1) / rows;
    const bool first = k == 0;
    const bool last = k + count >= args.k;
    // A sum that does not outlive its tile needs no place of its own.
    const int sum_step = args.k <= config.depth_block ? 0 : config.sub_groups * rows * width;
    const std::int64_t panel_floats = static_cast<std::int64_t>(args.k) * width;
    const float* right = args.packed + (batch * args.total_panels + first_panel) * panel_floats +
                         static_cast<std::int64_t>(k) * width + lane;
    float* sum = sums + sub_group * rows * width + lane;
    Place place = place_of(sub_group * rows, first_panel * width + lane);
    int columns_left = args.n - first_panel * width;
    for (int panel = 0; panel < panel_count; ++panel) {
      Place at = place;
      for (int tile = sub_group; tile < row_tiles; tile += config.sub_groups) {
        const int rows_left = row_count - tile * rows;
        Tile result;
        if (first)
          result.clear();
        else
          each(
              result, [&](float& value, int r, int x)
                          __attribute__((always_inline)) { value = sum[r * width + x * lanes]; });
        accumulate_tile(result, tile, rows_left, right, k, count);
        if (last && ends_in_registers && rows_left >= rows && columns_left >= width) {
          each(
              result, [&](float& value, int r, int x)
                          __attribute__((always_inline)) { at.finish(args.output, value, r, x * lanes); });
        } else {
          each(
              result, [&](float& value, int r, int x)
                          __attribute__((always_inline)) { sum[r * width + x * lanes] = value; });
          if (last) finish_rows(sum, at, smaller(rows, rows_left), columns_left);
        }
        sum += sum_step;
        at.down(args.output, config.sub_groups * rows);
      }
      right += panel_floats;
      place.right(width);
      columns_left -= width;
    }
  }

  [[gnu::always_inline]] void accumulate_tile(Tile& result, int tile, int rows_left, const float* right, int k,
                                              int count) const {
    if constexpr (!staged) {
      const auto* from = static_cast<const float*>(args.a) + batch * args.a_batch + k +
                         static_cast<std::int64_t>(first_row + tile * rows) * args.a_stride;
      const float* places[rows];
#pragma unroll
      for (int r = 0; r < rows; ++r) places[r] = from + smaller(r, rows_left - 1) * args.a_stride;
      accumulate_rows<TileStrides{0, 1, width, lanes}>(result, places, right, count);
    } else if constexpr (form.transposed) {
      accumulate<TileStrides{1, step_pitch, width, lanes}>(result, left + tile * tile_floats, right, count);
    } else {
      accumulate<TileStrides{pitch, 1, width, lanes}>(result, left + tile * (rows * pitch), right, count);
    }
  }

  template <class Element>
  [[gnu::always_inline]] static void each(Tile& tile, const Element& element) {
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int x = 0; x < columns; ++x) element(tile.value[r][x], r, x);
  }

  /// Where this work-item's first element of a tile lies in C, and in the tensors that are laid out like C.
  struct Place {
    C* c;
    C* pre_activation;
    const C* residual;
    const float* bias;

    [[gnu::always_inline]] void down(const GemmOutput& output, int count) {
      c += count * output.c_stride;
      if constexpr (is_gelu(kind))
        pre_activation = pre_activation == nullptr ? nullptr : pre_activation + count * output.pre_activation_stride;
      if constexpr (kind == GemmEpilogueKind::bias_residual) residual += count * output.residual_stride;
    }
    [[gnu::always_inline]] void right(int count) {
      c += count;
      if constexpr (is_gelu(kind)) pre_activation = pre_activation == nullptr ? nullptr : pre_activation + count;
      if constexpr (kind == GemmEpilogueKind::bias_residual) residual += count;
      if constexpr (kind != GemmEpilogueKind::none) bias += count;
    }
    [[gnu::always_inline]] void finish(const GemmOutput& output, float product, int row, int column) const {
      finish_element<C, kind>(output, product, bias, c + row * output.c_stride,
                              pre_activation == nullptr ? nullptr : pre_activation + row * output.pre_activation_stride,
                              residual + row * output.residual_stride, column);
    }
  };

  [[gnu::always_inline]] Place place_of(int row, int column) const {
    const GemmOutput& output = args.output;
    const std::int64_t at = first_row + row;
    Place place{};
    place.c = static_cast<C*>(output.c) + batch * output.c_batch + at * output.c_stride + column;
    if constexpr (is_gelu(kind)) {
      if (output.pre_activation != nullptr)
        place.pre_activation = static_cast<C*>(output.pre_activation) + batch * output.pre_activation_batch +
                               at * output.pre_activation_stride + column;
    }
    if constexpr (kind == GemmEpilogueKind::bias_residual)
      place.residual =
          static_cast<const C*>(output.residual) + batch * output.residual_batch + at * output.residual_stride + column;
    if constexpr (kind != GemmEpilogueKind::none) place.bias = output.bias + column;
    return place;
  }

  /// A tile from local memory, row by row: gelu twelve times over in the registers' code would be slower by far, and
  /// at C's edges not all of a tile is wanted.
  [[gnu::always_inline]] void finish_rows(const float* sum, const Place& at, int row_end, int columns_left) const {
    for (int r = 0; r < row_end; ++r) {
      if (columns_left >= width) {
        for (int x = 0; x < columns; ++x) at.finish(args.output, sum[r * width + x * lanes], r, x * lanes);
      } else {
        for (int x = 0; x < columns; ++x)
          if (x * lanes + lane < columns_left) at.finish(args.output, sum[r * width + x * lanes], r, x * lanes);
      }
    }
  }
};

struct GemmKernel : Description<GemmConfig, GemmArguments, Parameters::product> {
  static constexpr const char *header = "gemm.hpp", *functor = "Gemm", *arguments = "GemmArguments";
  /// Sums, and what is staged of A: 16-bit operands always are.
  template <class Type>
  static constexpr int local_floats(const GemmConfig& config, Type type, Type /*c_type*/, const GemmForm& form) {
    const bool staged = type != Type::f32 || is_staged<float>(form, config);
    return config.sum_floats() + (staged ? config.staged_floats(form.transposed) : 0);
  }
};

/// The epilogue alone, for products that another library computed: C = epilogue(C).
/// Launched over (batch, ceil(m / config.rows), 1) work-groups.
struct GemmEpilogueConfig {
  int work_items;
  int rows;

  static constexpr const char *name = "GemmEpilogueConfig", *record = "gemm_epilogue";
  template <class Visit>
  static constexpr void members(const Visit& visit) {
    visit("work_items", &GemmEpilogueConfig::work_items);
    visit("rows", &GemmEpilogueConfig::rows);
  }
  constexpr bool valid() const { return work_items > 0 && rows > 0; }
};

struct GemmEpilogueArguments {
  GemmOutput output;
  int m, n;
};

template <class C, GemmEpilogueConfig config>
struct GemmEpilogue {
  using Arguments = GemmEpilogueArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    switch (static_cast<GemmEpilogueKind>(args.output.epilogue)) {
      case GemmEpilogueKind::none:
        return;
      case GemmEpilogueKind::bias:
        return finish<GemmEpilogueKind::bias>(args, item);
      case GemmEpilogueKind::bias_gelu:
        return finish<GemmEpilogueKind::bias_gelu>(args, item);
      case GemmEpilogueKind::bias_gelu_tanh:
        return finish<GemmEpilogueKind::bias_gelu_tanh>(args, item);
      case GemmEpilogueKind::bias_residual:
        return finish<GemmEpilogueKind::bias_residual>(args, item);
    }
  }

 private:
  template <GemmEpilogueKind kind>
  [[gnu::always_inline]] static void finish(const Arguments& args, const sycl::nd_item<3>& item) {
    const GemmOutput output = args.output;
    const std::int64_t batch = group_of(item, 0);
    const int first = static_cast<int>(group_of(item, 1)) * config.rows;
    const int end = first + config.rows < args.m ? first + config.rows : args.m;
    const int lane = lane_of(item);
    const int whole = args.n / config.work_items * config.work_items;
    for (int row = first; row < end; ++row) {
      C* c = static_cast<C*>(output.c) + batch * output.c_batch + row * output.c_stride;
      C* pre_activation = output.pre_activation == nullptr
                              ? nullptr
                              : static_cast<C*>(output.pre_activation) + batch * output.pre_activation_batch +
                                    row * output.pre_activation_stride;
      const C* residual =
          static_cast<const C*>(output.residual) + batch * output.residual_batch + row * output.residual_stride;
      const auto element = [&](int x) {
        finish_element<C, kind>(output, static_cast<float>(c[x]), output.bias, c, pre_activation, residual, x);
      };
      for (int x = 0; x < whole; x += config.work_items) element(x + lane);
      if (whole + lane < args.n) element(whole + lane);
    }
  }
};

struct GemmEpilogueKernel : Description<GemmEpilogueConfig, GemmEpilogueArguments, Parameters::type> {
  static constexpr const char *header = "gemm.hpp", *functor = "GemmEpilogue", *arguments = "GemmEpilogueArguments";
};

}  // namespace sylvit::kernels
