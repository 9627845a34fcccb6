#include "report/html.hpp"

#include <sylvit/memory.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "report/html_tables.hpp"
#include "report/plots.hpp"
#include "report/style.hpp"
#include "report/summary.hpp"
#include "report/svg.hpp"
#include "tuning/estimated.hpp"

namespace sylvit::report {

namespace {

std::string section(const std::string& heading, const std::string& content) {
  return content.empty() ? "" : fmt::format("<section><h2>{}</h2>\n{}</section>\n", escaped(heading), content);
}

std::string note(const std::string& kind, const std::string& sentence) {
  return fmt::format("<p class=\"note {}\">{}</p>\n", kind, escaped(sentence));
}

/// What a reader must know before the numbers.
std::string notes(const Report& report) {
  std::string html;
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
  return fmt::format("{}; {}, sylvit {} ({})", text, first.date, first.version, first.toolchain);
}

}  // namespace

std::string report_html(const Report& report) {
  const std::string title = title_of(report);
  std::string html = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  // Nothing is ever fetched, not even an icon.
  html +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src "
      "data:\">\n<link rel=\"icon\" href=\"data:,\">\n";
  html += fmt::format("<title>sylvit compare: {}</title>\n<style>{}</style>\n</head>\n<body>\n", escaped(title),
                      page_style);
  html += fmt::format(
      "<header><p class=\"kicker\">sylvit compare</p><h1>{}</h1>\n<p class=\"lead\">{}</p>\n{}</header>\n<main>\n",
      escaped(title), escaped(lead(report)), notes(report));
  html += section("Summary", summary_table(report) + score_table(report));
  html += section("Speed", "<div class=\"grid2\">\n" + throughput_cards(report) + layer_cards(report) +
                               roofline_cards(report) + batch_cards(report) + "</div>\n");
  html += section("Accuracy", "<div class=\"grid2\">\n" + error_cards(report) + "</div>\n" + accuracy_table(report) +
                                  pair_table(report) + gradient_table(report));
  html +=
      section("Details", run_details(report) + device_details(report) + model_details(report) + speed_details(report) +
                             layer_details(report) + gradient_details(report) + pair_details(report));
  html +=
      "</main>\n<footer>Errors are relative; times are medians of interleaved runs. docs/compare.md says what each "
      "number "
      "means, and report.json beside this page has all of them.</footer>\n</body>\n</html>\n";
  return html;
}

}  // namespace sylvit::report
