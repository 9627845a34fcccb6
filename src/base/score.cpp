#include <sylvit/score.hpp>

#include <array>

#include "base/enum_names.hpp"
#include "base/scores.hpp"

namespace sylvit {

namespace base {

namespace {

constexpr std::array rows = {ScoreRow{Score::softmax, "softmax", "Softmax"},
                             ScoreRow{Score::relu, "relu", "Relu", true},
                             ScoreRow{Score::relu2, "relu2", "Relu2"},
                             ScoreRow{Score::gelu, "gelu", "Gelu"},
                             ScoreRow{Score::gelu_tanh, "gelu_tanh", "GeluTanh"},
                             ScoreRow{Score::softplus, "softplus", "Softplus"},
                             ScoreRow{Score::identity, "identity", "Identity"},
                             ScoreRow{Score::relu6, "relu6", "Relu6", true},
                             ScoreRow{Score::sigmoid, "sigmoid", "Sigmoid"},
                             ScoreRow{Score::silu, "silu", "Silu"},
                             ScoreRow{Score::custom, "custom", "CustomScore"}};

// A row is found by its enumerator's number, and the public list of the library's own has no other order.
static_assert([] {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (static_cast<std::size_t>(rows[i].score) != i || (i < all_scores.size() && all_scores[i] != rows[i].score))
      return false;
  return rows.size() == all_scores.size() + 1;
}());

}  // namespace

const ScoreRow& score_row(Score score) { return rows.at(static_cast<std::size_t>(score)); }

}  // namespace base

std::string_view name_of(Score score) noexcept {
  const auto index = static_cast<std::size_t>(score);
  return index < base::rows.size() ? base::rows[index].name : "unknown";
}

Score parse_score(std::string_view name) { return base::value_named(name, all_scores, "score", "scores"); }

}  // namespace sylvit
