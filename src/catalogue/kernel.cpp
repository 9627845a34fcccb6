#include "catalogue/kernel.hpp"

#include "base/scores.hpp"

namespace sylvit::catalogue {

std::string_view text_of(DType dtype) { return dtype == DType::f32 ? std::string_view("float") : name_of(dtype); }

std::string_view text_of(Gelu gelu) {
  return base::score_row(gelu == Gelu::exact ? Score::gelu : Score::gelu_tanh).functor;
}

std::string text_of(const kernels::GemmForm& form) {
  return std::string("GemmForm{GemmEpilogueKind::") + kernels::name_of(form.epilogue) + ", " +
         (form.transposed ? "true" : "false") + "}";
}

ScoreFunctor::ScoreFunctor(Score score) : text(base::score_row(score).functor) {}

ScoreFunctor::ScoreFunctor(const AttentionDescription& description) : ScoreFunctor(description.score) {
  if (description.score != Score::custom) return;
  custom = description.custom_score.code();
  text = custom->functor;
}

}  // namespace sylvit::catalogue
