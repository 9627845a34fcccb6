#include "options/attention_options.hpp"

#include "options/numbers.hpp"
#include "options/words.hpp"

namespace sylvit::options {

std::string score_names() {
  std::string names;
  for (const Score known : all_scores) names += (names.empty() ? "" : ", ") + std::string(name_of(known));
  return names;
}

void SweepOptions::add_to(CLI::App& command) {
  const auto add = [&](const char* name, auto& list, const std::string& description, const auto& check,
                       const char* otherwise) {
    auto* option = command.add_option(name, list, description + (list.empty() ? otherwise : ""));
    option->delimiter(',')->check(check);
    if (!list.empty()) option->capture_default_str();
  };
  add("--score", scores, "One or more, with commas, of " + score_names(), score_word,
      " (default: softmax, or the weights')");
  add("--alpha", alphas, "One or more exponents of the divisor, 0 to 2; point-wise scores", alpha_number,
      " (default: 1, or the weights')");
  add("--dtype", dtypes, "One or more storage types: f32, bf16, f16", storage_type_word, "");
}

void AttentionOptions::add_to(CLI::App& command) {
  command.add_option("--score", score, "One of " + score_names())->check(score_word)->capture_default_str();
  command.add_option("--alpha", alpha, "Exponent of the divisor, 0 to 2; point-wise scores")
      ->check(alpha_number)
      ->capture_default_str();
  command.add_option("--dtype", dtype, "Storage type: f32, bf16 or f16")
      ->check(storage_type_word)
      ->capture_default_str();
  add_variations_to(command);
}

void AttentionOptions::add_variations_to(CLI::App& command) {
  command.add_option("--divisor", divisor, "What L^-alpha takes for L (default: the keys of each sequence)")
      ->check(positive_number);
  command.add_option("--scale", scale, "Factor of q.k (default: 1/sqrt(d))")->check(finite_number);
  command.add_flag("--causal", causal, "Query i sees keys up to i only");
  command.add_flag("--qk-norm", qk_norm, "Layer norm of queries and keys");
  command.add_option("--device", device, "Index, name part, backend or type (default: SYLVIT_DEVICE, else a GPU)");
}

AttentionDescription AttentionOptions::description() const {
  AttentionDescription result;
  result.score = parse_score(score);
  result.alpha = static_cast<float>(alpha);
  if (divisor) result.divisor = static_cast<float>(*divisor);
  if (scale) result.scale = static_cast<float>(*scale);
  result.causal = causal;
  result.qk_norm = qk_norm;
  return result;
}

}  // namespace sylvit::options
