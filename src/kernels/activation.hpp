// What a Vision Transformer does between its products, element by element over [rows, columns]; every tensor has a row
// stride of its own and contiguous rows:
//
//     ActivationBackward  du = da · h'(u),  a = h(u)          h a score of scores.hpp: Gelu or GeluTanh
//     Multiply            out = x · y
//     MultiplyBackward    dx = dout · y,  dy = dout · x
//
// (A product's bias, residual and activation belong to the product: gemm.hpp.)
//
// A work-group owns `rows` rows and walks along each of them (row_loop.hpp). An element is read before it is written,
// and by one work-item only: any output may lie exactly where an input does.
#pragma once

#include <sylvit/float16.hpp>

#include "kernels/description.hpp"
#include "kernels/row_loop.hpp"
#include "kernels/scores.hpp"
#include "kernels/sycl.hpp"

namespace sylvit::kernels {

struct ActivationConfig {
  int work_items;
  int columns;  ///< columns that a work-item takes side by side
  int rows;     ///< rows of a work-group

  static constexpr const char *name = "ActivationConfig", *record = "activation";
  template <class Visit>
  static constexpr void members(const Visit& visit) {
    visit("work_items", &ActivationConfig::work_items);
    visit("columns", &ActivationConfig::columns);
    visit("rows", &ActivationConfig::rows);
  }
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

struct ActivationBackwardArguments {
  const void* pre_activation;  ///< u
  const void* out_gradient;    ///< da
  void* in_gradient;           ///< du
  void* out;                   ///< a; or null
  std::int64_t pre_activation_stride;
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
          const T* pre_activation = static_cast<const T*>(args.pre_activation) + r * args.pre_activation_stride;
          const T* out_gradient = static_cast<const T*>(args.out_gradient) + r * args.out_gradient_stride;
          T* in_gradient = static_cast<T*>(args.in_gradient) + r * args.in_gradient_stride;
          const auto gradient = [&](int c) __attribute__((always_inline)) {
            return static_cast<float>(out_gradient[c]) * Activation::slope(static_cast<float>(pre_activation[c]));
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
                  return TwoValues{gradient(c), Activation::value(static_cast<float>(pre_activation[c]))};
                },
                [&](int c, const TwoValues& value) __attribute__((always_inline)) {
                  in_gradient[c] = static_cast<T>(value.first);
                  out[c] = static_cast<T>(value.second);
                });
          }
        });
  }
};

struct ActivationBackwardKernel : Description<ActivationConfig, ActivationBackwardArguments, Parameters::gelu_type> {
  static constexpr const char *header = "activation.hpp", *functor = "ActivationBackward",
                              *arguments = "ActivationBackwardArguments";
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

struct MultiplyKernel : Description<ActivationConfig, MultiplyArguments, Parameters::type> {
  static constexpr const char *header = "activation.hpp", *functor = "Multiply", *arguments = "MultiplyArguments";
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

struct MultiplyBackwardKernel : Description<ActivationConfig, MultiplyBackwardArguments, Parameters::type> {
  static constexpr const char *header = "activation.hpp", *functor = "MultiplyBackward",
                              *arguments = "MultiplyBackwardArguments";
};

}  // namespace sylvit::kernels
