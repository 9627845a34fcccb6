#include <sylvit/error.hpp>
#include <sylvit/score.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

namespace sylvit {
namespace {

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

std::string_view name_of(Score score) noexcept {
  switch (score) {
    case Score::softmax:
      return "softmax";
    case Score::relu:
      return "relu";
    case Score::relu2:
      return "relu2";
    case Score::gelu:
      return "gelu";
    case Score::gelu_tanh:
      return "gelu_tanh";
    case Score::softplus:
      return "softplus";
    case Score::identity:
      return "identity";
    case Score::relu6:
      return "relu6";
    case Score::sigmoid:
      return "sigmoid";
    case Score::silu:
      return "silu";
  }
  return "unknown";
}

Score parse_score(std::string_view name) {
  std::string known;
  for (const Score score : all_scores) {
    if (name_of(score) == name) return score;
    known += known.empty() ? "" : ", ";
    known += name_of(score);
  }
  // Nobody mistypes a name at length: a long text gets no suggestion, and no quadratic search for one.
  constexpr std::size_t longest_guess = 32;
  std::string advice = "known scores: " + known;
  if (!name.empty() && name.size() <= longest_guess) {
    const Score nearest = *std::min_element(all_scores.begin(), all_scores.end(), [&](Score a, Score b) {
      return edit_distance(name, name_of(a)) < edit_distance(name, name_of(b));
    });
    // More changes than half the name's letters is no typing error any more.
    if (edit_distance(name, name_of(nearest)) <= name_of(nearest).size() / 2)
      advice = "did you mean " + std::string(name_of(nearest)) + "? " + advice;
  }
  const std::string shown = name.size() <= longest_guess ? std::string(name) : std::string(name.substr(0, 32)) + "…";
  throw Error("there is no score \"" + shown + "\"", advice);
}

}  // namespace sylvit
