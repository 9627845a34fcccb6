// All that the program prints. Texts in it may come from files, paths and drivers of others, so every text that is
// filled in goes through base::printable(); the format, which is ours, may have line ends.
#pragma once

#include <cstdio>
#include <fmt/core.h>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/printable.hpp"

namespace sylvit::terminal {

/// What is filled in: a text made printable, anything else itself.
template <class T>
auto filled_in(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>)
    return base::printable(value);
  else
    return value;
}

/// As fmt::print(): throws when the file cannot be written.
template <class... Args>
void print(std::FILE* file, fmt::format_string<const Args&...> format, const Args&... args) {
  const auto fill_in = [&](const auto&... values) {
    fmt::vprint(file, fmt::string_view(format), fmt::make_format_args(values...));
  };
  fill_in(filled_in(args)...);
}

template <class... Args>
void print(fmt::format_string<const Args&...> format, const Args&... args) {
  terminal::print<Args...>(stdout, format, args...);
}

/// A JSON document on standard output, in ASCII alone: whoever reads it gets the texts as they are, and a terminal gets
/// no character that could steer it. Bytes that are not UTF-8 (paths may have any) are replaced rather than fatal.
template <class Json>
void print_json(const Json& json) {
  fmt::print("{}\n", json.dump(2, ' ', true, Json::error_handler_t::replace));
}

}  // namespace sylvit::terminal
