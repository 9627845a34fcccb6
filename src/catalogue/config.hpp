// A configuration by the names of its members: from numbers by name to the struct, and from the struct to C++ text.
// Generic: all that is known of a configuration stands beside it in src/kernels (kernels/description.hpp).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sylvit::catalogue {

/// Does the configuration depend on the head size? That is no number of a record: the work decides it.
template <class Config>
inline constexpr bool has_head_size = requires(Config config) {
  config.head_size;
};

/// Are its records chosen by the type of the work?
template <class Config>
inline constexpr bool is_by_type = [] {
  if constexpr (requires { Config::by_type; }) return Config::by_type;
  return true;
}();

template <class Config>
constexpr int member_count() {
  int count = 0;
  Config::members([&](const char*, int Config::*) { ++count; });
  return count;
}

/// members() must name all members in the order of their declaration: the type's text lists them by position.
template <class Config>
constexpr bool lists_all_members() {
  if (sizeof(Config) != static_cast<std::size_t>(member_count<Config>()) * sizeof(int)) return false;
  Config numbered{};
  int next = 0;
  Config::members([&](const char*, int Config::*member) { numbered.*member = next++; });
  const auto numbers = std::bit_cast<std::array<int, sizeof(Config) / sizeof(int)>>(numbered);
  for (int i = 0; i < next; ++i)
    if (numbers[static_cast<std::size_t>(i)] != i) return false;
  return true;
}

/// The numbers that a record of the configuration has: its members but the head size, then what only the host needs.
template <class Config>
std::vector<std::string_view> number_names() {
  std::vector<std::string_view> names;
  Config::members([&](const char* name, int Config::*member) {
    if constexpr (has_head_size<Config>)
      if (member == &Config::head_size) return;
    names.emplace_back(name);
  });
  if constexpr (requires { Config::host_number; }) names.emplace_back(Config::host_number);
  return names;
}

/// `number(name)` gives each member. Not checked: valid() tells whether they fit together.
template <class Config, class Number>
Config config_of(const Number& number, std::int64_t head_size) {
  static_assert(lists_all_members<Config>());
  Config config{};
  Config::members([&](const char* name, int Config::*member) {
    if constexpr (has_head_size<Config>)
      if (member == &Config::head_size) {
        config.*member = static_cast<int>(head_size);
        return;
      }
    config.*member = number(std::string_view(name));
  });
  return config;
}

/// "LossConfig{8, 2, 0}"
template <class Config>
std::string text_of(const Config& config) {
  static_assert(lists_all_members<Config>());
  std::string text = Config::name;
  const char* separator = "{";
  Config::members([&](const char*, int Config::*member) {
    text.append(separator).append(std::to_string(config.*member));
    separator = ", ";
  });
  return text.append("}");
}

template <class Config>
int work_items_of(const Config& config) {
  if constexpr (requires { config.work_items(); })
    return config.work_items();
  else
    return config.work_items;
}

template <class Config>
int sub_group_size_of(const Config& config) {
  if constexpr (requires { config.sub_group_size(); })
    return config.sub_group_size();
  else
    return 0;
}

}  // namespace sylvit::catalogue
