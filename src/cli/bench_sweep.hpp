// What benchmarks that take lists share.
#pragma once

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "terminal/print.hpp"

namespace sylvit::cli {

/// "relu", or "relu with alpha 0.5" where it is not 1.
inline std::string variant_name(const std::string& score, double alpha) {
  return score == "softmax" || alpha == 1 ? score : fmt::format("{} with alpha {:g}", score, alpha);
}

/// The object of one run, or the array of those of several.
inline void print_runs(const std::vector<nlohmann::ordered_json>& runs) {
  terminal::print_json(runs.size() == 1 ? runs.front() : nlohmann::ordered_json(runs));
}

}  // namespace sylvit::cli
