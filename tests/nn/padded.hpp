// A matrix on the device whose rows are longer than what an operation may touch, with a guard after the last of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "support.hpp"

namespace sylvit::test {

/// Normal numbers, rounded to T so that both sides compute from the same.
template <class T>
std::vector<double> random_numbers(std::size_t count, unsigned seed, double amplitude = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<double> values(count);
  for (double& value : values)
    value = static_cast<double>(static_cast<float>(T(static_cast<float>(amplitude) * normal(generator))));
  return values;
}

/// The same numbers on the device.
template <class T>
OnDevice<T> vector_of(const std::vector<double>& values) {
  std::vector<T> rounded;
  for (const double value : values) rounded.push_back(T(static_cast<float>(value)));
  return {std::span<const T>(rounded), Shape{static_cast<std::int64_t>(rounded.size())}};
}

template <class T>
class Padded {
 public:
  Padded(std::size_t rows, std::size_t columns, std::size_t gap, const std::vector<double>& values = {})
      : rows_(rows),
        columns_(columns),
        pitch_(std::max<std::size_t>(columns + gap, 1)),
        memory_(start(values), Shape{size()}) {}

  TensorView view() const {
    return {memory_.data(),
            dtype_of<T>,
            {static_cast<std::int64_t>(rows_), static_cast<std::int64_t>(columns_)},
            {static_cast<std::int64_t>(pitch_), 1}};
  }

  /// The matrix, dense; a check fails if anything beside it has changed.
  std::vector<double> read() const {
    const std::vector<T> all = memory_.read();
    std::vector<double> values(rows_ * columns_);
    int touched = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t row = i / pitch_;
      const std::size_t column = i % pitch_;
      const auto value = static_cast<double>(static_cast<float>(all[i]));
      if (row < rows_ && column < columns_)
        values[row * columns_ + column] = value;
      else if (value != mark)
        ++touched;
    }
    CHECK(touched == 0);
    return values;
  }

 private:
  static constexpr std::size_t guard = 64;
  static constexpr double mark = -7;

  std::int64_t size() const { return static_cast<std::int64_t>(rows_ * pitch_ + guard); }
  std::span<const T> start(const std::vector<double>& values) {
    host_.assign(rows_ * pitch_ + guard, T(static_cast<float>(mark)));
    for (std::size_t i = 0; i < values.size(); ++i)
      host_[(i / columns_) * pitch_ + i % columns_] = T(static_cast<float>(values[i]));
    return host_;
  }

  std::size_t rows_, columns_, pitch_;
  std::vector<T> host_;
  OnDevice<T> memory_;
};

/// The largest |got - expected| / (bound of the element), where bound(i) is in the numbers' own unit. Below 1 is right;
/// infinity for a NaN or different sizes.
template <class Bound>
double worst(const std::vector<double>& got, const std::vector<double>& expected, const Bound& bound) {
  if (got.size() != expected.size()) return INFINITY;
  double result = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double ratio = std::abs(got[i] - expected[i]) / bound(i);
    if (!(ratio <= result)) result = std::isnan(ratio) ? INFINITY : ratio;
  }
  return result;
}

struct MatrixSize {
  std::size_t rows, columns;
};
inline constexpr MatrixSize odd_sizes[] = {{1, 8}, {1, 1}, {5, 13}, {33, 32}, {197, 385}, {1576, 384}};

}  // namespace sylvit::test
