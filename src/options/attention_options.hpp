// The options that say which attention is meant, shared by run and bench.
#pragma once

#include <sylvit/attention.hpp>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sylvit::options {

/// "softmax, relu, …"
std::string score_names();

/// Lists of what a benchmark goes over. An empty one is gone over once, with nothing.
struct SweepOptions {
  std::vector<std::string> scores;
  std::vector<double> alphas;
  std::vector<std::string> dtypes{"f32"};

  void add_to(CLI::App& command);

  /// Calls visit(score, alpha, dtype) for every combination. Softmax has no alpha: it comes once.
  template <class Visit>
  void each(const Visit& visit) const {
    for (const std::optional<std::string>& score : or_nothing(scores)) {
      std::vector<std::optional<double>> some = or_nothing(alphas);
      if (score == "softmax") some.resize(1);
      for (const std::optional<double>& alpha : some)
        for (const std::string& dtype : dtypes) visit(score, alpha, dtype);
    }
  }

 private:
  template <class T>
  static std::vector<std::optional<T>> or_nothing(const std::vector<T>& given) {
    std::vector<std::optional<T>> choices(given.begin(), given.end());
    if (choices.empty()) choices.emplace_back();
    return choices;
  }
};

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
  /// All but --score, --alpha and --dtype, for commands that take lists of these.
  void add_variations_to(CLI::App& command);
  AttentionDescription description() const;
};

}  // namespace sylvit::options
