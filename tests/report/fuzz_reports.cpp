// Any bytes are either a report, of which the page can be made and which stays the same when it is written and read
// again, or are refused with a sentence.
#include <sylvit/error.hpp>

#include <fstream>
#include <iterator>

#include "fuzz/fuzz.hpp"
#include "report/csv.hpp"
#include "report/html.hpp"
#include "report/json.hpp"
#include "report/merge.hpp"

using sylvit::fuzz::require;

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  sylvit::report::Report report;
  try {
    report = sylvit::report::parse_report(text, "fuzz");
  } catch (const sylvit::Error& error) {
    sylvit::fuzz::require_sentence(error.what());
    return 0;
  }
  static_cast<void>(sylvit::report::report_csv(report));
  const std::string page = sylvit::report::report_html(report);
  // Whatever the report says, the page has no script of its own, and no number that is none draws anything.
  require(page.find("<script") == std::string::npos);
  for (const char* none : {"=\"nan", "=\"-nan", "=\"inf", "=\"-inf", ":nan", ":inf"})
    require(page.find(none) == std::string::npos);
  const std::string written = sylvit::report::report_json(report);
  require(sylvit::report::report_json(sylvit::report::parse_report(written, "fuzz")) == written);
  try {
    static_cast<void>(sylvit::report::merged({{"fuzz a", report}, {"fuzz b", report}}));
    static_cast<void>(sylvit::report::regressions(sylvit::report::beside(report, {"fuzz", report}, {})));
  } catch (const sylvit::Error& error) {
    sylvit::fuzz::require_sentence(error.what());
  }
  return 0;
}

namespace sylvit::fuzz {

std::vector<std::string> seeds() {
  using namespace report;
  Report small;
  Run& run = small.runs.emplace_back();
  run.date = "2026-01-02";
  run.batch = 4;
  DeviceReport& device = run.devices.emplace_back();
  device.name = "device";
  device.sub_group_sizes = {8};
  ModelReport& model = run.models.emplace_back();
  model.label = "S/16 relu/L";
  std::vector<std::string> result{report_json(small)};

  device.yardsticks = {{"f32", 100, "onemkl"}};
  device.bandwidth_gbs = 20;
  device.tuning = {{"gemm", "f32, N 1, K 2", "dpcpp-cpu/default", 3, true, "rows 4", "estimated: x"}};
  run.environment = {{"SYLVIT_GEMM", "onemkl"}};
  run.packages = {{"mkl", "2026.2.0"}};
  model.score = "relu";
  const Errors errors{1e-6, 1e-7, 1e-14, 1e-8, 1e-7, 1e-7, 1e-6};
  const Timing timing{.median = 10, .best = 8, .p25 = 9, .p75 = 12, .count = 6, .samples = {8, 9, 9, 11, 12, 12}};
  for (const char* dtype : {"f32", "bf16"}) {
    Result& one = run.results.emplace_back();
    one.dtype = dtype;
    one.tolerance = 1e-4;
    one.accuracy = Accuracy{1, errors, 1, 2.5, 2.5, {{"embedding", errors}, {"blocks.0.norm1", errors}}, "", unknown};
    one.gradients = Gradients{"tiny", 1, 1, {{"norm.bias", errors}}};
    one.speeds = {{Pass::forward, 1, timing, 1, 100, 50, 0.5, 0.25, 1000},
                  {Pass::forward, 4, timing, 2, 400, 50, 0.5, 0.25, 1000},
                  {Pass::forward_backward, 4, timing, 3, 30, 40, 0.4, 0.2, 4000}};
    one.layers = {{"blocks.*.attn", 12, 3, 1e9, 1e7}};
    one.engines = {{Pass::forward, "blocks.*.attn", "AttentionForward", {"AttentionForward<float>"}}};
    one.top1 = {3};
    one.logits = {0.5, 0.25};
  }
  small.pairs.push_back({0, 1, 0, 0, errors, 1, {{"head", errors}}});
  result.push_back(report_json(small));
  small.baseline = beside(small, {"baseline.json", small}, {});
  result.push_back(report_json(small));
  std::ifstream first_schema(SYLVIT_REPORTS "/schema1.json", std::ios::binary);
  result.emplace_back(std::istreambuf_iterator<char>(first_schema), std::istreambuf_iterator<char>());
  require(!result.back().empty());
  return result;
}

std::vector<std::string_view> words() {
  return {"null",        "true",
          "[",           "]",
          "{",           "}",
          ",",           "\"",
          "0",           "-1",
          "5e-324",      "1e308",
          "1e-100",      "1e100",
          "1e-320",      "9000000000000000",
          "1e400",       "4294967296",
          "\"runs\":",   "\"pairs\":",
          "\"kind\":",   "\"schema\":",
          "\"forward\"", "\"backward\"",
          "\"softmax\"", "\"blocks.99999999999999999999.attn\"",
          "\\u0000",     "\\u001b",
          "\\ud800",     "<script>"};
}

}  // namespace sylvit::fuzz
