// Help with names that a person typed.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sylvit::base {

/// "did you mean NAME? " with the known name that is nearest, if it is near enough to be a typing error; else nothing.
std::string suggestion(std::string_view typed, std::span<const std::string> known);

/// The text as messages show it: cut where it is longer than any name.
std::string shown(std::string_view typed);

}  // namespace sylvit::base
