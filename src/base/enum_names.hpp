// Enumerators and their names.
#pragma once

#include <sylvit/error.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.hpp"

namespace sylvit::base {

/// The name of an enumerator; names stand in the order of the enumerators.
template <class Enum, std::size_t count>
constexpr std::string_view name_at(const std::array<std::string_view, count>& names, Enum value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < count ? names[index] : "unknown";
}

/// The one of `values` that has this name. Throws Error that lists the known names and suggests the nearest: "there is
/// no score "rely"; did you mean relu? known scores: …".
template <class Values>
auto value_named(std::string_view name, const Values& values, const std::string& what, const std::string& plural) {
  std::vector<std::string> known;
  std::string list;
  for (const auto value : values) {
    if (name_of(value) == name) return value;
    known.emplace_back(name_of(value));
    list += (list.empty() ? "" : ", ") + known.back();
  }
  throw Error("there is no " + what + " \"" + shown(name) + "\"",
              suggestion(name, known) + "known " + plural + ": " + list);
}

}  // namespace sylvit::base
