#include "data/labels.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sylvit::data {

namespace {

void check_number(std::int64_t number, const std::string& image) {
  if (number < 0 || number >= class_limit)
    throw Error(image + " has the label " + std::to_string(number) + ", and labels are numbers from 0 to " +
                std::to_string(class_limit - 1));
}

}  // namespace

void Labels::add(std::int64_t number, const std::string& image) {
  check_number(number, image);
  numbers_.push_back(static_cast<std::int32_t>(number));
  if (!ends_.empty()) ends_.push_back(numbers_.size());
}

void Labels::add(std::vector<std::int64_t> numbers, const std::string& image) {
  if (numbers.size() == 1) return add(numbers.front(), image);
  keep_ends();
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
  for (const std::int64_t number : numbers) {
    check_number(number, image);
    numbers_.push_back(static_cast<std::int32_t>(number));
  }
  ends_.push_back(numbers_.size());
}

void Labels::add_soft(std::span<const float> weights, const std::string& image) {
  keep_ends();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0 && weights[i] <= 1))
      throw Error(image + " has the weight " + std::to_string(weights[i]) + " for class " + std::to_string(i) +
                  ", and weights are numbers from 0 to 1");
    if (weights[i] == 0) continue;
    numbers_.push_back(static_cast<std::int32_t>(i));
    weights_.push_back(weights[i]);
  }
  ends_.push_back(numbers_.size());
}

void Labels::keep_ends() {
  if (!ends_.empty()) return;
  ends_.resize(numbers_.size());
  std::iota(ends_.begin(), ends_.end(), std::size_t{1});
}

std::pair<std::size_t, std::size_t> Labels::range(std::int64_t image) const {
  const auto i = static_cast<std::size_t>(image);
  if (ends_.empty()) return {i, 1};
  const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
  return {begin, ends_[i] - begin};
}

std::span<const std::int32_t> Labels::of(std::int64_t image) const {
  const auto [begin, count] = range(image);
  return std::span(numbers_).subspan(begin, count);
}

std::span<const float> Labels::weights_of(std::int64_t image) const {
  if (weights_.empty()) return {};
  const auto [begin, count] = range(image);
  return std::span(weights_).subspan(begin, count);
}

std::int64_t Labels::largest() const { return numbers_.empty() ? -1 : *std::ranges::max_element(numbers_); }

void Labels::check(std::int64_t classes, const std::function<std::string(std::int64_t)>& name) const {
  if (largest() < classes) return;
  for (std::int64_t image = 0; image < images(); ++image)
    for (const std::int32_t number : of(image))
      if (number >= classes)
        throw Error(name(image) + " has the label " + std::to_string(number) + ", and there are " +
                    std::to_string(classes) + " classes, from 0 on");
}

void Labels::renumber(std::span<const std::int32_t> numbers) {
  for (std::int32_t& number : numbers_) number = numbers[static_cast<std::size_t>(number)];
  if (ends_.empty() || !weights_.empty()) return;
  for (std::int64_t image = 0; image < images(); ++image) {
    const auto [begin, count] = range(image);
    std::ranges::sort(std::span(numbers_).subspan(begin, count));
  }
}

}  // namespace sylvit::data
