// What the records of tuning tables may be, by the name of their kernel: which numbers they have, within which bounds,
// and what a work-group with such numbers asks of a device. Made of the configurations' own words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/description.hpp"

namespace sylvit::catalogue {

/// A number of a record and what it may be. The bounds are far above anything useful; they keep the arithmetic on tile
/// numbers, which is int, from overflowing.
struct NumberBounds {
  std::string_view name;
  int least;
  int most;
};
std::span<const NumberBounds> number_bounds();

/// The names of a number that chooses one of a few ways, by value: "head", "split" and "partial" of "cut". Empty: none.
std::span<const std::string_view> choices_of(std::string_view number);

/// What a work-group asks of a device.
struct Demand {
  std::int64_t work_items = 0;
  std::int64_t local_bytes = 0;
  int sub_group_size = 0;  ///< 0: any
};

/// Values that the tuner tries for a number.
struct SearchValues {
  std::string_view name;
  kernels::Step step;
  std::vector<int> values;
};

using NumberByName = std::function<int(std::string_view)>;

struct RecordKind {
  std::string_view kernel;                ///< "gemm"
  std::vector<std::string_view> numbers;  ///< that every record has
  bool head_size;                         ///< Does the demand depend on it?
  /// What such numbers ask for; nothing where they do not fit together.
  std::function<std::optional<Demand>(const NumberByName&, std::int64_t head_size)> demand;
  std::vector<SearchValues> search;  ///< empty: the tuner does not know it

  bool has(std::string_view number) const { return std::ranges::find(numbers, number) != numbers.end(); }
  bool searches(std::string_view number) const {
    return std::ranges::find(search, number, &SearchValues::name) != search.end();
  }
};

/// In the order in which commands list them.
std::span<const RecordKind> record_kinds();
/// Null: there is no such kernel.
const RecordKind* record_kind(std::string_view kernel);

}  // namespace sylvit::catalogue
