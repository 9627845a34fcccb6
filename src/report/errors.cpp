#include "report/errors.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

namespace sylvit::report {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// What such shares of the values do not exceed, asked in ascending order, so that each has less left to look through.
class Percentiles {
 public:
  explicit Percentiles(std::vector<double>& values) : values_(values), from_(values.begin()) {}

  double operator()(double share) {
    const auto rank = static_cast<std::ptrdiff_t>(std::ceil(share * static_cast<double>(values_.size()))) - 1;
    const auto at = values_.begin() + std::max<std::ptrdiff_t>(rank, 0);
    std::nth_element(from_, at, values_.end());
    from_ = at;
    return *at;
  }

 private:
  std::vector<double>& values_;
  std::vector<double>::iterator from_;
};

template <class Got, class Expected>
Errors compared(std::span<const Got> got, std::span<const Expected> expected) {
  if (got.size() != expected.size())
    throw Error(fmt::format("{} values cannot be compared with {}", got.size(), expected.size()));
  Errors errors;
  if (got.empty()) return errors;
  double largest = 0;
  double squares_got = 0;
  double squares_expected = 0;
  double squares_difference = 0;
  std::vector<double> differences(got.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto a = static_cast<double>(got[i]);
    const auto b = static_cast<double>(expected[i]);
    const double difference = std::abs(a - b);
    differences[i] = difference;
    largest = std::max(largest, std::abs(b));
    squares_got += a * a;
    squares_expected += b * b;
    squares_difference += difference * difference;
  }
  if (!std::isfinite(squares_difference)) return {infinity, infinity, infinity, infinity, infinity, infinity, infinity};
  // Against zeros, differences count as they are.
  const double scale = largest > 0 ? 1 / largest : 1;
  errors.max = *std::ranges::max_element(differences) * scale;
  errors.l2 = std::sqrt(squares_difference) / (squares_expected > 0 ? std::sqrt(squares_expected) : 1);
  if (squares_got > 0 && squares_expected > 0) {
    // 1 - a·b/(|a||b|) = (|a - b|² - (|a| - |b|)²) / (2|a||b|), which keeps its digits where the cosine is nearly 1.
    const double norm_got = std::sqrt(squares_got);
    const double norm_expected = std::sqrt(squares_expected);
    const double by_length = (norm_got - norm_expected) * (norm_got - norm_expected);
    errors.cosine_distance = std::max(0.0, (squares_difference - by_length) / (2 * norm_got * norm_expected));
  }
  Percentiles percentile(differences);
  errors.p50 = percentile(0.5) * scale;
  errors.p90 = percentile(0.9) * scale;
  errors.p99 = percentile(0.99) * scale;
  errors.p999 = percentile(0.999) * scale;
  return errors;
}

template <class Logit>
std::vector<std::int64_t> top_classes(std::span<const Logit> logits, std::int64_t classes) {
  std::vector<std::int64_t> top;
  const auto size = static_cast<std::size_t>(classes);
  for (std::size_t begin = 0; begin + size <= logits.size(); begin += size) {
    const auto row = logits.subspan(begin, size);
    top.push_back(std::ranges::max_element(row) - row.begin());
  }
  return top;
}

}  // namespace

Errors errors_of(std::span<const float> got, std::span<const double> expected) { return compared(got, expected); }
Errors errors_of(std::span<const float> got, std::span<const float> expected) { return compared(got, expected); }
Errors errors_of(std::span<const double> got, std::span<const double> expected) { return compared(got, expected); }

std::vector<std::int64_t> top_classes_of(std::span<const float> logits, std::int64_t classes) {
  return top_classes(logits, classes);
}
std::vector<std::int64_t> top_classes_of(std::span<const double> logits, std::int64_t classes) {
  return top_classes(logits, classes);
}

double agreement(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  const std::size_t size = std::min(a.size(), b.size());
  if (size == 0) return unknown;
  std::size_t same = 0;
  for (std::size_t i = 0; i < size; ++i) same += a[i] == b[i] ? 1 : 0;
  return static_cast<double>(same) / static_cast<double>(size);
}

}  // namespace sylvit::report
