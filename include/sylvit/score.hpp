// The functions that turn a score s = scale · q·k into an attention weight.
#pragma once

#include <sylvit/export.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace sylvit {

/// All but softmax are point-wise: the weight of a key does not depend on the other keys.
/// gelu is the exact one (erf), gelu_tanh its usual approximation; relu2 is relu squared. custom stands for a
/// CustomScore that the application brings.
enum class Score : std::uint8_t {
  softmax,
  relu,
  relu2,
  gelu,
  gelu_tanh,
  softplus,
  identity,
  relu6,
  sigmoid,
  silu,
  custom
};

/// The library's own.
inline constexpr std::array all_scores{Score::softmax,  Score::relu,     Score::relu2, Score::gelu,    Score::gelu_tanh,
                                       Score::softplus, Score::identity, Score::relu6, Score::sigmoid, Score::silu};

/// What kernels make of scores: softmax looks at whole rows, the others at one score at a time.
enum class ScoreClass : std::uint8_t { any, pointwise, softmax };
/// The class of a score; an application's own is point-wise.
constexpr ScoreClass class_of(Score score) noexcept {
  return score == Score::softmax ? ScoreClass::softmax : ScoreClass::pointwise;
}
/// "any", "pointwise", "softmax".
SYLVIT_API std::string_view name_of(ScoreClass score_class) noexcept;

/// "softmax", "relu", …: the name of the enumerator.
SYLVIT_API std::string_view name_of(Score score) noexcept;
/// The score of that name; throws Error that lists the known names and suggests the nearest one.
SYLVIT_API Score parse_score(std::string_view name);

}  // namespace sylvit
