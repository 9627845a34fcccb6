#include <sylvit/error.hpp>
#include <sylvit/score.hpp>

#include <string>
#include <vector>

#include "nn/names.hpp"

namespace sylvit {
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
    case Score::custom:
      return "custom";
  }
  return "unknown";
}

Score parse_score(std::string_view name) {
  std::vector<std::string> known;
  std::string list;
  for (const Score score : all_scores) {
    if (name_of(score) == name) return score;
    known.emplace_back(name_of(score));
    list += (list.empty() ? "" : ", ") + known.back();
  }
  throw Error("there is no score \"" + nn::shown(name) + "\"", nn::suggestion(name, known) + "known scores: " + list);
}

}  // namespace sylvit
