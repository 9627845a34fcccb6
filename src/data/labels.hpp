// The classes of every image of a source, as the source numbers them.
#pragma once

#include <sylvit/data.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace sylvit::data {

/// So many classes at most: labels beyond are mistakes, and nothing is allocated for them.
inline constexpr std::int64_t class_limit = 1 << 24;

class Labels {
 public:
  /// One class.
  void add(std::int64_t number, const std::string& image);
  /// Any number of them, sorted and without repetition afterwards; and soft ones.
  void add(std::vector<std::int64_t> numbers, const std::string& image);
  void add_soft(std::span<const float> weights, const std::string& image);

  std::int64_t images() const noexcept {
    return static_cast<std::int64_t>(ends_.empty() ? numbers_.size() : ends_.size());
  }
  TargetKind kind() const noexcept {
    return ends_.empty() ? TargetKind::one : weights_.empty() ? TargetKind::several : TargetKind::soft;
  }
  std::span<const std::int32_t> of(std::int64_t image) const;
  /// Empty unless soft.
  std::span<const float> weights_of(std::int64_t image) const;
  /// The largest number, or -1.
  std::int64_t largest() const;
  /// Throws Error when an image has a class beyond; `name` is an image's.
  void check(std::int64_t classes, const std::function<std::string(std::int64_t)>& name) const;
  /// Number i becomes numbers[i].
  void renumber(std::span<const std::int32_t> numbers);

 private:
  /// From one class each to any number.
  void keep_ends();
  std::pair<std::size_t, std::size_t> range(std::int64_t image) const;

  std::vector<std::int32_t> numbers_;  // of all images, back to back
  std::vector<float> weights_;         // of numbers_, if they are soft
  std::vector<std::size_t> ends_;      // where each image's numbers end; empty while each image has one
};

}  // namespace sylvit::data
