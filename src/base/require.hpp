#pragma once

#include <sylvit/error.hpp>

#include <string>

namespace sylvit::base {

/// Throws Error with this sentence unless it holds.
inline void require(bool holds, const std::string& sentence) {
  if (!holds) throw Error(sentence);
}

}  // namespace sylvit::base
