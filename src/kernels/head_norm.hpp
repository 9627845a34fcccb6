// Layer norm over the channels of a head, for the queries or the keys, and its gradients:
//
//     x̂ = (x - mean) · r,  r = 1 / sqrt(variance + ε)      y = x̂ · weight + bias
//     g = dy · weight                                      dx = r · (g - mean(g) - x̂ · mean(g · x̂))
//     dweight = Σ dy · x̂,  dbias = Σ dy                    over all rows of all heads and sequences
//
// A work-group of `lanes` work-items takes `lanes` rows at a time. A lane adds up every lanes-th channel of each of
// these rows; the partial sums turn in local memory, and each lane adds those of one row:
//
//                channels →
//      rows  | 0 1 … | 0 1 … |                   partial[row][lane]
//        ↓   | 0 1 … | 0 1 … |    =>  row 0  | p0 p1 … |   lane 0 adds row 0, lane 1 adds row 1, …
//            | 0 1 … | 0 1 … |        row 1  | p0 p1 … |
//
// The order of every sum depends on the shape alone.
#pragma once

#include <sylvit/float16.hpp>

#include "kernels/attention_common.hpp"
#include "kernels/sycl.hpp"

namespace sylvit::kernels {

struct HeadNormConfig {
  int lanes;
  int columns;  ///< channels that a lane adds side by side
  int rows;     ///< rows of a work-group

  constexpr int width() const { return lanes * columns; }
  constexpr int pitch() const { return width() + 1; }
  constexpr int work_items() const { return lanes; }
  /// Partial sums, and four numbers a row.
  constexpr int local_floats() const { return lanes * pitch() + 4 * lanes; }
  constexpr bool valid() const { return lanes > 0 && columns > 0 && rows > 0; }
};

/// Sums over the channels of `lanes` rows.
template <HeadNormConfig config>
struct RowSums {
  const sycl::nd_item<3>& item;
  float* partial;
  int lane;
  int head_size;

  /// totals[r] = Σ_c value(r, c). All lanes must come here; they leave with the totals visible.
  template <class Value>
  [[gnu::always_inline]] void add(float* totals, Value&& value) const {
    for (int r = 0; r < config.lanes; ++r) {
      float sums[config.columns] = {};
      int first = 0;
      for (; first + config.width() <= head_size; first += config.width())
#pragma unroll
        for (int x = 0; x < config.columns; ++x) sums[x] += value(r, first + x * config.lanes + lane);
      if (first < head_size)
#pragma unroll
        for (int x = 0; x < config.columns; ++x) {
          const int c = first + x * config.lanes + lane;
          if (c < head_size) sums[x] += value(r, c);
        }
#pragma unroll
      for (int x = 0; x < config.columns; ++x) partial[r * config.pitch() + x * config.lanes + lane] = sums[x];
    }
    barrier(item);
    float total = 0.0F;
    for (int x = 0; x < config.width(); ++x) total += partial[lane * config.pitch() + x];
    totals[lane] = total;
    barrier(item);
  }

  /// act(c) for this lane's channels of a row.
  template <class Act>
  [[gnu::always_inline]] void each_channel(Act&& act) const {
    int first = 0;
    for (; first + config.width() <= head_size; first += config.width())
#pragma unroll
      for (int x = 0; x < config.columns; ++x) act(first + x * config.lanes + lane);
    if (first < head_size)
#pragma unroll
      for (int x = 0; x < config.columns; ++x) {
        const int c = first + x * config.lanes + lane;
        if (c < head_size) act(c);
      }
  }
};

/// Launched over (batch, heads, ceil(length / config.rows)) work-groups, as HeadNormBackward is.
struct HeadNormForwardArguments {
  const void* in;
  void* out;
  const float* weight;  ///< [head_size]; null: 1
  const float* bias;    ///< [head_size]; null: 0
  AttentionStrides in_strides;
  AttentionStrides out_strides;
  int length;
  int head_size;
  float epsilon;
};

template <class T, HeadNormConfig config>
struct HeadNormForward {
  using Arguments = HeadNormForwardArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    const Arguments args = arguments;
    const std::int64_t batch = group_of(item, 0);
    const std::int64_t head = group_of(item, 1);
    const T* in = static_cast<const T*>(args.in) + args.in_strides.at(batch, head);
    T* out = static_cast<T*>(args.out) + args.out_strides.at(batch, head);
    const RowSums<config> rows{item, local, lane_of(item), args.head_size};
    float* mean = local + config.lanes * config.pitch();
    float* deviation = mean + config.lanes;
    const float per_channel = 1.0F / static_cast<float>(args.head_size);
    const int first = static_cast<int>(group_of(item, 2)) * config.rows;
    const int end = first + config.rows < args.length ? first + config.rows : args.length;
    for (int row0 = first; row0 < end; row0 += config.lanes) {
      const auto row_of = [&](int r) { return row0 + r < end ? row0 + r : end - 1; };
      const auto x = [&](int r, int c) { return static_cast<float>(in[row_of(r) * args.in_strides.row + c]); };
      rows.add(mean, x);
      rows.add(deviation, [&](int r, int c) {
        const float centred = x(r, c) - mean[r] * per_channel;
        return centred * centred;
      });
      for (int r = 0; r < config.lanes && row0 + r < end; ++r) {
        const float centre = mean[r] * per_channel;
        const float factor = sycl::rsqrt(deviation[r] * per_channel + args.epsilon);
        T* to = out + (row0 + r) * args.out_strides.row;
        rows.each_channel([&](int c) {
          const float weight = args.weight != nullptr ? args.weight[c] : 1.0F;
          const float bias = args.bias != nullptr ? args.bias[c] : 0.0F;
          to[c] = static_cast<T>((x(r, c) - centre) * factor * weight + bias);
        });
      }
      barrier(item);
    }
  }
};

struct HeadNormBackwardArguments {
  const void* in;
  const void* out_gradient;
  void* in_gradient;
  const float* weight;          ///< null: 1
  float* statistics;            ///< [batch, heads, length, 2]: mean and r of each row, for HeadNormParameters
  const std::int32_t* lengths;  ///< Rows of each sequence; null: all. Rows beyond get zeros, whatever they hold.
  AttentionStrides in_strides;
  AttentionStrides out_gradient_strides;
  AttentionStrides in_gradient_strides;
  int heads;
  int length;
  int head_size;
  float epsilon;
};

template <class T, HeadNormConfig config>
struct HeadNormBackward {
  using Arguments = HeadNormBackwardArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    const Arguments args = arguments;
    const std::int64_t batch = group_of(item, 0);
    const std::int64_t head = group_of(item, 1);
    const T* in = static_cast<const T*>(args.in) + args.in_strides.at(batch, head);
    const T* out_gradient = static_cast<const T*>(args.out_gradient) + args.out_gradient_strides.at(batch, head);
    T* in_gradient = static_cast<T*>(args.in_gradient) + args.in_gradient_strides.at(batch, head);
    float* statistics = args.statistics + (batch * args.heads + head) * args.length * 2;
    const int present = keys_of(args.lengths, batch, args.length);
    const RowSums<config> rows{item, local, lane_of(item), args.head_size};
    float* mean = local + config.lanes * config.pitch();
    float* deviation = mean + config.lanes;
    float* gradient_sum = deviation + config.lanes;
    float* projection_sum = gradient_sum + config.lanes;
    const float per_channel = 1.0F / static_cast<float>(args.head_size);
    const int first = static_cast<int>(group_of(item, 2)) * config.rows;
    const int end = first + config.rows < args.length ? first + config.rows : args.length;
    for (int row0 = first; row0 < end; row0 += config.lanes) {
      const auto row_of = [&](int r) { return row0 + r < end ? row0 + r : end - 1; };
      const auto x = [&](int r, int c) { return static_cast<float>(in[row_of(r) * args.in_strides.row + c]); };
      const auto g = [&](int r, int c) {
        const float weight = args.weight != nullptr ? args.weight[c] : 1.0F;
        return static_cast<float>(out_gradient[row_of(r) * args.out_gradient_strides.row + c]) * weight;
      };
      rows.add(mean, x);
      rows.add(deviation, [&](int r, int c) {
        const float centred = x(r, c) - mean[r] * per_channel;
        return centred * centred;
      });
      rows.add(gradient_sum, g);
      rows.add(projection_sum, [&](int r, int c) { return g(r, c) * (x(r, c) - mean[r] * per_channel); });
      for (int r = 0; r < config.lanes && row0 + r < end; ++r) {
        const float centre = mean[r] * per_channel;
        const float factor = sycl::rsqrt(deviation[r] * per_channel + args.epsilon);
        const float mean_gradient = gradient_sum[r] * per_channel;
        const float mean_projection = projection_sum[r] * per_channel * factor;
        T* to = in_gradient + (row0 + r) * args.in_gradient_strides.row;
        rows.each_channel([&](int c) {
          const float normed = (x(r, c) - centre) * factor;
          const float gradient = factor * (g(r, c) - mean_gradient - normed * mean_projection);
          to[c] = static_cast<T>(row0 + r < present ? gradient : 0.0F);
        });
        if (rows.lane == 0) {
          statistics[(row0 + r) * 2] = centre;
          statistics[(row0 + r) * 2 + 1] = factor;
        }
      }
      barrier(item);
    }
  }
};

/// The parameters' gradients, first of each head: launched over (batch, heads, 1) work-groups, after HeadNormBackward.
struct HeadNormParametersArguments {
  const void* in;
  const void* out_gradient;
  const float* statistics;
  const std::int32_t* lengths;  ///< As in the backward pass.
  float* partial;               ///< [batch, heads, 2, head_size]: this head's share of dweight and dbias
  AttentionStrides in_strides;
  AttentionStrides out_gradient_strides;
  int heads;
  int length;
  int head_size;
};

template <class T, HeadNormConfig config>
struct HeadNormParameters {
  using Arguments = HeadNormParametersArguments;

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    const std::int64_t batch = group_of(item, 0);
    const std::int64_t head = group_of(item, 1);
    const T* in = static_cast<const T*>(args.in) + args.in_strides.at(batch, head);
    const T* out_gradient = static_cast<const T*>(args.out_gradient) + args.out_gradient_strides.at(batch, head);
    const float* statistics = args.statistics + (batch * args.heads + head) * args.length * 2;
    const int present = keys_of(args.lengths, batch, args.length);
    float* partial = args.partial + (batch * args.heads + head) * 2 * args.head_size;
    for (int c = lane_of(item); c < args.head_size; c += config.work_items()) {
      float weight_gradient = 0.0F;
      float bias_gradient = 0.0F;
      for (int row = 0; row < present; ++row) {
        const float gradient = static_cast<float>(out_gradient[row * args.out_gradient_strides.row + c]);
        const float x = static_cast<float>(in[row * args.in_strides.row + c]);
        weight_gradient = sycl::fma(gradient, (x - statistics[row * 2]) * statistics[row * 2 + 1], weight_gradient);
        bias_gradient += gradient;
      }
      partial[c] = weight_gradient;
      partial[args.head_size + c] = bias_gradient;
    }
  }
};

/// … then of all heads, in order: one work-group.
struct HeadNormParameterSumArguments {
  const float* partial;    ///< [count, 2, head_size]
  float* weight_gradient;  ///< [head_size]; or null
  float* bias_gradient;    ///< [head_size]; or null
  int count;
  int head_size;
};

template <HeadNormConfig config>
struct HeadNormParameterSum {
  using Arguments = HeadNormParameterSumArguments;

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    for (int c = lane_of(item); c < args.head_size; c += config.work_items()) {
      float weight_gradient = 0.0F;
      float bias_gradient = 0.0F;
      for (int i = 0; i < args.count; ++i) {
        weight_gradient += args.partial[(i * 2) * args.head_size + c];
        bias_gradient += args.partial[(i * 2 + 1) * args.head_size + c];
      }
      if (args.weight_gradient != nullptr) args.weight_gradient[c] = weight_gradient;
      if (args.bias_gradient != nullptr) args.bias_gradient[c] = bias_gradient;
    }
  }
};

}  // namespace sylvit::kernels
