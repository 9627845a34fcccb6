#include "options/numbers.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fmt/core.h>
#include <limits>
#include <optional>

namespace sylvit::options {

namespace {

template <class T>
std::string whole_number_of(const std::string& text, T least) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::size_t digits = text.starts_with('-') ? 1 : 0;
  const bool octal = text.size() > digits + 1 && text[digits] == '0';
  if (error == std::errc{} && end == text.data() + text.size() && !octal && value >= least) return {};
  return fmt::format("must be a whole number from {} to {}, not {}", least, std::numeric_limits<T>::max(), text);
}

std::optional<double> finite_value(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size() || !std::isfinite(value)) return {};
  return value;
}

float rounded(const std::string& text) { return static_cast<float>(finite_value(text).value_or(HUGE_VAL)); }

}  // namespace

std::string whole_number(const std::string& text) {
  return whole_number_of(text, std::numeric_limits<std::int64_t>::min());
}

std::string positive_whole_number(const std::string& text) { return whole_number_of<std::int64_t>(text, 1); }

std::string unsigned_number(const std::string& text) { return whole_number_of<std::uint64_t>(text, 0); }

std::string finite_number(const std::string& text) {
  return std::isfinite(rounded(text)) ? "" : "must be a finite number, not " + text;
}

std::string positive_number(const std::string& text) {
  return std::isnormal(rounded(text)) && rounded(text) > 0 ? "" : "must be positive and finite, not " + text;
}

std::string number_from_zero(const std::string& text) {
  return finite_value(text).value_or(-1) >= 0 ? "" : "must be finite and not negative, not " + text;
}

std::string alpha_number(const std::string& text) {
  const double value = finite_value(text).value_or(-1);
  return value >= 0 && value <= 2 ? "" : "must be 0 to 2, not " + text;
}

}  // namespace sylvit::options
