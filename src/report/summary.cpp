#include "report/summary.hpp"

#include <sylvit/memory.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/ranges.h>
#include <functional>

#include "report/merge.hpp"
#include "terminal/print.hpp"
#include "tuning/estimated.hpp"

namespace sylvit::report {

std::string number_text(double value) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size >= 1e6 || size < 1e-3) return fmt::format("{:.1e}", value);
  if (size >= 100) return fmt::format("{:.0f}", value);
  if (size >= 10) return fmt::format("{:.1f}", value);
  return size >= 1 ? fmt::format("{:.2f}", value) : fmt::format("{:.3g}", value);
}

std::string error_text(double value) {
  return std::isfinite(value) ? value == 0 ? "0" : fmt::format("{:.1e}", value) : "not finite";
}

std::string share_text(double value) { return std::isfinite(value) ? fmt::format("{:.0f} %", 100 * value) : "-"; }

std::string agreement_text(double share, std::size_t images) {
  if (!std::isfinite(share) || images == 0) return "-";
  return fmt::format("{:.0f} of {} image{}", share * static_cast<double>(images), images, images == 1 ? "" : "s");
}

std::string pass_text(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return "forward";
    case Pass::forward_backward:
      return "forward + backward";
    case Pass::train:
      return "forward + backward + optimiser";
  }
  return "unknown";
}

std::vector<ScoreRatio> score_ratios(const Report& report) {
  std::vector<ScoreRatio> ratios;
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    const Run& run = report.runs[r];
    const auto model = [&](const Result& result) -> const ModelReport& {
      return run.models[static_cast<std::size_t>(result.model)];
    };
    for (const Result& softmax : run.results)
      for (const Result& other : run.results) {
        if (model(softmax).score != "softmax" || model(other).score == "softmax" ||
            model(softmax).name != model(other).name || softmax.device != other.device || softmax.dtype != other.dtype)
          continue;
        for (const Speed& speed : softmax.speeds)
          if (const Speed* theirs = speed_of(other, speed.pass, speed.batch); theirs != nullptr)
            ratios.push_back({r, &softmax, &other, speed.pass, speed.batch, time_ratio(speed, *theirs)});
      }
  }
  return ratios;
}

std::string outside_text(const Run& run, const Result& result) {
  if (!result.accuracy || result.accuracy->first_outside.empty()) return "";
  return fmt::format("{}, {} on {}, {}", layer_text(result.accuracy->first_outside),
                     error_text(result.accuracy->first_outside_error),
                     run.devices[static_cast<std::size_t>(result.device)].name, result.dtype);
}

// ---- sentences

namespace {

/// "all 6 combinations of model, type and device", "the one combination …", "2 of 6 combinations …"
std::string combinations_text(std::size_t some, std::size_t all) {
  const std::string of_what = " of model, type and device";
  if (some < all) return fmt::format("{} of {} combinations{}", some, all, of_what);
  if (all == 1) return "the one combination" + of_what;
  return (all == 2 ? "both" : fmt::format("all {}", all)) + " combinations" + of_what;
}

std::string capital(std::string sentence) {
  sentence.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
  return sentence;
}

std::string accuracy_verdict(const Report& report) {
  std::size_t results = 0;
  std::size_t failed = 0;
  std::size_t judged = 0;
  std::size_t outside = 0;
  std::string first_outside;
  double agree = 0;
  std::int64_t images = 0;
  for_each_result(report, [&](std::size_t, const Run& run, const Result& result) {
    ++results;
    if (!result.error.empty()) ++failed;
    if (!result.accuracy) return;
    ++judged;
    if (const std::string text = outside_text(run, result); !text.empty()) {
      ++outside;
      if (first_outside.empty()) first_outside = text;
    }
    if (!std::isfinite(result.accuracy->top1_agreement)) return;
    agree += std::round(result.accuracy->top1_agreement * static_cast<double>(result.accuracy->judged));
    images += result.accuracy->judged;
  });
  const std::string failures = failed == 0 ? "" : capital(combinations_text(failed, results)) + " failed";
  if (judged == 0) return failures.empty() ? "Nothing was compared with fp64." : failures + ".";
  const auto judged_text = [&](std::size_t some) {
    // Those that failed have been told apart.
    if (failures.empty()) return combinations_text(some, judged);
    return some < judged ? fmt::format("{} of {} that were judged", some, judged)
           : judged == 1 ? std::string("the one that was judged")
                         : fmt::format("all {} that were judged", judged);
  };
  std::string text = failures.empty() ? "" : failures + "; ";
  if (outside > 0)
    text += fmt::format("{} {} tolerance (the first: {})", judged_text(outside),
                        outside == 1 ? "has a layer beyond its" : "have a layer beyond their", first_outside);
  else
    text += fmt::format("{} {} tolerance in every layer", judged_text(judged),
                        judged == 1 ? "keeps to its" : "keep to their");
  if (images > 0) text += fmt::format(", and the class agrees with fp64 in {:.0f} of {} checks", agree, images);
  return capital(text) + ".";
}

/// "relu/L" of the model S/16, whose label is "S/16 relu/L".
std::string score_text(const ModelReport& model) {
  return model.label.starts_with(model.name + " ") ? model.label.substr(model.name.size() + 1) : model.score;
}

/// "1.05 to 1.31 times as fast"
std::string range_text(const std::vector<double>& ratios) {
  const auto [least, most] = std::ranges::minmax(ratios);
  const std::string text = fmt::format("{:.2f}", least);
  const std::string other = fmt::format("{:.2f}", most);
  return (text == other ? text : text + " to " + other) + " times as fast";
}

std::string score_verdict(const Report& report, const std::vector<ScoreRatio>& ratios) {
  std::vector<std::string> scores;
  std::vector<double> faster;
  std::vector<double> slower;
  for (const ScoreRatio& ratio : ratios) {
    const std::string score = score_text(model_of(report.runs[ratio.run], *ratio.other));
    if (std::ranges::find(scores, score) == scores.end()) scores.push_back(score);
    if (!ratio.speedup.distinguishable()) continue;
    (ratio.speedup.value > 1 ? faster : slower).push_back(ratio.speedup.value);
  }
  const std::size_t unclear = ratios.size() - faster.size() - slower.size();
  const auto in = [&](std::size_t some) {
    if (some < ratios.size()) return fmt::format("{} of {} timings", some, ratios.size());
    return some == 1 ? std::string("the one timing") : fmt::format("all {} timings", some);
  };
  std::vector<std::string> parts;
  if (!faster.empty()) parts.push_back(fmt::format("faster in {} ({})", in(faster.size()), range_text(faster)));
  if (!slower.empty()) parts.push_back(fmt::format("slower in {} ({})", in(slower.size()), range_text(slower)));
  if (unclear == ratios.size() && unclear > 1)
    parts.push_back(fmt::format("not distinguishable in any of {} timings", unclear));
  else if (unclear > 0)
    parts.push_back("not distinguishable in " + in(unclear));
  std::string text = "Beside softmax, " + (scores.size() == 1 ? scores.front() + " is " : "point-wise scores are ");
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text + ".";
}

std::string fastest_verdict(const Report& report) {
  struct Contestant {
    std::string name;
    const Speed* speed;
  };
  std::vector<Contestant> all;
  for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
    if (const Speed* speed = speed_of(result, Pass::forward, run.batch))
      all.push_back({result_text(report, r, result), speed});
  });
  std::erase_if(all, [](const Contestant& one) { return !std::isfinite(one.speed->images_per_s); });
  if (all.empty()) return "No speed was measured.";
  std::ranges::stable_sort(all, std::greater<>(), [](const Contestant& one) { return one.speed->images_per_s; });
  const Speed& best = *all.front().speed;
  const std::string interval = interval_text(rate_interval(best));
  std::string text = fmt::format("{}: {} images/s{} in batches of {}", all.front().name, number_text(best.images_per_s),
                                 interval.empty() ? "" : " (" + interval + ")", best.batch);
  if (all.size() == 1) return "Forward, " + text + ".";
  std::vector<std::string> equals;
  for (const Contestant& one : all)
    if (one.speed != &best && !(rate_interval(*one.speed).high < rate_interval(best).low)) equals.push_back(one.name);
  if (equals.size() > 2)
    text += fmt::format(", not distinguishable from {} others", equals.size());
  else if (!equals.empty())
    text += ", not distinguishable from " + fmt::format("{}", fmt::join(equals, " and "));
  return "The fastest forward pass is that of " + text + ".";
}

}  // namespace

std::string verdict(const Report& report) {
  const std::vector<ScoreRatio> ratios = score_ratios(report);
  return accuracy_verdict(report) + " " + (ratios.empty() ? fastest_verdict(report) : score_verdict(report, ratios));
}

std::string inputs_text(const Report& report) {
  std::vector<std::string> weights;
  std::vector<std::string> images;
  for (const Run& run : report.runs)
    for (const ModelReport& model : run.models) {
      if (std::ranges::find(weights, model.weights) == weights.end()) weights.push_back(model.weights);
      if (std::ranges::find(images, model.images) == images.end()) images.push_back(model.images);
    }
  const auto all = [](const std::vector<std::string>& texts) { return fmt::format("{}", fmt::join(texts, "; ")); };
  const bool random = std::ranges::any_of(weights, [](const std::string& one) { return one.starts_with("random, "); });
  const bool synthetic =
      std::ranges::any_of(images, [](const std::string& one) { return one.ends_with(" synthetic"); });
  const std::string text = fmt::format("Weights: {}. Images: {}.", all(weights), all(images));
  if (random && synthetic)
    return text + " Random weights and synthetic images serve to measure times and rounding; the classes mean nothing.";
  if (random) return text + " With random weights the classes mean nothing; times and rounding errors do.";
  if (synthetic) return text + " Of synthetic images the classes mean nothing; times and rounding errors do.";
  return text;
}

// ---- the terminal

namespace {

/// Columns as wide as what is in them, two spaces apart; but the first `texts` stand to the right.
void print_table(const std::vector<std::vector<std::string>>& rows, std::size_t texts) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      line += (c == 0 ? "" : "  ") +
              (c < texts ? fmt::format("{:<{}}", row[c], widths[c]) : fmt::format("{:>{}}", row[c], widths[c]));
    terminal::print("{}\n", line);
  }
}

}  // namespace

void print_summary(const Report& report) {
  std::vector<std::vector<std::string>> rows{{"device", "model", "type", "images/s", "yardstick",
                                              pass_text(Pass::forward_backward), "memory", "error", "as fp64"}};
  for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
    const Speed* forward = speed_of(result, Pass::forward, run.batch);
    const Speed* backward = speed_of(result, Pass::forward_backward, run.batch);
    const std::optional<Accuracy>& accuracy = result.accuracy;
    rows.push_back(
        {device_text(report, r, device_of(run, result)), model_of(run, result).label, result.dtype,
         forward ? rate_text(*forward) : "-", forward ? share_text(forward->compute_share) : "-",
         backward ? rate_text(*backward) : "-",
         forward ? readable_bytes(static_cast<std::size_t>(forward->peak_bytes)) : "-",
         accuracy ? error_text(accuracy->logits.l2) : "-",
         accuracy ? agreement_text(accuracy->top1_agreement, static_cast<std::size_t>(accuracy->judged)) : "-"});
  });
  print_table(rows, 3);
  for (const ScoreRatio& ratio : score_ratios(report)) {
    const Run& run = report.runs[ratio.run];
    if (ratio.batch == run.batch)
      terminal::print("{}, {}: {}\n", result_text(report, ratio.run, *ratio.other), pass_text(ratio.pass),
                      ratio_text(ratio.speedup, "times as fast as softmax"));
  }
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    const Run& run = report.runs[r];
    for (const Result& result : run.results)
      if (const std::string text = outside_text(run, result); !text.empty())
        terminal::print("beyond the tolerance of {}: {}\n", number_text(result.tolerance), text);
    std::vector<std::string> providers;
    for (const Result& result : run.results)
      for (const std::string& provider : providers_of(result))
        if (std::ranges::find(providers, provider) == providers.end()) providers.push_back(provider);
    if (!providers.empty())
      terminal::print("{}products by {}\n", report.runs.size() > 1 ? run_name(report, r) + ": " : "",
                      fmt::format("{}", fmt::join(providers, " and ")));
    for (const DeviceReport& device : run.devices)
      if (device.estimated) terminal::print("{}: {}\n", device_text(report, r, device), tuning::estimated_note);
  }
  if (report.baseline)
    for (const Change& change : report.baseline->changes)
      if (change.verdict == beyond_but_unclear)
        terminal::print("{}, {}, {}, {}: {}\n", change.device, change.model, change.dtype, change.what, change.verdict);
  terminal::print("{}\n{}\n", verdict(report), inputs_text(report));
}

}  // namespace sylvit::report
