// The numbers that are shown first, on the terminal and on the page.
#pragma once

#include <string>
#include <vector>

#include "report/interval.hpp"
#include "report/report.hpp"

namespace sylvit::report {

/// "12.3", "0.0123", "1.2e-06": three digits, and "-" for what is not known.
std::string number_text(double value);
/// "2.1e-06"; "not finite" for what is none.
std::string error_text(double value);
/// "37 %"
std::string share_text(double value);

/// "2 of 2 images": on how many two results agree, of a share and their number.
std::string agreement_text(double share, std::size_t images);

/// "forward", "forward + backward"
std::string pass_text(Pass pass);

/// Point-wise scores beside softmax: the same device, model name, type, pass and batch.
struct ScoreRatio {
  std::size_t run = 0;
  const Result* softmax = nullptr;
  const Result* other = nullptr;
  Pass pass = Pass::forward;
  std::int64_t batch = 0;
  Ratio speedup = {};  ///< softmax's time over the other's
};
std::vector<ScoreRatio> score_ratios(const Report& report);

/// "block 7, attention output, 3.1e-03 on AMD EPYC, bf16"; empty where all layers keep to the tolerance.
std::string outside_text(const Run& run, const Result& result);

/// What came out, in two sentences: how accurate, and how fast.
std::string verdict(const Report& report);
/// What the weights and images were, and what that means for the numbers.
std::string inputs_text(const Report& report);

/// For a terminal: a line a result, then ratios, what failed and what is estimated.
void print_summary(const Report& report);

}  // namespace sylvit::report
