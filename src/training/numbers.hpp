// The numbers of a saved state, read back.
#pragma once

#include <sylvit/error.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>

namespace sylvit::training {

/// Hands out numbers by name, and says which is missing, wrong or left over.
class NumberReader {
 public:
  /// `whose` completes "the state of …".
  NumberReader(const std::map<std::string, double>& numbers, std::string_view whose)
      : numbers_(numbers), whose_("the state of " + std::string(whose)) {}

  bool has(const std::string& name) const { return numbers_.contains(name); }
  double number(const std::string& name) {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) throw Error(whose_ + " has no number \"" + name + "\"");
    ++taken_;
    return found->second;
  }
  /// A whole number, not negative, that a double tells from its neighbours.
  std::int64_t count(const std::string& name, std::int64_t most = std::int64_t{1} << 53U) {
    const double value = number(name);
    if (!(value >= 0 && value <= static_cast<double>(most) && value == std::floor(value))) fail(name, value);
    return static_cast<std::int64_t>(value);
  }
  /// A positive f32.
  float scale(const std::string& name) {
    const double value = number(name);
    if (!(value > 0 && value <= static_cast<double>(std::numeric_limits<float>::max()))) fail(name, value);
    return static_cast<float>(value);
  }
  /// Throws Error if there are numbers that nobody has asked for. Each is asked for once.
  void finish() const {
    if (taken_ != numbers_.size())
      throw Error(whose_ + " has " + std::to_string(numbers_.size()) + " numbers, and " + std::to_string(taken_) +
                  " of them are known here");
  }

 private:
  [[noreturn]] void fail(const std::string& name, double value) const {
    throw Error(whose_ + " has " + std::to_string(value) + " for \"" + name + "\", which it cannot be");
  }

  const std::map<std::string, double>& numbers_;
  std::string whose_;
  std::size_t taken_ = 0;
};

}  // namespace sylvit::training
