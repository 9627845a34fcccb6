#include "options/words.hpp"

#include <sylvit/gemm.hpp>
#include <sylvit/score.hpp>
#include <sylvit/tensor.hpp>
#include <sylvit/vit_config.hpp>

#include <CLI/CLI.hpp>

namespace sylvit::options {

namespace {

/// What `parse` says of a word that it does not know.
template <class Parse>
std::string refusal(const Parse& parse) {
  try {
    parse();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

std::string score_word(const std::string& text) {
  return refusal([&] { return parse_score(text); });
}

std::string storage_type_word(const std::string& text) {
  return refusal([&] { return parse_dtype(text); });
}

std::string model_word(const std::string& text) {
  return refusal([&] { return vit_preset(text); });
}

std::string provider_word(const std::string& text) {
  if (find_gemm_provider(text)) return {};
  std::string names;
  for (const GemmProvider provider : all_gemm_providers)
    names += (names.empty() ? "" : ", ") + std::string(name_of(provider));
  return "there is no provider \"" + text + "\"; known providers: " + names;
}

void wrong_command_line(const std::string& sentence) { throw CLI::ValidationError(sentence); }

}  // namespace sylvit::options
