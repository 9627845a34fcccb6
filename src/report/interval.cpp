#include "report/interval.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "report/summary.hpp"

namespace sylvit::report {

namespace {

/// Sorted, without what is not finite.
std::vector<double> in_order(std::span<const double> samples) {
  std::vector<double> sorted;
  std::ranges::copy_if(samples, std::back_inserter(sorted), [](double sample) { return std::isfinite(sample); });
  std::ranges::sort(sorted);
  return sorted;
}

double median(const std::vector<double>& sorted) {
  const std::size_t half = sorted.size() / 2;
  if (sorted.empty()) return unknown;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/// From which sample, counted from either end, an interval of 95 % reaches: fewer than so many of `count` coins show
/// heads in at most 2.5 of 100 cases. 0: even all samples are too few.
std::size_t rank_of_ends(std::size_t count) {
  const auto n = static_cast<double>(count);
  if (count > 500) return static_cast<std::size_t>(n / 2 - 1.96 * std::sqrt(n) / 2);  // nearly normal
  double chance = std::pow(0.5, n);                                                   // of exactly `heads`
  double all = chance;                                                                // of `heads` or fewer
  std::size_t heads = 0;
  for (; all <= 0.025; ++heads) {
    chance *= (n - static_cast<double>(heads)) / static_cast<double>(heads + 1);
    all += chance;
  }
  return heads;
}

Interval interval_of_sorted(const std::vector<double>& sorted) {
  if (sorted.empty()) return {};
  const std::size_t rank = rank_of_ends(sorted.size());
  const std::size_t first = rank > 0 ? rank - 1 : 0;
  return {sorted[first], sorted[sorted.size() - 1 - first], rank > 0};
}

}  // namespace

Interval median_interval(std::span<const double> samples) { return interval_of_sorted(in_order(samples)); }

Interval interval_of(const Timing& timing) {
  if (timing.samples.empty()) return {timing.p25, timing.p75, timing.count >= least_samples};
  return median_interval(timing.samples);
}

Ratio paired_ratio(std::span<const double> a, std::span<const double> b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
  const std::vector<double> sorted = in_order(ratios);
  return {median(sorted), interval_of_sorted(sorted)};
}

Ratio unpaired_ratio(const Timing& a, const Timing& b) {
  const Interval of_a = interval_of(a);
  const Interval of_b = interval_of(b);
  return {a.median / b.median, {of_a.low / of_b.high, of_a.high / of_b.low, of_a.sure && of_b.sure}};
}

Ratio time_ratio(const Speed& a, const Speed& b) {
  if (a.turns > 0 && a.turns == b.turns && a.ms.samples.size() == b.ms.samples.size())
    return paired_ratio(a.ms.samples, b.ms.samples);
  return unpaired_ratio(a.ms, b.ms);
}

double percentile(std::span<const double> samples, double share) {
  const std::vector<double> sorted = in_order(samples);
  const auto count = static_cast<double>(sorted.size());
  if (count * (1 - share) < 1 - 1e-9) return unknown;
  const auto rank = static_cast<std::size_t>(std::ceil(share * count - 1e-9));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

std::string interval_text(const Interval& interval) {
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) return "";
  return number_text(interval.low) + " to " + number_text(interval.high);
}

std::string ratio_text(const Ratio& ratio, const std::string& what) {
  if (!std::isfinite(ratio.value)) return "-";
  std::string text = fmt::format("{:.2f}{}{}", ratio.value, what.empty() ? "" : " ", what);
  if (std::isfinite(ratio.interval.low) && std::isfinite(ratio.interval.high))
    text += fmt::format(" ({:.2f} to {:.2f})", ratio.interval.low, ratio.interval.high);
  return text + (ratio.distinguishable() ? "" : ", not distinguishable");
}

Interval rate_interval(const Speed& speed) {
  const Interval ms = interval_of(speed.ms);
  const double images = 1000 * static_cast<double>(speed.batch);
  return {images / ms.high, images / ms.low, ms.sure};
}

std::string rate_text(const Speed& speed) {
  const std::string interval = interval_text(rate_interval(speed));
  return number_text(speed.images_per_s) + (interval.empty() ? "" : " (" + interval + ")");
}

}  // namespace sylvit::report
