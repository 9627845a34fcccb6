#include "report/html.hpp"

#include <sylvit/memory.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "report/html_tables.hpp"
#include "report/page.hpp"
#include "report/plots.hpp"
#include "report/summary.hpp"
#include "tuning/estimated.hpp"

namespace sylvit::report {

namespace {

/// What a reader must know before the numbers.
std::string notes(const Report& report) {
  std::string html = note("", inputs_text(report));
  if (report.baseline) {
    const auto regressed = std::ranges::count_if(report.baseline->changes,
                                                 [](const Change& change) { return !change.regression.empty(); });
    html += report.baseline->compared == 0
                ? note("warn", report.baseline->file + ", the baseline, has nothing in common with this report")
            : regressed > 0 ? note("bad", fmt::format("{} of {} changes since {} are regressions", regressed,
                                                      report.baseline->changes.size(), report.baseline->file))
                            : note("", fmt::format("No regression since {}", report.baseline->file));
  }
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    const Run& run = report.runs[r];
    for (const std::string& failure : failures_of(run)) html += note("bad", "Failed: " + failure);
    for (const Result& result : run.results)
      if (const std::string text = outside_text(run, result); !text.empty())
        html += note("warn", fmt::format("Beyond the tolerance of {}: {} ({})", number_text(result.tolerance), text,
                                         run.models[static_cast<std::size_t>(result.model)].label));
    for (const DeviceReport& device : run.devices)
      if (device.estimated)
        html += note(
            "warn", fmt::format("{}: its tile numbers are {}", device_text(report, r, device), tuning::estimated_note));
  }
  return html;
}

std::string title_of(const Report& report) {
  std::vector<std::string> names;
  for (const Run& run : report.runs)
    for (const ModelReport& model : run.models)
      if (std::ranges::find(names, model.label) == names.end()) names.push_back(model.label);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return text;
}

std::string lead(const Report& report) {
  std::size_t devices = 0;
  std::size_t results = 0;
  for (const Run& run : report.runs) {
    devices += run.devices.size();
    results += run.results.size();
  }
  std::string text =
      fmt::format("{} device{}, {} combinations of device, model and type", devices, devices == 1 ? "" : "s", results);
  if (report.runs.size() > 1) text += fmt::format(", of {} runs", report.runs.size());
  const Run& first = report.runs.front();
  const std::string commit = first.commit.empty() ? "" : ", commit " + first.commit;
  return fmt::format("{}; {}, sylvit {} ({}{})", text, first.date, first.version, first.toolchain, commit);
}

}  // namespace

std::string report_html(const Report& report) {
  const std::string speed = throughput_cards(report) + ratio_cards(report) + batch_cards(report) + layer_cards(report) +
                            roofline_cards(report);
  return html_page(
      {.program = "sylvit compare",
       .title = title_of(report),
       .verdict = verdict(report),
       .lead = lead(report),
       .notes = notes(report),
       .content = section("Summary", summary_table(report) + score_table(report)) +
                  section("Beside the baseline", baseline_table(report)) +
                  section("Speed", grid(speed) + latency_table(report)) +
                  section("Accuracy", grid(error_cards(report)) + accuracy_table(report) + pair_table(report) +
                                          gradient_table(report)) +
                  section("Details", run_details(report) + device_details(report) + model_details(report) +
                                         speed_details(report) + layer_details(report) + engine_details(report) +
                                         gradient_details(report) + pair_details(report)),
       .footer = "Errors are relative; times are medians of interleaved passes. docs/compare.md says what each number "
                 "means; report.json beside this page has all of them, and report.csv a row for each result."});
}

}  // namespace sylvit::report
