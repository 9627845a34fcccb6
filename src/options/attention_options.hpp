// The options that say which attention is meant, shared by run and bench.
#pragma once

#include <sylvit/attention.hpp>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace sylvit::options {

/// "softmax, relu, …"
std::string score_names();

struct AttentionOptions {
  std::string score = "softmax";
  double alpha = 1;
  std::optional<double> divisor;
  std::optional<double> scale;
  bool causal = false;
  bool qk_norm = false;
  std::string dtype = "f32";
  std::string device;

  void add_to(CLI::App& command);
  AttentionDescription description() const;
};

}  // namespace sylvit::options
