#include "report/summary.hpp"

#include <sylvit/memory.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

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
            ratios.push_back({r, &softmax, &other, speed.pass, speed.batch, speed.ms.median / theirs->ms.median});
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

void print_summary(const Report& report) {
  std::size_t device_width = 6;
  std::size_t model_width = 5;
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    for (const DeviceReport& device : report.runs[r].devices)
      device_width = std::max(device_width, device_text(report, r, device).size());
    for (const ModelReport& model : report.runs[r].models) model_width = std::max(model_width, model.label.size());
  }
  terminal::print("{:<{}}  {:<{}}  {:<4}  {:>9}  {:>7}  {:>8}  {:>18}  {:>9}  {:>8}  {:>6}\n", "device", device_width,
                  "model", model_width, "type", "images/s", "GFLOP/s", "ceiling", pass_text(Pass::forward_backward),
                  "memory", "error", "top-1");
  for (std::size_t r = 0; r < report.runs.size(); ++r)
    for (const Result& result : report.runs[r].results) {
      const Run& run = report.runs[r];
      const Speed* forward = speed_of(result, Pass::forward, run.batch);
      const Speed* backward = speed_of(result, Pass::forward_backward, run.batch);
      terminal::print("{:<{}}  {:<{}}  {:<4}  {:>9}  {:>7}  {:>8}  {:>18}  {:>9}  {:>8}  {:>6}\n",
                      device_text(report, r, run.devices[static_cast<std::size_t>(result.device)]), device_width,
                      run.models[static_cast<std::size_t>(result.model)].label, model_width, result.dtype,
                      forward ? number_text(forward->images_per_s) : "-", forward ? number_text(forward->gflops) : "-",
                      forward ? share_text(forward->compute_share) : "-",
                      backward ? number_text(backward->images_per_s) : "-",
                      forward ? readable_bytes(static_cast<std::size_t>(forward->peak_bytes)) : "-",
                      result.accuracy ? error_text(result.accuracy->logits.l2) : "-",
                      result.accuracy ? share_text(result.accuracy->top1_agreement) : "-");
    }
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    const Run& run = report.runs[r];
    for (const ScoreRatio& ratio : score_ratios(report))
      if (ratio.run == r && ratio.pass == Pass::forward && ratio.batch == run.batch)
        terminal::print("{} is {:.2f} times as fast as softmax ({}, {})\n",
                        run.models[static_cast<std::size_t>(ratio.other->model)].label, ratio.speedup,
                        device_text(report, r, run.devices[static_cast<std::size_t>(ratio.other->device)]),
                        ratio.other->dtype);
    for (const Result& result : run.results)
      if (const std::string text = outside_text(run, result); !text.empty())
        terminal::print("beyond the tolerance of {}: {}\n", number_text(result.tolerance), text);
    for (const DeviceReport& device : run.devices)
      if (device.estimated) terminal::print("{}: {}\n", device_text(report, r, device), tuning::estimated_note);
  }
}

}  // namespace sylvit::report
