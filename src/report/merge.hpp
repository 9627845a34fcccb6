// Reports beside each other: runs of different machines in one report, and a run against an earlier one.
#pragma once

#include <string>
#include <vector>

#include "report/report.hpp"

namespace sylvit::report {

struct NamedReport {
  std::string name;  ///< its file
  Report report;
};

/// All runs in one report, without what each says of a baseline; results of different runs are compared by their
/// checked images' logits. Throws Error when the reports are not of the same models with the same weights and images.
Report merged(const std::vector<NamedReport>& reports);

struct RegressionLimits {
  double slowdown = 1.1;  ///< how many times as long a pass may take
  double error = 1e-3;    ///< how much the logits' relative error (L2) may grow
};

/// What the verdict is on a pass whose median is beyond the limit while both intervals overlap: no regression.
inline constexpr const char* beyond_but_unclear = "beyond the limit, but not distinguishable";

/// Every time and error that the baseline has, beside those of the report.
Baseline beside(const Report& report, const NamedReport& baseline, const RegressionLimits& limits);

/// One sentence for each result that is slower or less accurate than the limits allow, or is missing. A pass is slower
/// if its median is beyond the limit and its interval does not overlap the baseline's. Throws Error when the two
/// reports have nothing in common.
std::vector<std::string> regressions(const Baseline& baseline);

}  // namespace sylvit::report
