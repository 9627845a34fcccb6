// Layer norm over the channels of a row, and its gradients. A row is a token of a Vision Transformer, or a head's share
// of one (qk-layernorm):
//
//     x̂ = (x - mean) · r,  r = 1 / sqrt(variance + ε)      y = x̂ · weight + bias
//     g = dy · weight                                      dx = residual + r · (g - mean(g) - x̂ · mean(g · x̂))
//     dweight = Σ dy · x̂,  dbias = Σ dy                    over all rows
//
// A work-group of `lanes` work-items takes a few rows at a time (as many as it has lanes, if it owns so many). A lane
// adds up its channels of each of these rows; the partial sums turn in local memory, and each lane adds those of one
// row:
//
//                channels →
//      rows  | 0 1 … | 0 1 … |                   partial[row][lane]
//        ↓   | 0 1 … | 0 1 … |    =>  row 0  | p0 p1 … |   lane 0 adds row 0, lane 1 adds row 1, …
//            | 0 1 … | 0 1 … |        row 1  | p0 p1 … |
//
// The parameters' gradients are sums along the other axis, over blocks of rows, and then (column_sums.hpp) over the
// blocks. How many blocks there are is the caller's to say; the order of every sum depends on the shape alone.
#pragma once

#include <sylvit/float16.hpp>

#include "kernels/attention_common.hpp"
#include "kernels/description.hpp"
#include "kernels/row_loop.hpp"
#include "kernels/sycl.hpp"

namespace sylvit::kernels {

struct LayerNormConfig {
  int lanes;
  int columns;  ///< channels that a lane takes side by side
  int rows;     ///< rows of a work-group

  static constexpr const char *name = "LayerNormConfig", *record = "layer_norm";
  template <class Visit>
  static constexpr void members(const Visit& visit) {
    visit("lanes", &LayerNormConfig::lanes);
    visit("columns", &LayerNormConfig::columns);
    visit("rows", &LayerNormConfig::rows);
  }
  template <class Tries>
  static constexpr void search(const Tries& tries) {
    tries("rows", Step::one, 1, 2, 4, 8, 16, 32, 64, 128);
  }
  constexpr int sub_group_size() const { return sub_group_of_lanes(lanes); }
  constexpr int width() const { return lanes * columns; }
  constexpr int at_once() const { return rows < lanes ? rows : lanes; }
  constexpr int pitch() const { return lanes + 1; }
  constexpr int work_items() const { return lanes; }
  /// Partial sums of two kinds, and four numbers a row.
  constexpr int local_floats() const { return at_once() * (2 * pitch() + 4); }
  constexpr bool valid() const { return lanes > 0 && columns > 0 && rows > 0; }
};

/// totals[kind][r] = Σ_c of what row(r) gives for column c, for the rows taken at once. All lanes must come here; they
/// leave with the totals visible.
template <LayerNormConfig config, int kinds, class Row>
[[gnu::always_inline]] inline void add_rows(const sycl::nd_item<3>& item, int channels, float* partial, float* totals,
                                            const Row& row) {
  const int lane = lane_of(item);
  for (int r = 0; r < config.at_once(); ++r) {
    const Sums<kinds> sums = sum_columns<config.lanes, config.columns, kinds>(channels, lane, row(r));
#pragma unroll
    for (int kind = 0; kind < kinds; ++kind)
      partial[(kind * config.at_once() + r) * config.pitch() + lane] = sums.value[kind];
  }
  barrier(item);
  if (config.at_once() == config.lanes || lane < config.at_once()) {
#pragma unroll
    for (int kind = 0; kind < kinds; ++kind) {
      float total = 0.0F;
      for (int x = 0; x < config.lanes; ++x) total += partial[(kind * config.at_once() + lane) * config.pitch() + x];
      totals[kind * config.at_once() + lane] = total;
    }
  }
  barrier(item);
}

/// The parameters' share of a channel, 1 and 0 where there are none.
struct LayerNormParameter {
  const float* values;
  float otherwise;

  [[gnu::always_inline]] float at(int c) const { return values != nullptr ? values[c] : otherwise; }
};

/// Launched over (batch, heads, ceil(length / config.rows)) work-groups, as LayerNormBackward is.
struct LayerNormForwardArguments {
  const void* in;
  void* out;
  const float* weight;  ///< [channels]; null: 1
  const float* bias;    ///< [channels]; null: 0
  float* statistics;    ///< [batch, heads, length, 2]: mean and r of each row; or null
  AttentionStrides in_strides;
  AttentionStrides out_strides;
  int heads;
  int length;
  int channels;
  float epsilon;
};

template <class T, LayerNormConfig config>
struct LayerNormForward {
  using Arguments = LayerNormForwardArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    const Arguments args = arguments;
    const std::int64_t batch = group_of(item, 0);
    const std::int64_t head = group_of(item, 1);
    const int lane = lane_of(item);
    const T* in = static_cast<const T*>(args.in) + args.in_strides.at(batch, head);
    T* out = static_cast<T*>(args.out) + args.out_strides.at(batch, head);
    const std::int64_t head_row = (batch * args.heads + head) * args.length;
    const LayerNormParameter weight{args.weight, 1.0F};
    const LayerNormParameter bias{args.bias, 0.0F};
    float* mean = local + 2 * config.at_once() * config.pitch();
    float* deviation = mean + config.at_once();
    const float per_channel = 1.0F / static_cast<float>(args.channels);
    const int first = static_cast<int>(group_of(item, 2)) * config.rows;
    const int end = first + config.rows < args.length ? first + config.rows : args.length;
    for (int row0 = first; row0 < end; row0 += config.at_once()) {
      // Rows beyond the last are the last again, and are not written.
      const auto row_of = [&](int r) __attribute__((always_inline)) {
        return in + (row0 + r < end ? row0 + r : end - 1) * args.in_strides.row;
      };
      add_rows<config, 1>(
          item, args.channels, local, mean, [&](int r) __attribute__((always_inline)) {
            return [from = row_of(r)](int c) __attribute__((always_inline)) {
              return Sums<1>{{static_cast<float>(from[c])}};
            };
          });
      add_rows<config, 1>(
          item, args.channels, local, deviation, [&](int r) __attribute__((always_inline)) {
            return [ from = row_of(r), centre = mean[r] * per_channel ](int c) __attribute__((always_inline)) {
              const float centred = static_cast<float>(from[c]) - centre;
              return Sums<1>{{centred * centred}};
            };
          });
      for (int r = 0; r < config.at_once() && row0 + r < end; ++r) {
        const float centre = mean[r] * per_channel;
        const float factor = sycl::rsqrt(deviation[r] * per_channel + args.epsilon);
        const T* from = row_of(r);
        T* to = out + (row0 + r) * args.out_strides.row;
        each_column<config.lanes, config.columns>(
            args.channels, lane,
            [&](int c) __attribute__((always_inline)) {
              return sycl::fma((static_cast<float>(from[c]) - centre) * factor, weight.at(c), bias.at(c));
            },
            [&](int c, float value) __attribute__((always_inline)) { to[c] = static_cast<T>(value); });
      }
      if (args.statistics != nullptr && lane < config.at_once() && row0 + lane < end) {
        args.statistics[(head_row + row0 + lane) * 2] = mean[lane] * per_channel;
        args.statistics[(head_row + row0 + lane) * 2 + 1] = sycl::rsqrt(deviation[lane] * per_channel + args.epsilon);
      }
      barrier(item);
    }
  }
};

struct LayerNormForwardKernel : Description<LayerNormConfig, LayerNormForwardArguments, Parameters::type> {
  static constexpr const char *header = "layer_norm.hpp", *functor = "LayerNormForward",
                              *arguments = "LayerNormForwardArguments";
  static constexpr int local_floats(const LayerNormConfig& config) { return config.local_floats(); }
};

struct LayerNormBackwardArguments {
  const void* in;
  const void* out_gradient;
  const void* residual;  ///< added to the gradient, may be in_gradient itself; or null
  void* in_gradient;
  const float* weight;            ///< null: 1
  const float* known_statistics;  ///< what the forward pass wrote; null: computed here
  float* statistics;              ///< where to write those computed here; or null
  const std::int32_t* lengths;    ///< Rows of each sequence; null: all. Rows beyond get zeros, whatever they hold.
  AttentionStrides in_strides;
  AttentionStrides out_gradient_strides;
  AttentionStrides residual_strides;
  AttentionStrides in_gradient_strides;
  int heads;
  int length;
  int channels;
  float epsilon;
};

template <class T, LayerNormConfig config>
struct LayerNormBackward {
  using Arguments = LayerNormBackwardArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    const Arguments args = arguments;
    const std::int64_t batch = group_of(item, 0);
    const std::int64_t head = group_of(item, 1);
    const int lane = lane_of(item);
    const T* in = static_cast<const T*>(args.in) + args.in_strides.at(batch, head);
    const T* out_gradient = static_cast<const T*>(args.out_gradient) + args.out_gradient_strides.at(batch, head);
    T* in_gradient = static_cast<T*>(args.in_gradient) + args.in_gradient_strides.at(batch, head);
    const std::int64_t head_row = (batch * args.heads + head) * args.length;
    const int present = keys_of(args.lengths, batch, args.length);
    const LayerNormParameter weight{args.weight, 1.0F};
    float* centre = local + 2 * config.at_once() * config.pitch();
    float* factor = centre + config.at_once();
    float* sums = factor + config.at_once();
    const float per_channel = 1.0F / static_cast<float>(args.channels);
    const int first = static_cast<int>(group_of(item, 2)) * config.rows;
    const int end = first + config.rows < args.length ? first + config.rows : args.length;
    for (int row0 = first; row0 < end; row0 += config.at_once()) {
      const auto row_at = [&](int r) __attribute__((always_inline)) { return row0 + r < end ? row0 + r : end - 1; };
      const auto in_of = [&](int r) __attribute__((always_inline)) { return in + row_at(r) * args.in_strides.row; };
      const auto out_gradient_of = [&](int r) __attribute__((always_inline)) {
        return out_gradient + row_at(r) * args.out_gradient_strides.row;
      };
      if (args.known_statistics != nullptr) {
        if (lane < config.at_once()) {
          centre[lane] = args.known_statistics[(head_row + row_at(lane)) * 2];
          factor[lane] = args.known_statistics[(head_row + row_at(lane)) * 2 + 1];
        }
      } else {
        add_rows<config, 1>(
            item, args.channels, local, centre, [&](int r) __attribute__((always_inline)) {
              return [from = in_of(r)](int c) __attribute__((always_inline)) {
                return Sums<1>{{static_cast<float>(from[c])}};
              };
            });
        add_rows<config, 1>(
            item, args.channels, local, factor, [&](int r) __attribute__((always_inline)) {
              return [ from = in_of(r), mean = centre[r] * per_channel ](int c) __attribute__((always_inline)) {
                const float centred = static_cast<float>(from[c]) - mean;
                return Sums<1>{{centred * centred}};
              };
            });
        if (lane < config.at_once()) {
          centre[lane] *= per_channel;
          factor[lane] = sycl::rsqrt(factor[lane] * per_channel + args.epsilon);
          if (args.statistics != nullptr && row0 + lane < end) {
            args.statistics[(head_row + row0 + lane) * 2] = centre[lane];
            args.statistics[(head_row + row0 + lane) * 2 + 1] = factor[lane];
          }
        }
      }
      barrier(item);
      add_rows<config, 2>(
          item, args.channels, local, sums, [&](int r) __attribute__((always_inline)) {
            return [ from = in_of(r), gradients = out_gradient_of(r), mean = centre[r], weight ](int c)
                __attribute__((always_inline)) {
              const float g = static_cast<float>(gradients[c]) * weight.at(c);
              return Sums<2>{{g, g * (static_cast<float>(from[c]) - mean)}};
            };
          });
      for (int r = 0; r < config.at_once() && row0 + r < end; ++r) {
        const float mean = centre[r];
        const float scale = factor[r];
        const float mean_gradient = sums[r] * per_channel;
        const float mean_projection = sums[config.at_once() + r] * per_channel * scale;
        const bool is_present = row0 + r < present;
        const T* from = in_of(r);
        const T* gradients = out_gradient_of(r);
        T* to = in_gradient + (row0 + r) * args.in_gradient_strides.row;
        const auto gradient = [&](int c) __attribute__((always_inline)) {
          const float normed = (static_cast<float>(from[c]) - mean) * scale;
          const float value =
              scale * (static_cast<float>(gradients[c]) * weight.at(c) - mean_gradient - normed * mean_projection);
          return is_present ? value : 0.0F;
        };
        const auto store = [&](int c, float value) __attribute__((always_inline)) { to[c] = static_cast<T>(value); };
        if (args.residual == nullptr) {
          each_column<config.lanes, config.columns>(args.channels, lane, gradient, store);
        } else {
          const T* residual = static_cast<const T*>(args.residual) + args.residual_strides.at(batch, head) +
                              (row0 + r) * args.residual_strides.row;
          each_column<config.lanes, config.columns>(
              args.channels,
              lane, [&](int c) __attribute__((always_inline)) { return static_cast<float>(residual[c]) + gradient(c); },
              store);
        }
      }
      barrier(item);
    }
  }
};

struct LayerNormBackwardKernel : Description<LayerNormConfig, LayerNormBackwardArguments, Parameters::type> {
  static constexpr const char *header = "layer_norm.hpp", *functor = "LayerNormBackward",
                              *arguments = "LayerNormBackwardArguments";
  static constexpr int local_floats(const LayerNormConfig& config) { return config.local_floats(); }
};

/// Each block's share of the parameters' gradients: launched over (1, blocks, ceil(channels / config.width())).
struct LayerNormParametersArguments {
  const void* in;
  const void* out_gradient;
  const float* statistics;      ///< [batch, heads, length, 2]
  const std::int32_t* lengths;  ///< As in the backward pass.
  float* partial;               ///< [blocks, 2, channels]: dweight and dbias
  AttentionStrides in_strides;
  AttentionStrides out_gradient_strides;
  std::int64_t rows;           ///< batch * heads * length
  std::int64_t rows_of_block;  ///< Blocks do not know where a head begins.
  int heads;
  int length;
  int channels;
};

template <class T, LayerNormConfig config>
struct LayerNormParameters {
  using Arguments = LayerNormParametersArguments;

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    const std::int64_t block = group_of(item, 1);
    const int lane = lane_of(item);
    const int first = static_cast<int>(group_of(item, 2)) * config.width();
    const std::int64_t first_row = block * args.rows_of_block;
    const std::int64_t end = first_row + args.rows_of_block < args.rows ? first_row + args.rows_of_block : args.rows;
    float* partial = args.partial + block * 2 * args.channels;
    if (first + config.width() <= args.channels) {
      add<config.columns>(args, first_row, end, first + lane, partial);
    } else {
      for (int c = first + lane; c < args.channels; c += config.lanes) add<1>(args, first_row, end, c, partial);
    }
  }

 private:
  template <int columns>
  [[gnu::always_inline]] static void add(const Arguments& args, std::int64_t first_row, std::int64_t end, int column,
                                         float* partial) {
    float weight_gradient[columns] = {};
    float bias_gradient[columns] = {};
    for (std::int64_t row = first_row; row < end;) {
      // The rows up to the end of the block, the head or the sequence, whichever comes first.
      const std::int64_t head_of_all = row / args.length;
      const std::int64_t batch = head_of_all / args.heads;
      const std::int64_t head = head_of_all - batch * args.heads;
      const std::int64_t from = row - head_of_all * args.length;
      const std::int64_t left = args.length - from < end - row ? args.length - from : end - row;
      const std::int64_t present = keys_of(args.lengths, batch, args.length) - from;
      const std::int64_t count = present < left ? present : left;
      const T* in =
          static_cast<const T*>(args.in) + args.in_strides.at(batch, head) + from * args.in_strides.row + column;
      const T* out_gradient = static_cast<const T*>(args.out_gradient) + args.out_gradient_strides.at(batch, head) +
                              from * args.out_gradient_strides.row + column;
      const float* statistics = args.statistics + row * 2;
      for (std::int64_t i = 0; i < count; ++i) {
        const float mean = statistics[i * 2];
        const float factor = statistics[i * 2 + 1];
#pragma unroll
        for (int x = 0; x < columns; ++x) {
          const float gradient = static_cast<float>(out_gradient[i * args.out_gradient_strides.row + x * config.lanes]);
          const float value = static_cast<float>(in[i * args.in_strides.row + x * config.lanes]);
          weight_gradient[x] = sycl::fma(gradient, (value - mean) * factor, weight_gradient[x]);
          bias_gradient[x] += gradient;
        }
      }
      row += left;
    }
#pragma unroll
    for (int x = 0; x < columns; ++x) {
      partial[column + x * config.lanes] = weight_gradient[x];
      partial[args.channels + column + x * config.lanes] = bias_gradient[x];
    }
  }
};

struct LayerNormParametersKernel : Description<LayerNormConfig, LayerNormParametersArguments, Parameters::type> {
  static constexpr const char *header = "layer_norm.hpp", *functor = "LayerNormParameters",
                              *arguments = "LayerNormParametersArguments";
};

}  // namespace sylvit::kernels
