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

/// All runs in one report; results of different runs are compared by their checked images' logits. Throws Error when
/// the reports are not of the same models with the same weights and images.
Report merged(const std::vector<NamedReport>& reports);

struct RegressionLimits {
  double slowdown = 1.1;  ///< how many times as long a pass may take
  double error = 1e-3;    ///< how much the logits' relative error (L2) may grow
};

/// One sentence for each result that is slower or less accurate than in the baseline, or is missing. Throws Error when
/// they have nothing in common.
std::vector<std::string> regressions(const Report& report, const NamedReport& baseline, const RegressionLimits& limits);

}  // namespace sylvit::report
