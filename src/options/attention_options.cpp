#include "options/attention_options.hpp"

#include "options/numbers.hpp"

namespace sylvit::options {

std::string score_names() {
  std::string names;
  for (const Score known : all_scores) names += (names.empty() ? "" : ", ") + std::string(name_of(known));
  return names;
}

void AttentionOptions::add_to(CLI::App& command) {
  command.add_option("--score", score, "One of " + score_names())->capture_default_str();
  command.add_option("--alpha", alpha, "Exponent of the divisor, 0 to 2; point-wise scores")->capture_default_str();
  command.add_option("--divisor", divisor, "What L^-alpha takes for L (default: the keys of each sequence)");
  command.add_option("--scale", scale, "Factor of q.k (default: 1/sqrt(d))");
  command.add_flag("--causal", causal, "Query i sees keys up to i only");
  command.add_flag("--qk-norm", qk_norm, "Layer norm of queries and keys");
  command.add_option("--dtype", dtype, "Storage type: f32, bf16 or f16")->capture_default_str();
  command.add_option("--device", device, "Index, name part, backend or type (default: SYLVIT_DEVICE, else a GPU)");
}

AttentionDescription AttentionOptions::description() const {
  AttentionDescription result;
  result.score = parse_score(score);
  result.alpha = static_cast<float>(alpha);
  if (divisor) result.divisor = positive_f32("--divisor", *divisor);
  if (scale) result.scale = static_cast<float>(*scale);
  result.causal = causal;
  result.qk_norm = qk_norm;
  return result;
}

}  // namespace sylvit::options
