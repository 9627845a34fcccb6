#include "report/csv.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "report/interval.hpp"
#include "report/summary.hpp"

namespace sylvit::report {

CsvTable::CsvTable(std::vector<std::string> columns) { rows_.push_back(std::move(columns)); }

void CsvTable::begin_row() { rows_.emplace_back(); }

void CsvTable::add_cell(const std::string& text) { rows_.back().push_back(text); }

void CsvTable::add(const std::string& text) {
  const bool formula = !text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos;
  std::string cell = formula ? "'" + text : text;
  // A terminal that shows the file must not be steered by it.
  std::ranges::replace_if(
      cell, [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f; }, ' ');
  add_cell(cell);
}

void CsvTable::add(double number) { add_cell(std::isfinite(number) ? fmt::format("{:.9g}", number) : ""); }

void CsvTable::add(std::int64_t number) { add_cell(std::to_string(number)); }

std::string CsvTable::text() const {
  std::string all;
  for (const std::vector<std::string>& row : rows_) {
    if (row.size() != rows_.front().size())
      throw Error(
          fmt::format("a row of {} cells does not fit a table of {} columns", row.size(), rows_.front().size()));
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c > 0) all += ',';
      if (row[c].find_first_of(",\"\r\n") == std::string::npos) {
        all += row[c];
        continue;
      }
      all += '"';
      for (const char letter : row[c]) all += letter == '"' ? std::string("\"\"") : std::string(1, letter);
      all += '"';
    }
    all += "\r\n";
  }
  return all;
}

namespace {

/// All that any result was timed in, passes by passes, small batches first.
std::vector<std::pair<Pass, std::int64_t>> timings_of(const Report& report) {
  std::vector<std::pair<Pass, std::int64_t>> all;
  for_each_result(report, [&](std::size_t, const Run&, const Result& result) {
    for (const Speed& speed : result.speeds) all.emplace_back(speed.pass, speed.batch);
  });
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

const Ratio* ratio_of(const std::vector<ScoreRatio>& ratios, const Result& result, Pass pass, std::int64_t batch) {
  const auto found = std::ranges::find_if(ratios, [&](const ScoreRatio& ratio) {
    return ratio.other == &result && ratio.pass == pass && ratio.batch == batch;
  });
  return found == ratios.end() ? nullptr : &found->speedup;
}

/// What computed the products of a result, each name once.
std::string providers_text(const Result& result) {
  std::string text;
  for (const std::string& provider : providers_of(result)) text += (text.empty() ? "" : " ") + provider;
  return text;
}

}  // namespace

std::string report_csv(const Report& report) {
  const auto timings = timings_of(report);
  const std::vector<ScoreRatio> ratios = score_ratios(report);
  std::vector<std::string> columns{
      "run",          "machine",   "date",           "version",         "commit",    "toolchain",
      "device",       "backend",   "driver",         "model",           "score",     "dtype",
      "weights",      "images",    "providers",      "error",           "failed_in", "logits_l2",
      "logits_max",   "tolerance", "checked_images", "agreeing_images", "loss",      "reference_loss",
      "first_outside"};
  for (const auto& [pass, batch] : timings)
    for (const char* what :
         {"ms_median", "ms_low", "ms_high", "ms_p90", "ms_p99", "passes", "images_per_s", "gflops", "yardstick_share",
          "bandwidth_share", "peak_bytes", "times_as_fast_as_softmax", "times_as_fast_low", "times_as_fast_high"})
      columns.push_back(fmt::format("{}_b{}_{}", pass == Pass::forward ? "forward" : "forward_backward", batch, what));
  CsvTable table(std::move(columns));
  for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
    const DeviceReport& device = device_of(run, result);
    const ModelReport& model = model_of(run, result);
    table.begin_row();
    table.add(static_cast<std::int64_t>(r) + 1);
    for (const std::string* text :
         {&run.machine, &run.date, &run.version, &run.commit, &run.toolchain, &device.name, &device.backend,
          &device.driver, &model.label, &model.score, &result.dtype, &model.weights, &model.images})
      table.add(*text);
    table.add(providers_text(result));
    table.add(result.error);
    table.add(result.failed_in);
    const Accuracy accuracy = result.accuracy.value_or(Accuracy{});
    table.add(accuracy.logits.l2);
    table.add(accuracy.logits.max);
    table.add(result.tolerance);
    table.add(accuracy.judged);
    table.add(std::round(accuracy.top1_agreement * static_cast<double>(accuracy.judged)));
    table.add(accuracy.loss);
    table.add(accuracy.reference_loss);
    table.add(accuracy.first_outside);
    for (const auto& [pass, batch] : timings) {
      const Speed* timed = speed_of(result, pass, batch);
      const Speed speed = timed == nullptr ? Speed{} : *timed;
      const Interval interval = interval_of(speed.ms);
      const Ratio* ratio = ratio_of(ratios, result, pass, batch);
      const Ratio speedup = ratio == nullptr ? Ratio{} : *ratio;
      for (const double number : {speed.ms.median, interval.low, interval.high, percentile(speed.ms.samples, 0.9),
                                  percentile(speed.ms.samples, 0.99)})
        table.add(number);
      table.add(speed.ms.count);
      for (const double number : {speed.images_per_s, speed.gflops, speed.compute_share, speed.bandwidth_share})
        table.add(number);
      table.add(speed.peak_bytes);
      for (const double number : {speedup.value, speedup.interval.low, speedup.interval.high}) table.add(number);
    }
  });
  return table.text();
}

}  // namespace sylvit::report
