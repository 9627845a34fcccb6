// What a Vision Transformer does between its products, element by element over [rows, columns]; every tensor has a row
// stride of its own and contiguous rows:
//
//     BiasAdd           out = in + bias (+ residual)
//     BiasActivation    u = in + bias,  a = h(u)                    h a score of scores.hpp: Gelu or GeluTanh
//     ActivationBackward  du = da · h'(u),  a = h(u)
//     Multiply          out = x · y
//     MultiplyBackward  dx = dout · y,  dy = dout · x
//
// A work-group owns `rows` rows and walks along each of them (row_loop.hpp). An element is read before it is written,
// and by one work-item only: any output may lie exactly where an input does.
//
// u is rounded to its type before h sees it, so that the backward pass computes the same a from the u it is given.
#pragma once

#include <sylvit/float16.hpp>

#include "kernels/row_loop.hpp"
#include "kernels/scores.hpp"
#include "kernels/sycl.hpp"

namespace sylvit::kernels {

struct ActivationConfig {
  int work_items;
  int columns;  ///< columns that a work-item takes side by side
  int rows;     ///< rows of a work-group

  constexpr bool valid() const { return work_items > 0 && columns > 0 && rows > 0; }
};

/// Two results of an element.
struct TwoValues {
  float first;
  float second;
};

/// Row and column extents and the walk over them: launched over (1, 1, ceil(rows / config.rows)) work-groups.
template <ActivationConfig config, class Row>
[[gnu::always_inline]] inline void each_row(const sycl::nd_item<3>& item, std::int64_t rows, const Row& row) {
  const std::int64_t first = group_of(item, 2) * config.rows;
  const std::int64_t end = first + config.rows < rows ? first + config.rows : rows;
  for (std::int64_t r = first; r < end; ++r) row(r);
}

/// A bias, or zeros where there is none. It is then loaded from a row that is there, and not looked at: a select costs
/// nothing in the loop, a branch much.
template <class T>
struct Bias {
  const T* from;
  bool given;

  [[gnu::always_inline]] Bias(const void* bias, const T* row)
      : from(bias != nullptr ? static_cast<const T*>(bias) : row), given(bias != nullptr) {}
  [[gnu::always_inline]] float at(int c) const {
    const float value = static_cast<float>(from[c]);
    return given ? value : 0.0F;
  }
};

struct BiasAddArguments {
  const void* in;
  const void* bias;      ///< [columns]; null: 0
  const void* residual;  ///< or null
  void* out;
  std::int64_t in_stride;
  std::int64_t residual_stride;
  std::int64_t out_stride;
  std::int64_t rows;
  int columns;
};

template <class T, ActivationConfig config>
struct BiasAdd {
  using Arguments = BiasAddArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    const int lane = lane_of(item);
    each_row<config>(
        item, args.rows, [&](std::int64_t r) __attribute__((always_inline)) {
          const T* in = static_cast<const T*>(args.in) + r * args.in_stride;
          T* out = static_cast<T*>(args.out) + r * args.out_stride;
          const Bias<T> bias(args.bias, in);
          const auto sum = [&](int c) __attribute__((always_inline)) { return static_cast<float>(in[c]) + bias.at(c); };
          const auto store = [&](int c, float value) __attribute__((always_inline)) { out[c] = static_cast<T>(value); };
          if (args.residual == nullptr) {
            each_column<config.work_items, config.columns>(args.columns, lane, sum, store);
          } else {
            const T* residual = static_cast<const T*>(args.residual) + r * args.residual_stride;
            each_column<config.work_items, config.columns>(
                args.columns,
                lane, [&](int c) __attribute__((always_inline)) { return sum(c) + static_cast<float>(residual[c]); },
                store);
          }
        });
  }
};

struct BiasActivationArguments {
  const void* in;
  const void* bias;  ///< [columns]; null: 0
  void* kept;        ///< u; or null
  void* out;
  std::int64_t in_stride;
  std::int64_t kept_stride;
  std::int64_t out_stride;
  std::int64_t rows;
  int columns;
};

template <class Activation, class T, ActivationConfig config>
struct BiasActivation {
  using Arguments = BiasActivationArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    const int lane = lane_of(item);
    each_row<config>(
        item, args.rows, [&](std::int64_t r) __attribute__((always_inline)) {
          const T* in = static_cast<const T*>(args.in) + r * args.in_stride;
          T* out = static_cast<T*>(args.out) + r * args.out_stride;
          const Bias<T> bias(args.bias, in);
          const auto values = [&](int c) __attribute__((always_inline)) {
            const float u = static_cast<float>(static_cast<T>(static_cast<float>(in[c]) + bias.at(c)));
            return TwoValues{u, Activation::value(u)};
          };
          if (args.kept == nullptr) {
            each_column<config.work_items, config.columns>(
                args.columns, lane, values, [&](int c, const TwoValues& value) __attribute__((always_inline)) {
                  out[c] = static_cast<T>(value.second);
                });
          } else {
            T* kept = static_cast<T*>(args.kept) + r * args.kept_stride;
            each_column<config.work_items, config.columns>(
                args.columns, lane, values, [&](int c, const TwoValues& value) __attribute__((always_inline)) {
                  kept[c] = static_cast<T>(value.first);
                  out[c] = static_cast<T>(value.second);
                });
          }
        });
  }
};

struct ActivationBackwardArguments {
  const void* kept;          ///< u
  const void* out_gradient;  ///< da
  void* in_gradient;         ///< du
  void* out;                 ///< a; or null
  std::int64_t kept_stride;
  std::int64_t out_gradient_stride;
  std::int64_t in_gradient_stride;
  std::int64_t out_stride;
  std::int64_t rows;
  int columns;
};

template <class Activation, class T, ActivationConfig config>
struct ActivationBackward {
  using Arguments = ActivationBackwardArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    const int lane = lane_of(item);
    each_row<config>(
        item, args.rows, [&](std::int64_t r) __attribute__((always_inline)) {
          const T* kept = static_cast<const T*>(args.kept) + r * args.kept_stride;
          const T* out_gradient = static_cast<const T*>(args.out_gradient) + r * args.out_gradient_stride;
          T* in_gradient = static_cast<T*>(args.in_gradient) + r * args.in_gradient_stride;
          const auto gradient = [&](int c) __attribute__((always_inline)) {
            return static_cast<float>(out_gradient[c]) * Activation::slope(static_cast<float>(kept[c]));
          };
          if (args.out == nullptr) {
            each_column<config.work_items, config.columns>(
                args.columns, lane, gradient, [&](int c, float value) __attribute__((always_inline)) {
                  in_gradient[c] = static_cast<T>(value);
                });
          } else {
            T* out = static_cast<T*>(args.out) + r * args.out_stride;
            each_column<config.work_items, config.columns>(
                args.columns, lane,
                [&](int c) __attribute__((always_inline)) {
                  return TwoValues{gradient(c), Activation::value(static_cast<float>(kept[c]))};
                },
                [&](int c, const TwoValues& value) __attribute__((always_inline)) {
                  in_gradient[c] = static_cast<T>(value.first);
                  out[c] = static_cast<T>(value.second);
                });
          }
        });
  }
};

struct MultiplyArguments {
  const void* x;
  const void* y;
  void* out;
  std::int64_t x_stride;
  std::int64_t y_stride;
  std::int64_t out_stride;
  std::int64_t rows;
  int columns;
};

template <class T, ActivationConfig config>
struct Multiply {
  using Arguments = MultiplyArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    each_row<config>(
        item, args.rows, [&](std::int64_t r) __attribute__((always_inline)) {
          const T* x = static_cast<const T*>(args.x) + r * args.x_stride;
          const T* y = static_cast<const T*>(args.y) + r * args.y_stride;
          T* out = static_cast<T*>(args.out) + r * args.out_stride;
          each_column<config.work_items, config.columns>(
              args.columns, lane_of(item),
              [&](int c) __attribute__((always_inline)) { return static_cast<float>(x[c]) * static_cast<float>(y[c]); },
              [&](int c, float value) __attribute__((always_inline)) { out[c] = static_cast<T>(value); });
        });
  }
};

struct MultiplyBackwardArguments {
  const void* x;
  const void* y;
  const void* out_gradient;
  void* x_gradient;
  void* y_gradient;
  std::int64_t x_stride;
  std::int64_t y_stride;
  std::int64_t out_gradient_stride;
  std::int64_t x_gradient_stride;
  std::int64_t y_gradient_stride;
  std::int64_t rows;
  int columns;
};

template <class T, ActivationConfig config>
struct MultiplyBackward {
  using Arguments = MultiplyBackwardArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    each_row<config>(
        item, args.rows, [&](std::int64_t r) __attribute__((always_inline)) {
          const T* x = static_cast<const T*>(args.x) + r * args.x_stride;
          const T* y = static_cast<const T*>(args.y) + r * args.y_stride;
          const T* out_gradient = static_cast<const T*>(args.out_gradient) + r * args.out_gradient_stride;
          T* x_gradient = static_cast<T*>(args.x_gradient) + r * args.x_gradient_stride;
          T* y_gradient = static_cast<T*>(args.y_gradient) + r * args.y_gradient_stride;
          each_column<config.work_items, config.columns>(
              args.columns, lane_of(item),
              [&](int c) __attribute__((always_inline)) {
                const float gradient = static_cast<float>(out_gradient[c]);
                return TwoValues{gradient * static_cast<float>(y[c]), gradient * static_cast<float>(x[c])};
              },
              [&](int c, const TwoValues& value) __attribute__((always_inline)) {
                x_gradient[c] = static_cast<T>(value.first);
                y_gradient[c] = static_cast<T>(value.second);
              });
        });
  }
};

}  // namespace sylvit::kernels
