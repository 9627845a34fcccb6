// The builtin matrix product, row-major, with what follows it in a network:
//
//     C = epilogue(alpha · A B + beta · C)          A [m, k], B [k, n], C [m, n], in a batch if wanted
//
//     none               the product
//     bias               + bias[n]
//     bias_gelu          u = product + bias, kept where asked; gelu(u)
//     bias_residual      + bias[n] + residual[m, n]
//
// GemmPack turns B into panels of `width` columns, f32, zeros behind the last column:
//
//            n                         panel 0    panel 1
//        +-------+                    +-------+  +-------+
//      k |  B    |   (or Bᵀ)   ==>    | k     |  | k     |    a row of a panel is `columns` vectors of `lanes`
//        |       |                    |   w   |  |   w   |
//        +-------+                    +-------+  +-------+
//
// Gemm: a work-group owns row_block rows and `panels` panels of C. It takes depth_block of k at a time: its rows of A
// go to local memory, then register tiles (tile.hpp) of `rows` x `width` pass over the panels, which are read where
// they lie:
//
//                                panel      panel
//                              +-------+  +-------+
//              depth_block     |       |  |       |
//           +-------------+    +-------+  +-------+
//      row  |  A, local   | -> | tile  |  | tile  |   C of the work-group in local memory between depth blocks,
//     block |             | -> | tile  |  | tile  |   and for the epilogue, which runs row by row
//           +-------------+    +-------+  +-------+
//
// The sum over k runs in order, whatever the tile numbers: a row of C has the same bits in any batch and configuration.
#pragma once

#include <sylvit/float16.hpp>

#include "kernels/scores.hpp"
#include "kernels/sycl.hpp"
#include "kernels/tile.hpp"

namespace sylvit::kernels {

enum class GemmEpilogueKind : int { none, bias, bias_gelu, bias_gelu_tanh, bias_residual };

struct GemmConfig {
  int lanes;        ///< work-items that share a register tile
  int columns;      ///< columns of the tile that each of them holds
  int rows;         ///< rows of the tile
  int row_block;    ///< rows of C a work-group owns, a multiple of rows
  int panels;       ///< panels of C a work-group owns
  int depth_block;  ///< k in local memory at a time
  int sub_groups;   ///< sub-groups in a work-group

  constexpr int width() const { return lanes * columns; }
  constexpr int work_items() const { return lanes * sub_groups; }
  /// Distance of the rows of A in local memory: an odd number of cache lines, so that they spread over the cache sets.
  constexpr int depth_pitch() const { return ((depth_block + 15) / 16 | 1) * 16; }
  /// Distance of two k of a register tile's rows where A is transposed: a whole number of them to a vector of eight.
  constexpr int transposed_pitch() const { return 8 % rows == 0 ? rows : (rows + 7) / 8 * 8; }
  constexpr int left_floats() const {
    const int plain = row_block * depth_pitch();
    const int transposed = depth_block * (row_block / rows) * transposed_pitch();
    return plain > transposed ? plain : transposed;
  }
  constexpr int local_floats() const { return left_floats() + row_block * panels * width(); }
  constexpr bool valid() const {
    return lanes > 0 && columns > 0 && rows > 0 && row_block > 0 && row_block % rows == 0 && panels > 0 &&
           depth_block > 0 && sub_groups > 0;
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
    // Panels without padding; the one behind them may be the last, partial one.
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

/// What happens to the product on its way to C.
struct GemmOutput {
  void* c;
  const float* bias;                                    ///< [n]
  const void* residual;                                 ///< [m, n], C's type
  void* kept;                                           ///< [m, n], C's type: what gelu was taken of; null: not wanted
  std::int64_t c_stride, residual_stride, kept_stride;  ///< distances of rows
  std::int64_t c_batch, residual_batch, kept_batch;
  float alpha;
  float beta;  ///< 0: C is not read
  int epilogue;
};

/// Launched over (batch, ceil(m / row_block), ceil(panels / config.panels)) work-groups.
struct GemmArguments {
  const void* a;
  const float* packed;
  std::int64_t a_stride;  ///< distance of rows as they lie: of m, or of k where A is transposed
  std::int64_t a_batch;
  GemmOutput output;
  int m, n, k;
  int total_panels;
  int transposed;  ///< A lies as [k, m]
};

/// One row of results, `columns` numbers a work-item; `value` is alpha · A B + beta · C.
template <class C, GemmEpilogueKind kind>
[[gnu::always_inline]] inline void finish_element(const GemmOutput& output, float value, C* c, C* kept,
                                                  const C* residual, std::int64_t column) {
  if constexpr (kind != GemmEpilogueKind::none) value += output.bias[column];
  if constexpr (kind == GemmEpilogueKind::bias_residual) value += static_cast<float>(residual[column]);
  if constexpr (kind == GemmEpilogueKind::bias_gelu || kind == GemmEpilogueKind::bias_gelu_tanh) {
    // Rounded before gelu sees it, so that a backward pass computes the same from what was kept.
    const auto rounded = static_cast<C>(value);
    if (kept != nullptr) kept[column] = rounded;
    value = static_cast<float>(rounded);
    value = kind == GemmEpilogueKind::bias_gelu ? Gelu::value(value) : GeluTanh::value(value);
  }
  c[column] = static_cast<C>(value);
}

template <class T, class C, GemmConfig config>
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
  static constexpr int sum_pitch = config.panels * width;

  const Arguments args;
  const std::int64_t batch;
  const int first_row, row_count, first_panel, panel_count;
  const int lane, sub_group;
  float* const left;
  float* const sums;  // [row_block][panels * width]

  static int smaller(int a, int b) { return a < b ? a : b; }

  [[gnu::always_inline]] Gemm(const Arguments& arguments, const sycl::nd_item<3>& item, float* local)
      : args(arguments),
        batch(group_of(item, 0)),
        first_row(static_cast<int>(group_of(item, 1)) * config.row_block),
        row_count(smaller(config.row_block, arguments.m - first_row)),
        first_panel(static_cast<int>(group_of(item, 2)) * config.panels),
        panel_count(smaller(config.panels, arguments.total_panels - first_panel)),
        lane(config.sub_groups == 1 ? lane_of(item) : lane_of(item) % lanes),
        sub_group(config.sub_groups == 1 ? 0 : lane_of(item) / lanes),
        left(local),
        sums(local + config.left_floats()) {}

  [[gnu::always_inline]] void work(const sycl::nd_item<3>& item) const {
    int k = 0;
    do {
      const int count = smaller(config.depth_block, args.k - k);
      if (args.transposed != 0)
        stage_transposed(k, count);
      else
        stage(k, count);
      barrier(item);
      if (args.transposed != 0)
        multiply<TileStrides{1, step_pitch, width, lanes}>(k, count, config.depth_block * step_pitch);
      else
        multiply<TileStrides{pitch, 1, width, lanes}>(k, count, rows * pitch);
      barrier(item);
      k += config.depth_block;
    } while (k < args.k);
    finish();
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
  /// stands behind the last of the rows in a vector is read from the next tile and used by none.
  [[gnu::always_inline]] void stage_transposed(int k, int count) const {
    const int tiles = (row_count + rows - 1) / rows;
    const T* from = static_cast<const T*>(args.a) + batch * args.a_batch + k * args.a_stride + first_row;
    for (int tile = sub_group; tile < tiles; tile += config.sub_groups) {
      const T* source = from + tile * rows;
      float* target = left + tile * (config.depth_block * step_pitch);
      if constexpr (lanes <= step_pitch) {
        if (first_row + tile * rows + step_pitch <= args.m) {
          for (int step = 0; step < count; ++step)
#pragma unroll
            for (int row = 0; row < step_pitch; row += lanes)
              target[step * step_pitch + row + lane] = static_cast<float>(source[step * args.a_stride + row + lane]);
          continue;
        }
      }
      const int last = row_count - tile * rows - 1;
      for (int element = lane; element < count * step_pitch; element += lanes)
        target[element] =
            static_cast<float>(source[element / step_pitch * args.a_stride + smaller(element % step_pitch, last)]);
    }
  }

  template <TileStrides strides>
  [[gnu::always_inline]] void multiply(int k, int count, int tile_distance) const {
    const int row_tiles = (row_count + rows - 1) / rows;
    const float* right = args.packed + (batch * args.total_panels + first_panel) * args.k * width +
                         static_cast<std::int64_t>(k) * width + lane;
    for (int panel = 0; panel < panel_count; ++panel)
      for (int tile = sub_group; tile < row_tiles; tile += config.sub_groups) {
        float* sum = sums + tile * rows * sum_pitch + panel * width + lane;
        RegisterTile<rows, columns> result;
        if (k == 0) {
          result.clear();
        } else {
#pragma unroll
          for (int r = 0; r < rows; ++r)
#pragma unroll
            for (int x = 0; x < columns; ++x) result.value[r][x] = sum[r * sum_pitch + x * lanes];
        }
        accumulate<strides>(result, left + tile * tile_distance,
                            right + static_cast<std::int64_t>(panel) * args.k * width, count);
#pragma unroll
        for (int r = 0; r < rows; ++r)
#pragma unroll
          for (int x = 0; x < columns; ++x) sum[r * sum_pitch + x * lanes] = result.value[r][x];
      }
  }

  [[gnu::always_inline]] void finish() const {
    switch (static_cast<GemmEpilogueKind>(args.output.epilogue)) {
      case GemmEpilogueKind::none:
        return finish_as<GemmEpilogueKind::none>();
      case GemmEpilogueKind::bias:
        return finish_as<GemmEpilogueKind::bias>();
      case GemmEpilogueKind::bias_gelu:
        return finish_as<GemmEpilogueKind::bias_gelu>();
      case GemmEpilogueKind::bias_gelu_tanh:
        return finish_as<GemmEpilogueKind::bias_gelu_tanh>();
      case GemmEpilogueKind::bias_residual:
        return finish_as<GemmEpilogueKind::bias_residual>();
    }
  }

  template <GemmEpilogueKind kind>
  [[gnu::always_inline]] void finish_as() const {
    const GemmOutput& output = args.output;
    const int first_column = first_panel * width;
    const int count = smaller(panel_count * width, args.n - first_column);
    const int whole = count / lanes * lanes;
    for (int row = sub_group; row < row_count; row += config.sub_groups) {
      const std::int64_t at = first_row + row;
      C* c = static_cast<C*>(output.c) + batch * output.c_batch + at * output.c_stride;
      C* kept = output.kept == nullptr
                    ? nullptr
                    : static_cast<C*>(output.kept) + batch * output.kept_batch + at * output.kept_stride;
      const C* residual =
          static_cast<const C*>(output.residual) + batch * output.residual_batch + at * output.residual_stride;
      const float* sum = sums + row * sum_pitch;
      const auto element = [&](int x) {
        float value = output.alpha * sum[x];
        if (output.beta != 0.0F) value += output.beta * static_cast<float>(c[first_column + x]);
        finish_element<C, kind>(output, value, c, kept, residual, first_column + x);
      };
      for (int x = 0; x < whole; x += lanes) element(x + lane);
      if (whole + lane < count) element(whole + lane);
    }
  }
};

/// The epilogue alone, for products that another library computed: C = epilogue(C).
/// Launched over (batch, ceil(m / config.rows), 1) work-groups.
struct GemmEpilogueConfig {
  int work_items;
  int rows;

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
      C* kept = output.kept == nullptr
                    ? nullptr
                    : static_cast<C*>(output.kept) + batch * output.kept_batch + row * output.kept_stride;
      const C* residual =
          static_cast<const C*>(output.residual) + batch * output.residual_batch + row * output.residual_stride;
      const auto element = [&](int x) {
        finish_element<C, kind>(output, static_cast<float>(c[x]), c, kept, residual, x);
      };
      for (int x = 0; x < whole; x += config.work_items) element(x + lane);
      if (whole + lane < args.n) element(whole + lane);
    }
  }
};

}  // namespace sylvit::kernels
