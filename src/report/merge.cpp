#include "report/merge.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "report/errors.hpp"
#include "report/interval.hpp"
#include "report/summary.hpp"

namespace sylvit::report {

namespace {

std::string labels_of(const Run& run) {
  std::string labels;
  for (const ModelReport& model : run.models) labels += (labels.empty() ? "" : ", ") + model.label;
  return labels;
}

/// Throws Error that says how two runs differ in what they computed.
void check_same_models(const std::string& name_a, const Run& a, const std::string& name_b, const Run& b) {
  const auto find = [](const Run& run, const ModelReport& model) {
    return std::ranges::find_if(run.models, [&](const ModelReport& other) { return other.label == model.label; });
  };
  const auto has = [&](const Run& run) {
    return [&](const ModelReport& model) { return find(run, model) != run.models.end(); };
  };
  if (!std::ranges::all_of(a.models, has(b)) || !std::ranges::all_of(b.models, has(a)))
    throw Error(fmt::format("{} compares {}, and {} compares {}: reports of different models cannot be merged", name_a,
                            labels_of(a), name_b, labels_of(b)));
  for (const ModelReport& model : a.models) {
    const ModelReport& other = *find(b, model);
    const auto differ = [&](const std::string& what) {
      return Error(fmt::format("{} and {} computed {} with different {}, so they cannot be merged", name_a, name_b,
                               model.label, what));
    };
    if (model.description != other.description) throw differ("sizes or options");
    if (model.weights_fingerprint != other.weights_fingerprint) throw differ("weights");
    if (model.images_fingerprint != other.images_fingerprint) throw differ("images");
  }
}

void add_pairs(Report& report, std::size_t run_a, std::size_t run_b) {
  const Run& a = report.runs[run_a];
  const Run& b = report.runs[run_b];
  for (std::size_t i = 0; i < a.results.size(); ++i)
    for (std::size_t j = 0; j < b.results.size(); ++j) {
      const Result& first = a.results[i];
      const Result& second = b.results[j];
      if (first.dtype != second.dtype || model_of(a, first).label != model_of(b, second).label) continue;
      // One may have checked more images than the other.
      const std::size_t size = std::min(first.logits.size(), second.logits.size());
      if (size == 0) continue;
      Pair pair;
      pair.run_a = static_cast<std::int64_t>(run_a);
      pair.result_a = static_cast<std::int64_t>(i);
      pair.run_b = static_cast<std::int64_t>(run_b);
      pair.result_b = static_cast<std::int64_t>(j);
      pair.logits = errors_of(std::span<const double>(first.logits).first(size),
                              std::span<const double>(second.logits).first(size));
      pair.top1_agreement = agreement(first.top1, second.top1);
      report.pairs.push_back(std::move(pair));
    }
}

/// "AMD EPYC, S/16 relu/L, f32"
std::string text_of(const Run& run, const Result& result) {
  return fmt::format("{}, {}, {}", device_of(run, result).name, model_of(run, result).label, result.dtype);
}

/// All results of the same device, toolchain, model and type; by names, since positions may differ.
std::vector<const Result*> counterparts(const Report& report, const Run& run, const Result& result) {
  std::vector<const Result*> found;
  for (const Run& other : report.runs)
    for (const Result& candidate : other.results)
      if (device_of(other, candidate).name == device_of(run, result).name && other.toolchain == run.toolchain &&
          device_of(other, candidate).backend == device_of(run, result).backend &&
          model_of(other, candidate).label == model_of(run, result).label &&
          model_of(other, candidate).description == model_of(run, result).description &&
          candidate.dtype == result.dtype)
        found.push_back(&candidate);
  return found;
}

/// Of several, the one at the place that this one has among those of its own report; null if there is none.
const Result* counterpart(const Report& report, const Report& own, const Run& run, const Result& result) {
  const std::vector<const Result*> found = counterparts(report, run, result);
  if (found.empty()) return nullptr;
  const std::vector<const Result*> siblings = counterparts(own, run, result);
  const auto place = static_cast<std::size_t>(std::ranges::find(siblings, &result) - siblings.begin());
  return found[std::min(place, found.size() - 1)];
}

/// The changes of one result.
class ResultChanges {
 public:
  ResultChanges(const Run& run, const Result& before, Baseline& baseline)
      : run_(run), before_(before), baseline_(baseline) {}

  void add_missing(const std::string& verdict, const std::string& regression) {
    Change change = change_of("");
    change.verdict = verdict;
    change.regression = text_of(run_, before_) + ": " + regression;
    baseline_.changes.push_back(std::move(change));
  }

  void add_speed(const Speed& old, const Speed* now) {
    Change change = change_of(fmt::format("{}, batch {}", pass_text(old.pass), old.batch));
    const std::string pass =
        fmt::format("{}: {} pass over {} images", text_of(run_, before_), pass_text(old.pass), old.batch);
    change.before = old.ms.median;
    if (now == nullptr) {
      change.verdict = "not measured now";
      change.regression = pass + " is in the baseline and was not measured now";
    } else {
      const Ratio ratio = unpaired_ratio(now->ms, old.ms);
      change.now = now->ms.median;
      change.ratio = ratio.value;
      change.low = ratio.interval.low;
      change.high = ratio.interval.high;
      const bool beyond = !(ratio.value <= baseline_.slowdown_limit);
      if (!std::isfinite(ratio.value)) {
        change.verdict = "not known";
        change.regression = pass + " has no time, here or in the baseline";
      } else if (beyond && ratio.distinguishable()) {
        change.verdict = "slower, beyond the limit";
        change.regression =
            fmt::format("{} takes {:.4g} ms, {}", pass, now->ms.median,
                        ratio_text(ratio, fmt::format("times the baseline's {:.4g} ms", old.ms.median)));
      } else {
        change.verdict = beyond                     ? beyond_but_unclear
                         : !ratio.distinguishable() ? "not distinguishable"
                         : ratio.value > 1          ? "slower"
                                                    : "faster";
      }
    }
    baseline_.changes.push_back(std::move(change));
  }

  void add_error(double old, double now) {
    Change change = change_of("error of the logits");
    change.before = old;
    change.now = now;
    change.verdict = "within the limit";
    if (!(now <= old + baseline_.error_limit)) {
      change.verdict = "larger, beyond the limit";
      change.regression = fmt::format("{}: the logits' relative error is {:.2e}, and the baseline's {:.2e}",
                                      text_of(run_, before_), now, old);
    }
    baseline_.changes.push_back(std::move(change));
  }

 private:
  Change change_of(std::string what) const {
    Change change;
    change.device = device_of(run_, before_).name;
    change.model = model_of(run_, before_).label;
    change.dtype = before_.dtype;
    change.what = std::move(what);
    return change;
  }

  const Run& run_;
  const Result& before_;
  Baseline& baseline_;
};

void compare_results(const Run& run, const Result& before, const Result& now, Baseline& baseline) {
  ResultChanges changes(run, before, baseline);
  if (before.error.empty() && !now.error.empty()) {
    changes.add_missing("failed now",
                        fmt::format("failed in {}, which the baseline did not: {}", now.failed_in, now.error));
    return;
  }
  for (const Speed& old : before.speeds) changes.add_speed(old, speed_of(now, old.pass, old.batch));
  if (before.accuracy && now.accuracy) changes.add_error(before.accuracy->logits.l2, now.accuracy->logits.l2);
}

}  // namespace

Report merged(const std::vector<NamedReport>& reports) {
  Report all;
  std::vector<std::size_t> source;  // of each run
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const auto offset = static_cast<std::int64_t>(all.runs.size());
    for (const Run& run : reports[i].report.runs) {
      if (!all.runs.empty()) check_same_models(reports[source.front()].name, all.runs.front(), reports[i].name, run);
      all.runs.push_back(run);
      source.push_back(i);
    }
    for (Pair pair : reports[i].report.pairs) {
      pair.run_a += offset;
      pair.run_b += offset;
      all.pairs.push_back(std::move(pair));
    }
  }
  // Runs of one file have been compared already.
  for (std::size_t a = 0; a < all.runs.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (source[a] != source[b]) add_pairs(all, a, b);
  return all;
}

Baseline beside(const Report& report, const NamedReport& baseline, const RegressionLimits& limits) {
  Baseline result;
  result.file = baseline.name;
  result.slowdown_limit = limits.slowdown;
  result.error_limit = limits.error;
  std::vector<std::pair<const Run*, const Result*>> missing;
  for (const Run& run : baseline.report.runs)
    for (const Result& before : run.results) {
      if (const Result* now = counterpart(report, baseline.report, run, before)) {
        ++result.compared;
        compare_results(run, before, *now, result);
      } else {
        missing.emplace_back(&run, &before);
      }
    }
  for (const auto& [run, before] : missing)
    ResultChanges(*run, *before, result).add_missing("missing now", "is in the baseline and was not computed now");
  return result;
}

std::vector<std::string> regressions(const Baseline& baseline) {
  if (baseline.compared == 0)
    throw Error("the baseline " + baseline.file + " has no result of the same device, toolchain, model and type",
                "make one with the same options on this machine");
  std::vector<std::string> found;
  for (const Change& change : baseline.changes)
    if (!change.regression.empty()) found.push_back(change.regression);
  return found;
}

}  // namespace sylvit::report
