// A score as the kernels know it.
#pragma once

#include <sylvit/attention.hpp>
#include <sylvit/score.hpp>

#include <memory>
#include <string>

#include "runtime/kernel.hpp"

namespace sylvit::catalogue {

/// The functor's name in a kernel's type, and where it comes from if it is not the library's own.
struct ScoreFunctor {
  ScoreFunctor(Score score);  // NOLINT(google-explicit-constructor): a score is one
  explicit ScoreFunctor(const AttentionDescription& description);

  std::string text;
  std::shared_ptr<const runtime::CustomCode> custom;
};

}  // namespace sylvit::catalogue
