#pragma once

#include <sylvit/error.hpp>

#include <string>

namespace sylvit::data {

/// Throws Error unless the number is in [least, most]; NaN is in no range.
inline void require_number(const std::string& what, double value, double least, double most) {
  if (value >= least && value <= most) return;
  const auto text = [](double number) {
    std::string digits = std::to_string(number);
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.ends_with('.')) digits.pop_back();
    return digits;
  };
  throw Error(what + " is " + text(value) + ", and should be from " + text(least) + " to " + text(most));
}

}  // namespace sylvit::data
