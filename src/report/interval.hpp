// How sure a measured number is: the interval of a median, ratios of medians with theirs, percentiles, and how all of
// them are written.
#pragma once

#include <span>
#include <string>

#include "report/report.hpp"

namespace sylvit::report {

/// Fewer samples than these allow no interval of 95 %.
inline constexpr std::int64_t least_samples = 6;

/// Where a median lies with a confidence of 95 %.
struct Interval {
  double low = unknown, high = unknown;
  bool sure = false;  ///< false: of too few samples for that, and only their range
};

/// Of the median, whatever the distribution: the sign test's. From the k-th smallest to the k-th largest sample, with
/// the largest k that covers the median in 95 of 100 cases. Of fewer than least_samples: all of them. What is not
/// finite does not count.
Interval median_interval(std::span<const double> samples);
/// Of a pass's median time. A report of schema 1 has no samples: then it is the middle half of the times.
Interval interval_of(const Timing& timing);

/// How many times as large one thing is as another.
struct Ratio {
  double value = unknown;
  Interval interval = {};

  /// Is one of them the larger, as far as the measurement can tell?
  bool distinguishable() const { return interval.sure && (interval.low > 1 || interval.high < 1); }
};

/// Of things that were timed in the same rounds: the median of a/b of each round, and its interval. What disturbed both
/// in a round is not in it.
Ratio paired_ratio(std::span<const double> a, std::span<const double> b);
/// Of things that were not: medians, and from one end of an interval over the other end of the other's. So they cannot
/// be told apart exactly where their intervals overlap.
Ratio unpaired_ratio(const Timing& a, const Timing& b);
/// Of one run, a's time over b's: paired if they took turns.
Ratio time_ratio(const Speed& a, const Speed& b);

/// The least sample that so large a share of all does not exceed. Unknown where they are too few to tell: of the 99th
/// of a hundred, fewer than a hundred.
double percentile(std::span<const double> samples, double share);

/// "6.5 to 6.9"; nothing if an end is not known.
std::string interval_text(const Interval& interval);
/// "1.12 (1.08 to 1.15)", "0.97 (0.91 to 1.04), not distinguishable"; "-" if it is not known. `what` stands behind the
/// number: "1.12 times as fast (1.08 to 1.15)".
std::string ratio_text(const Ratio& ratio, const std::string& what = "");
/// Of a speed in images a second, whose interval is that of its time.
Interval rate_interval(const Speed& speed);
/// "6.77 (6.5 to 6.9)"
std::string rate_text(const Speed& speed);

}  // namespace sylvit::report
