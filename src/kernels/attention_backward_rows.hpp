// The two small reductions beside the attention backward pass.
//
// Before it, for softmax: one number a row,
//
//     delta_i = Σ_c dO_ic O_ic                 O with the head's multiplier in it, as the forward pass left it
//
//     groups = (batch, heads, ceil(queries / rows)); `lanes` rows at a time:
//
//               c →                            lane l adds columns l, l + lanes, … of each row; then the partial sums
//         row   | 0 1 … | 0 1 … |              turn in local memory, and lane l adds up those of row l.
//           ↓   | 0 1 … | 0 1 … |
//
// After it, for the gradients of the head's multiplier m and exponent α (P = m N^-α h(S)): from D_bhi = Σ_j N^-α h dP,
//
//     dm_h = Σ_bi D_bhi                        dα_h = Σ_b -ln(N_b) m_h Σ_i D_bhi
//
//     groups = (heads, 1, 1); work-item w adds rows w, w + work_items, … of a sequence, the first work-item those sums
//     in order, sequence after sequence.
#pragma once

#include <sylvit/float16.hpp>

#include "kernels/attention_backward_config.hpp"
#include "kernels/description.hpp"
#include "kernels/sycl.hpp"

namespace sylvit::kernels {

struct AttentionBackwardRowsConfig {
  int lanes;
  int columns;  ///< Columns that a lane adds side by side.
  int rows;     ///< Rows of a work-group.

  static constexpr const char *name = "AttentionBackwardRowsConfig", *record = "attention_backward_rows";
  static constexpr bool by_type = false;  ///< one record for all types
  template <class Visit>
  static constexpr void members(const Visit& visit) {
    visit("lanes", &AttentionBackwardRowsConfig::lanes);
    visit("columns", &AttentionBackwardRowsConfig::columns);
    visit("rows", &AttentionBackwardRowsConfig::rows);
  }
  constexpr int sub_group_size() const { return sub_group_of_lanes(lanes); }
  constexpr int width() const { return lanes * columns; }
  constexpr int work_items() const { return lanes; }
  constexpr int local_floats() const { return lanes * (width() + 1); }
  constexpr bool valid() const { return lanes > 0 && columns > 0 && rows > 0; }
};

struct AttentionBackwardRowsArguments {
  const void* o_gradient;
  const void* output;
  float* delta;  ///< [batch, heads, queries]
  AttentionStrides o_gradient_strides, output_strides;
  int heads, queries, head_size;
};

template <class T, AttentionBackwardRowsConfig config>
struct AttentionBackwardRows {
  using Arguments = AttentionBackwardRowsArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    const Arguments args = arguments;
    const int batch = static_cast<int>(group_of(item, 0));
    const int head = static_cast<int>(group_of(item, 1));
    const int first = static_cast<int>(group_of(item, 2)) * config.rows;
    const int end = first + config.rows < args.queries ? first + config.rows : args.queries;
    const int lane = lane_of(item);
    constexpr int pitch = config.width() + 1;
    const T* gradient = static_cast<const T*>(args.o_gradient) + args.o_gradient_strides.at(batch, head);
    const T* output = static_cast<const T*>(args.output) + args.output_strides.at(batch, head);
    float* delta = args.delta + (static_cast<std::int64_t>(batch) * args.heads + head) * args.queries;
    for (int row0 = first; row0 < end; row0 += config.lanes) {
      for (int r = 0; r < config.lanes; ++r) {
        const int row = row0 + r < end ? row0 + r : end - 1;
        const T* a = gradient + row * args.o_gradient_strides.row;
        const T* b = output + row * args.output_strides.row;
        float sums[config.columns] = {};
        int c = 0;
        for (; c + config.width() <= args.head_size; c += config.width())
#pragma unroll
          for (int x = 0; x < config.columns; ++x) {
            const int column = c + x * config.lanes + lane;
            sums[x] = sycl::fma(static_cast<float>(a[column]), static_cast<float>(b[column]), sums[x]);
          }
        if (c < args.head_size)
#pragma unroll
          for (int x = 0; x < config.columns; ++x) {
            const int column = c + x * config.lanes + lane;
            if (column < args.head_size)
              sums[x] = sycl::fma(static_cast<float>(a[column]), static_cast<float>(b[column]), sums[x]);
          }
#pragma unroll
        for (int x = 0; x < config.columns; ++x) local[r * pitch + x * config.lanes + lane] = sums[x];
      }
      if constexpr (config.lanes > 1) barrier(item);
      float sum = 0.0F;
      for (int x = 0; x < config.width(); ++x) sum += local[lane * pitch + x];
      if (row0 + lane < end) delta[row0 + lane] = sum;
      if constexpr (config.lanes > 1) barrier(item);
    }
  }
};

struct AttentionBackwardRowsKernel
    : Description<AttentionBackwardRowsConfig, AttentionBackwardRowsArguments, Parameters::type> {
  static constexpr const char *header = "attention_backward_rows.hpp", *functor = "AttentionBackwardRows",
                              *arguments = "AttentionBackwardRowsArguments";
  static constexpr int local_floats(const AttentionBackwardRowsConfig& config) { return config.local_floats(); }
};

struct AttentionBackwardHeadSumsConfig {
  int items;

  static constexpr const char *name = "AttentionBackwardHeadSumsConfig", *record = "head_sums";
  static constexpr bool by_type = false;  ///< one record for all types
  template <class Visit>
  static constexpr void members(const Visit& visit) {
    visit("items", &AttentionBackwardHeadSumsConfig::items);
  }
  constexpr int work_items() const { return items; }
  constexpr int local_floats() const { return items; }
  constexpr bool valid() const { return items > 0; }
};

struct AttentionBackwardHeadSumsArguments {
  const float* row_dots;        ///< D, [batch, heads, queries]
  const std::int32_t* lengths;  ///< As in the backward pass.
  const float* head_scale;      ///< m, [heads]; null: 1.
  float* head_scale_gradient;   ///< dm, [heads]; or null.
  float* head_alpha_gradient;   ///< dα, [heads]; or null.
  int batch, heads, queries, keys;
  float divisor;
};

template <AttentionBackwardHeadSumsConfig config>
struct AttentionBackwardHeadSums {
  using Arguments = AttentionBackwardHeadSumsArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    const Arguments args = arguments;
    const int head = static_cast<int>(group_of(item, 0));
    const int lane = lane_of(item);
    float scale_gradient = 0.0F;
    float alpha_gradient = 0.0F;
    for (int batch = 0; batch < args.batch; ++batch) {
      const float* dots = args.row_dots + (static_cast<std::int64_t>(batch) * args.heads + head) * args.queries;
      float partial = 0.0F;
      for (int row = lane; row < args.queries; row += config.items) partial += dots[row];
      local[lane] = partial;
      barrier(item);
      float sum = 0.0F;
      for (int w = 0; w < config.items; ++w) sum += local[w];
      barrier(item);
      const int keys = keys_of(args.lengths, batch, args.keys);
      const float n = args.divisor > 0.0F ? args.divisor : static_cast<float>(keys > 1 ? keys : 1);
      scale_gradient += sum;
      alpha_gradient -= sycl::log(n) * sum;
    }
    if (lane != 0) return;
    const float scale = args.head_scale != nullptr ? args.head_scale[head] : 1.0F;
    if (args.head_scale_gradient != nullptr) args.head_scale_gradient[head] = scale_gradient;
    if (args.head_alpha_gradient != nullptr) args.head_alpha_gradient[head] = scale * alpha_gradient;
  }
};

struct AttentionBackwardHeadSumsKernel
    : Description<AttentionBackwardHeadSumsConfig, AttentionBackwardHeadSumsArguments, Parameters::none> {
  static constexpr const char *header = "attention_backward_rows.hpp", *functor = "AttentionBackwardHeadSums",
                              *arguments = "AttentionBackwardHeadSumsArguments";
  static constexpr int local_floats(const AttentionBackwardHeadSumsConfig& config) { return config.local_floats(); }
};

}  // namespace sylvit::kernels
