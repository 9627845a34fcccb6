// The one list of the scores: a row each.
#pragma once

#include <sylvit/score.hpp>

#include <string_view>

namespace sylvit::base {

struct ScoreRow {
  Score score;
  std::string_view name;
  std::string_view functor;  ///< in kernels/scores.hpp
  bool kink = false;         ///< Does its slope jump somewhere?
};

/// Of one of the library's own, or of an application's.
const ScoreRow& score_row(Score score);

}  // namespace sylvit::base
