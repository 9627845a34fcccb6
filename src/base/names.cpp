#include "base/names.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace sylvit::base {

namespace {

// Nobody mistypes a name at length: a long text gets no suggestion, and no quadratic search for one.
constexpr std::size_t longest_guess = 32;

/// How many single-letter insertions, deletions and replacements lead from a to b (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string suggestion(std::string_view typed, std::span<const std::string> known) {
  if (typed.empty() || typed.size() > longest_guess || known.empty()) return {};
  const auto nearest = std::min_element(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(typed, a) < edit_distance(typed, b);
  });
  // More changes than half the name's letters is no typing error any more.
  if (edit_distance(typed, *nearest) > nearest->size() / 2) return {};
  return "did you mean " + *nearest + "? ";
}

std::string shown(std::string_view typed) {
  return typed.size() <= longest_guess ? std::string(typed) : std::string(typed.substr(0, longest_guess)) + "…";
}

}  // namespace sylvit::base
