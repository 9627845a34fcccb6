// What compare is made of: errors, reports read back, merged and judged, failing devices, the page's text.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "compare/inputs.hpp"
#include "report/charts.hpp"
#include "report/csv.hpp"
#include "report/errors.hpp"
#include "report/html.hpp"
#include "report/json.hpp"
#include "report/merge.hpp"
#include "report/summary.hpp"
#include "report/svg.hpp"
#include "report/write.hpp"
#include "support.hpp"

using namespace sylvit;
using namespace sylvit::compare;
using namespace sylvit::report;
using sylvit::test::check_error;
using sylvit::test::TemporaryDirectory;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Errors errors_like(double size) { return {size, size / 2, size * size, size / 8, size / 4, size / 3, size / 2.5}; }

/// Of seven rounds, between 98 and 102 hundredths of the median.
Timing timing(double median) {
  Timing result{median, 0.98 * median, 0.99 * median, 1.01 * median, 7, {}};
  for (const double share : {1.0, 0.98, 1.02, 1.0, 0.99, 1.01, 1.0}) result.samples.push_back(share * median);
  return result;
}

/// A report with something in every field.
Report sample() {
  Report report;
  Run& run = report.runs.emplace_back();
  run.date = "2026-01-02 03:04 UTC";
  run.command = "sylvit compare --out 'a b'";
  run.version = "1.2.3";
  run.toolchain = "rtc";
  run.compiler = "GCC 12";
  run.host = "a processor";
  run.system = "Linux";
  run.commit = "0123456789ab-dirty";
  run.machine = "laptop";
  run.environment = {{"SYLVIT_GEMM", "onemkl"}};
  run.packages = {{"intel-sycl-rt", "2026.2.0"}, {"mkl", "2026.2.0"}};
  run.cores = 2;
  run.batch = 4;
  run.seconds = 1.5;
  DeviceReport& device = run.devices.emplace_back();
  device.name = "device";
  device.backend = "opencl";
  device.sub_group_sizes = {8, 16};
  device.yardsticks = {{"f32", 100, "onemkl"}};
  device.bandwidth_gbs = 20;
  device.tuning = {{"gemm", "f32, N 1, K 2", "dpcpp-cpu/default", 3, true, "rows 4", "estimated: x"}};
  for (const char* score : {"softmax", "relu"}) {
    ModelReport& model = run.models.emplace_back();
    model.name = "S/16";
    model.score = score;
    model.label = std::string("S/16 ") + score;
    model.description = "sizes";
    model.parameters = 5;
    model.forward_flops = 1e9;
    model.weights = "random, seed 0";
    model.images = "2 synthetic";
    model.weights_fingerprint = "00000000000000aa";
    model.images_fingerprint = "00000000000000bb";
    model.image_count = 2;
  }
  for (std::int64_t m = 0; m < 2; ++m) {
    Result& result = run.results.emplace_back();
    result.model = m;
    result.dtype = "f32";
    result.tolerance = 1e-4;
    result.accuracy = Accuracy{
        1,   errors_like(1e-6),
        1,   2.5,
        2.5, {{"embedding", errors_like(1e-7)}, {"blocks.0.attn", errors_like(1e-6)}, {"head", errors_like(2e-6)}},
        "",  unknown};
    result.gradients = Gradients{"tiny", 1, 1, {{"norm.bias", errors_like(1e-5)}}};
    for (const std::int64_t batch : {1, 4})
      result.speeds.push_back(
          {Pass::forward, batch, timing(10.0 - static_cast<double>(m)), batch, 100, 50, 0.5, 0.25, 1000});
    result.speeds.push_back({Pass::forward_backward, 4, timing(30), 5, 30, 40, 0.4, 0.2, 4000});
    result.layers = {{"blocks.*.attn", 12, 3, 1e9, 1e7}, {"blocks.*.norm1", 12, 1, 0, 1e7}};
    result.layers_batch = 4;
    result.engines = {{Pass::forward, "blocks.*.attn.qkv", "onemkl", {"onemkl", "GemmEpilogue<float>"}},
                      {Pass::forward, "blocks.*.attn", "AttentionForward", {"AttentionForward<float>"}}};
    result.top1 = {3, 1};
    result.logits = {0.5, 0.25, -1};
  }
  report.pairs.push_back({0, 1, 0, 0, errors_like(1e-6), 1, {{"head", errors_like(1e-6)}}});
  return report;
}

/// In bytes, so far.
std::size_t peak_memory() {
  struct rusage usage {};
  REQUIRE(::getrusage(RUSAGE_SELF, &usage) == 0);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

Report changed(const std::function<void(Report&)>& change) {
  Report report = sample();
  change(report);
  return report;
}

/// The cells of a table of comma-separated values, row by row.
std::vector<std::vector<std::string>> cells_of_csv(const std::string& csv) {
  std::vector<std::vector<std::string>> rows(1, {""});
  bool quoted = false;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    const char c = csv[i];
    if (c == '"' && quoted && csv[i + 1] == '"') {
      rows.back().back() += csv[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      rows.back().emplace_back();
    } else if (c == '\n' && !quoted) {
      rows.push_back({""});
    } else if (c != '\r') {
      rows.back().back() += c;
    }
  }
  rows.pop_back();
  return rows;
}

/// A model that takes no time.
compare::Request small_request() {
  InputOptions inputs;
  inputs.scores = {"relu"};
  inputs.source.seed = 1;
  inputs.image_count = 2;
  inputs.judged = 1;
  auto& options = inputs.variations;
  options.width = 64;
  options.depth = 1;
  options.heads = 2;
  options.mlp = 96;
  options.patch = 8;
  options.image_size = 16;
  options.classes = 5;
  Request request;
  std::vector<std::string> warnings;
  request.models = make_models(inputs, warnings);
  CHECK(warnings.empty());
  request.dtypes = {DType::f32};
  request.batch = 1;
  request.seconds = 0;
  request.tolerances = {{DType::f32, 1e-4}};
  request.gradients = GradientsOf::none;
  request.backward = false;
  return request;
}

/// The test's device under two names.
std::vector<DeviceInfo> two_devices() {
  DeviceInfo first = test::device().info();
  DeviceInfo second = first;
  first.name = "one";
  second.name = "two";
  return {first, second};
}

}  // namespace

TEST_SUITE("report/report") {
  TEST_CASE("errors are what they are called") {
    const std::vector<double> expected{4, 3, 0, 0};
    const Errors errors = errors_of(std::vector<float>{4, 3.5F, 0, 0.25F}, expected);
    CHECK(errors.max == doctest::Approx(0.125));
    CHECK(errors.l2 == doctest::Approx(std::sqrt(0.3125) / 5));
    const double cosine = (16 + 10.5) / (5 * std::sqrt(16 + 12.25 + 0.0625));
    CHECK(errors.cosine_distance == doctest::Approx(1 - cosine));
    CHECK(errors.p50 == 0);
    CHECK(errors.p90 == doctest::Approx(0.125));
    CHECK(errors_of(std::vector<float>{4, 3, 0, 0}, expected).l2 == 0);
    // Hardly turned at all: 1 - cosine would be 0 in plain arithmetic.
    CHECK(errors_of(std::vector<double>{1, 1e-9}, std::vector<double>{1, 0}).cosine_distance ==
          doctest::Approx(0.5e-18).epsilon(1e-6));
    // Percentiles of 1000 values.
    std::vector<double> zeros(1000, 0);
    std::vector<double> steps(1000);
    for (std::size_t i = 0; i < steps.size(); ++i) steps[999 - i] = static_cast<double>(i + 1) / 1000;
    const Errors ladder = errors_of(steps, zeros);
    CHECK(ladder.p50 == 0.5);
    CHECK(ladder.p90 == 0.9);
    CHECK(ladder.p99 == 0.99);
    CHECK(ladder.p999 == 0.999);
    CHECK(ladder.max == 1);
    const Errors wrong = errors_of(std::vector<float>{4, NAN, 0, 0}, expected);
    CHECK(std::isinf(wrong.l2));
    CHECK(std::isinf(wrong.max));
    check_error([&] { (void)errors_of(std::vector<float>{1}, expected); }, {"1", "4"});
    CHECK(top_classes_of(std::vector<float>{0, 2, 1, 9, 3, 4}, 3) == std::vector<std::int64_t>{1, 0});
    CHECK(agreement(std::vector<std::int64_t>{1, 2, 3}, std::vector<std::int64_t>{1, 2, 4}) ==
          doctest::Approx(2.0 / 3));
  }

  TEST_CASE("layers have names for people") {
    CHECK(layer_text("blocks.7.attn") == "block 7, attention output");
    CHECK(layer_text("blocks.11.mlp.fc2") == "block 11, tokens after MLP");
    CHECK(layer_text("head") == "head, the logits");
    CHECK(layer_text("blocks") == "blocks");
    CHECK(layer_text("blocks.x") == "blocks.x");
    Report report = changed([](Report& r) {
      r.runs[0].results[0].accuracy->first_outside = "blocks.7.attn";
      r.runs[0].results[0].accuracy->first_outside_error = 3.1e-3;
    });
    CHECK(outside_text(report.runs[0], report.runs[0].results[0]) ==
          "block 7, attention output, 3.1e-03 on device, f32");
  }

  TEST_CASE("a report read back is the report that was written") {
    const std::string text = report_json(sample());
    CHECK(report_json(parse_report(text, "x")) == text);
    // Old reports say "backward", too.
    CHECK(has(text, "\"pass\": \"forward\""));
    CHECK(has(text, "\"pass\": \"backward\""));
    CHECK(parse_report(text, "x").runs[0].results[0].speeds[2].pass == Pass::forward_backward);
    CHECK(has(report_html(sample()), "Forward + backward images/s"));
    // What is not finite is null, and not known when it is read back.
    const Report report = changed([](Report& r) { r.runs[0].results[0].accuracy->logits.l2 = INFINITY; });
    CHECK(std::isnan(parse_report(report_json(report), "x").runs[0].results[0].accuracy->logits.l2));
    // So is what is as good as infinite, and the smallest numbers are 0. A command line may have thousands of files.
    const Report large = changed([](Report& r) {
      r.runs[0].results[0].accuracy->logits.l2 = 5e-324;
      r.runs[0].results[0].accuracy->logits.max = -1e-99;
      r.runs[0].results[0].accuracy->loss = 1e300;
      r.runs[0].command = std::string(100'000, 'x');
    });
    const std::string large_text = report_json(large);
    const Report back = parse_report(large_text, "x");
    CHECK(report_json(back) == large_text);
    CHECK(back.runs[0].results[0].accuracy->logits.l2 == 0);
    CHECK(back.runs[0].results[0].accuracy->logits.max == -1e-99);
    CHECK(std::isnan(back.runs[0].results[0].accuracy->loss));
    // In any order of the keys.
    const nlohmann::json sorted = nlohmann::json::parse(text);
    CHECK(sorted.rbegin().key() == "schema");
    CHECK(report_json(parse_report(sorted.dump(), "x")) == text);
  }

  TEST_CASE("a report of the first schema is read, merged and a baseline still") {
    const std::filesystem::path file = test::test_directory() / "report" / "schema1.json";
    const Report old = read_report(file);
    REQUIRE(old.runs.size() == 1);
    const Run& run = old.runs.front();
    CHECK(run.commit.empty());
    REQUIRE(run.devices[0].yardsticks.size() == 1);  // which it calls ceilings
    CHECK(run.devices[0].yardsticks[0].gflops > 0);
    REQUIRE(run.results.size() == 2);
    const Speed& speed = run.results[0].speeds[0];
    CHECK(speed.ms.samples.empty());
    // Of times that are not there, the middle half is known.
    CHECK(interval_of(speed.ms).low == speed.ms.p25);
    CHECK(interval_of(speed.ms).high == speed.ms.p75);
    const std::string text = report_json(old);
    CHECK(has(text, "\"schema\": 2"));
    CHECK(report_json(parse_report(text, "x")) == text);
    CHECK(merged({{"a", old}, {"b", old}}).runs.size() == 2);
    CHECK(regressions(beside(old, {"old", old}, {1.1, 1e-3})).empty());
    const std::string page = report_html(old);
    CHECK(has(page, "Of yardstick"));
    CHECK(!has(page, "nan"));
    CHECK(!has(page, "commit"));
    CHECK(!verdict(old).empty());
  }

  TEST_CASE("the page begins with a verdict of two sentences") {
    CHECK(verdict(sample()) ==
          "Both combinations of model, type and device keep to their tolerance in every layer, and the class agrees "
          "with fp64 in 2 of 2 checks. Beside softmax, relu is faster in 2 of 3 timings (1.11 times as fast) and not "
          "distinguishable in 1 of 3 timings.");
    CHECK(has(report_html(sample()), "<p class=\"verdict\">Both combinations"));
    CHECK(
        verdict(changed([](Report& r) {
          for (Speed& speed : r.runs[0].results[1].speeds) speed.ms = timing(2 * speed.ms.median);
          r.runs[0].results[1].accuracy->first_outside = "head";
          r.runs[0].results[1].accuracy->first_outside_error = 0.5;
          r.runs[0].results[1].accuracy->top1_agreement = 0;
        })) ==
        "1 of 2 combinations of model, type and device has a layer beyond its tolerance (the first: head, the logits, "
        "5.0e-01 on device, f32), and the class agrees with fp64 in 1 of 2 checks. Beside softmax, relu is slower in "
        "all 3 timings (0.50 to 0.56 times as fast).");
    CHECK(verdict(changed([](Report& r) {
            r.runs[0].results[1].error = "lost";
            r.runs[0].results[1].accuracy.reset();
            r.runs[0].results[1].speeds.clear();
          })) ==
          "1 of 2 combinations of model, type and device failed; the one that was judged keeps to its tolerance "
          "in every layer, and the class agrees with fp64 in 1 of 1 checks. Forward, S/16 softmax, f32: "
          "100 images/s (392 to 408) in batches of 4.");
    CHECK(has(verdict(changed([](Report& r) {
                for (Speed& speed : r.runs[0].results[1].speeds) speed.ms.samples.clear();
              })),
              "Beside softmax, relu is faster in 2 of 3"));
    CHECK(has(verdict(changed([](Report& r) { r.runs[0].results[1].speeds = r.runs[0].results[0].speeds; })),
              "relu is not distinguishable in any of 3 timings."));
    // Without softmax: the fastest, and what cannot be told from it.
    const auto no_softmax = [](double other) {
      return verdict(changed([&](Report& r) {
        for (ModelReport& model : r.runs[0].models) model.score = "relu";
        r.runs[0].results[1].speeds[1].images_per_s = other;
        r.runs[0].results[1].speeds[1].ms = timing(4000 / other);
        r.runs[0].results[0].speeds[1].images_per_s = 400;
      }));
    };
    CHECK(has(no_softmax(500),
              ". The fastest forward pass is that of S/16 relu, f32: 500 images/s (490 to 510) in "
              "batches of 4."));
    CHECK(has(no_softmax(401), " in batches of 4, not distinguishable from S/16 softmax, f32."));
  }

  TEST_CASE("what weights and images were is said") {
    CHECK(
        inputs_text(sample()) ==
        "Weights: random, seed 0. Images: 2 synthetic. Random weights and synthetic images serve to measure times and "
        "rounding; the classes mean nothing.");
    const auto with = [](const char* weights, const char* images) {
      return inputs_text(changed([&](Report& r) {
        for (ModelReport& model : r.runs[0].models) {
          model.weights = weights;
          model.images = images;
        }
      }));
    };
    CHECK(with("w.safetensors", "2 image files") == "Weights: w.safetensors. Images: 2 image files.");
    CHECK(has(with("w.safetensors", "2 synthetic"), "synthetic images"));
    CHECK(!has(with("w.safetensors", "2 synthetic"), "andom"));
    CHECK(has(with("random, seed 1", "2 of x.safetensors"), "With random weights"));
    CHECK(has(report_html(sample()), "<p class=\"note \">Weights: random, seed 0. Images: 2 synthetic."));
  }

  TEST_CASE("ratios have intervals, and agreement its number of images") {
    const Report report = sample();
    const std::vector<ScoreRatio> ratios = score_ratios(report);
    REQUIRE(ratios.size() == 3);
    CHECK(ratio_text(ratios[0].speedup) == "1.11 (1.11 to 1.11)");  // the same in every round
    CHECK(ratio_text(ratios[2].speedup) == "1.00 (1.00 to 1.00), not distinguishable");
    // In other rounds, times are compared as wholes.
    const Report apart = changed([](Report& r) { r.runs[0].results[1].speeds[0].turns = 9; });
    CHECK(ratio_text(score_ratios(apart)[0].speedup) == "1.11 (1.07 to 1.16)");
    const std::string page = report_html(report);
    CHECK(has(page, "1.11<small>1.11 to 1.11</small>"));
    CHECK(has(page, "1.00<small>1.00 to 1.00\nnot distinguishable</small>"));
    CHECK(has(page, "Agrees with fp64 on"));
    CHECK(has(page, "1 of 1 image<"));
    CHECK(has(page, "2 of 2 images"));
    CHECK(!has(page, "op-1"));
    CHECK(!has(page, "eiling"));
  }

  TEST_CASE("the page says what ran") {
    const std::string page = report_html(sample());
    for (const char* part : {"commit 0123456789ab-dirty", "SYLVIT_GEMM=onemkl", "intel-sycl-rt 2026.2.0, mkl 2026.2.0",
                             "laptop: a processor", "Who computed what: S/16 relu", "GemmEpilogue&lt;float&gt;",
                             "AttentionForward&lt;float&gt;"})
      CHECK_MESSAGE(has(page, part), part);
    CHECK(has(report_html(changed([](Report& r) { r.runs[0].environment.clear(); })), "<dt>variables</dt><dd>none"));
    CHECK(providers_of(sample().runs[0].results[0]) == std::vector<std::string>{"onemkl"});
  }

  TEST_CASE("types are columns of one table of layers, and the points of a roofline have names") {
    const Report report = changed([](Report& r) {
      r.runs[0].devices[0].yardsticks.push_back({"bf16", 100, "onemkl"});
      Result other = r.runs[0].results[0];
      other.dtype = "bf16";
      other.tolerance = 0.05;
      other.accuracy->layers[1].errors.l2 = 0.5;
      other.layers[0].ms = 4;
      other.layers.push_back({"head", 1, 1, 1e8, 1e6});
      r.runs[0].results.push_back(other);
    });
    const std::string page = report_html(report);
    const std::size_t table = page.find("Time per layer: S/16 softmax");
    REQUIRE(table != std::string::npos);
    const std::string times = page.substr(table, page.find("</details>", table) - table);
    CHECK(has(times, "<th class=\"number\">f32</th><th class=\"number\">bf16</th>"));
    CHECK(has(times, "3.00 ms<small>75 %, 12 times"));
    CHECK(has(times, "4.00 ms<small>67 %, 12 times"));
    CHECK(has(times, "data-label=\"f32\"><span>-</span>"));  // f32 has no head
    const std::size_t errors = page.find("Error per layer: S/16 softmax");
    REQUIRE(errors != std::string::npos);
    const std::string layers = page.substr(errors, page.find("</details>", errors) - errors);
    CHECK(has(layers, "<tr class=\"failed\"><td class=\"head\" data-label=\"Layer\"><span>block 0, attention output"));
    for (const char* name : {">softmax attention</text>", ">relu attention</text>", ">head</text>"})
      CHECK_MESSAGE(has(page, name), name);
    // Softmax and relu/L in one plot: one solid, one dashed.
    CHECK(has(page, "Batch sizes, S/16 relu beside softmax"));
    CHECK(has(page, "Error per layer, S/16 relu beside softmax"));
    CHECK(has(page, "Speed, S/16 relu beside softmax"));
  }

  TEST_CASE("report.csv has a row for each result, and percentiles where there are samples enough") {
    const Report report = changed([](Report& r) {
      r.runs[0].models[1].label = "S/16 \"relu\", L";
      r.runs[0].results[1].speeds.resize(2);
      std::vector<double>& samples = r.runs[0].results[0].speeds[0].ms.samples;
      samples.clear();
      for (int i = 100; i > 0; --i) samples.push_back(i);
    });
    const std::vector<std::vector<std::string>> rows = cells_of_csv(report_csv(report));
    REQUIRE(rows.size() == 3);
    const auto cell = [&](std::size_t row, const std::string& column) {
      const auto found = std::ranges::find(rows[0], column);
      REQUIRE_MESSAGE(found != rows[0].end(), column);
      REQUIRE(rows[row].size() == rows[0].size());
      return rows[row][static_cast<std::size_t>(found - rows[0].begin())];
    };
    CHECK(cell(2, "model") == "S/16 \"relu\", L");
    CHECK(cell(1, "commit") == "0123456789ab-dirty");
    CHECK(cell(1, "providers") == "onemkl");
    CHECK(cell(1, "agreeing_images") == "1");
    CHECK(cell(1, "forward_b1_ms_p90") == "90");
    CHECK(cell(1, "forward_b1_ms_p99") == "99");
    CHECK(cell(1, "forward_b4_ms_p90").empty());  // of seven
    CHECK(cell(1, "forward_b4_ms_median") == "10");
    CHECK(cell(2, "forward_b4_times_as_fast_as_softmax") == "1.11111111");
    CHECK(cell(1, "forward_b4_times_as_fast_as_softmax").empty());
    CHECK(cell(1, "forward_backward_b4_ms_median") == "30");
    CHECK(cell(2, "forward_backward_b4_ms_median").empty());
    // On the page as well, and a dash where seven passes are too few.
    const std::string page = report_html(report);
    CHECK(has(page, "Latency of the smallest batch"));
    CHECK(has(page, "data-label=\"99 %\"><span>99.0</span>"));
    CHECK(has(page, "data-label=\"99 %\"><span>-</span>"));
  }

  TEST_CASE("a damaged report is refused with one sentence, wherever it is cut") {
    const std::string text = report_json(sample());
    for (std::size_t size = 0; size + 2 < text.size(); size += 97) {
      CAPTURE(size);
      check_error([&] { (void)parse_report(text.substr(0, size), "cut.json"); }, {"cut.json", "damaged"});
    }
    // Any character changed: refused or read, but never anything else.
    for (std::size_t i = 0; i < text.size(); i += 7) {
      std::string other = text;
      other[i] = other[i] == '1' ? '9' : '1';
      try {
        const Report report = parse_report(other, "x");
        CHECK(!report_html(report).empty());
      } catch (const Error& error) {
        CHECK(has(error.what(), "cannot read the report x"));
      }
    }
    check_error([] { (void)parse_report(std::string(5'000'000, '['), "deep"); }, {"deep", "damaged"});
    const std::string deep = R"({"kind":"sylvit compare","schema":2,"baseline":null,"pairs":[],"runs":)" +
                             std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
    check_error([&] { (void)parse_report(deep, "deep"); }, {"deep", "runs[0]", "no JSON object"});
  }

  TEST_CASE("what does not belong into a report is named") {
    const auto check = [](const std::string& from, const std::string& to, std::initializer_list<std::string> parts) {
      std::string text = report_json(sample());
      const std::size_t at = text.find(from);
      REQUIRE_MESSAGE(at != std::string::npos, from);
      text.replace(at, from.size(), to);
      check_error([&] { (void)parse_report(text, "file.json"); }, parts);
    };
    check("\"schema\": 2", "\"schema\": 3", {"file.json", "schema 3", "up to 2", "version"});
    check("\"schema\": 2", "\"schema\": 0", {"schema 0"});
    // Keys of another schema are not known.
    check("\"schema\": 2", "\"schema\": 1", {"runs[0]", "unknown key", "commit"});
    check("\"commit\": \"0123456789ab-dirty\",", "", {"runs[0].commit", "missing"});
    check("\"yardsticks\"", "\"ceilings\"", {"devices[0]", "unknown key", "ceilings"});
    check("\"kind\": \"sylvit compare\"", "\"kind\": \"else\"", {"no report of 'sylvit compare'"});
    check("\"cores\": 2", "\"cores\": \"2\"", {"runs[0].cores", "whole number"});
    check("\"cores\": 2", "\"cores\": 1e300", {"runs[0].cores", "whole number"});
    check("\"cores\": 2", "\"cores\": 18446744073709551615", {"runs[0].cores", "whole number"});
    check("\"cores\": 2,", "", {"runs[0].cores", "missing"});
    check("\"cores\": 2", "\"cores\": 2, \"cores\": 3", {"runs[0].cores", "twice"});
    check("\"cores\": 2", "\"cores\": 2.0", {"runs[0].cores", "whole number"});
    check("\"seconds\": 1.5", "\"seconds\": 1e101", {"runs[0].seconds", "too large"});
    check("\"seconds\": 1.5", "\"seconds\": 1e999", {"damaged"});
    check("\"seconds\": 1.5", "\"seconds\": [1]", {"runs[0].seconds", "no number"});
    check("\"accuracy\": {", "\"accuracy\": 5, \"x\": {", {"runs[0].results[0].accuracy", "no JSON object"});
    check("\"top1\": [", "\"top1\": [[],", {"runs[0].results[0].top1[0]", "whole number"});
    check("\"logits\": [", "\"logits\": [true,", {"runs[0].results[0].logits[0]", "no number"});
    check("\"cores\": 2", "\"cores\": 2, \"kores\": 2", {"runs[0]", "unknown key", "kores"});
    check("\"cold\": false", "\"cold\": 0", {"runs[0].cold", "true nor false"});
    check("\"device\": 0", "\"device\": 1", {"runs[0].results[0].device", "1", "1"});
    check("\"model\": 1", "\"model\": -1", {"runs[0].results[1].model", "-1"});
    check("\"result_a\": 1", "\"result_a\": 2", {"pairs[0].result_a", "2"});
    check("\"run_a\": 0", "\"run_a\": 1", {"pairs[0].run_a"});
    check("\"batch\": 1", "\"batch\": -1", {"results[0].speeds[0].batch", "-1"});
    check("\"images_per_s\": 100", "\"images_per_s\": -100", {"speeds[0].images_per_s", "-100", "negative"});
    check("\"turns\": 1", "\"turns\": -1", {"speeds[0].turns", "-1", "negative"});
    check("\"engine\": \"onemkl\"", "\"engine\": 1", {"results[0].engines[0].engine", "no text"});
    check("\"peak_bytes\": 1000", "\"peak_bytes\": -1000", {"speeds[0].peak_bytes", "-1000", "negative"});
    check("\"pass\": \"backward\"", "\"pass\": \"forward_backward\"", {"speeds[2].pass", "no pass"});
    check("\"pass\": \"backward\"", "\"pass\": 1", {"speeds[2].pass", "no pass"});
    check("\"host\": \"a processor\"", "\"host\": \"" + std::string(5'000'000, 'x') + "\"", {"runs[0].host", "longer"});
    check_error([] { (void)parse_report("[]", "x"); }, {"no report"});
    check_error([] { (void)parse_report(R"({"runs": 5, "kind": "sylvit compare", "schema": 3})", "x"); }, {"schema 3"});
    check_error([] { (void)parse_report(report_json(sample()) + '\0' + "more", "x"); }, {"x", "damaged", "zero byte"});
    check_error([] { (void)read_report("/nonexistent.json"); }, {"/nonexistent.json"});
    check_error([] { (void)read_report("/"); }, {"directory"});
  }

  TEST_CASE("a report is read without making more of it than it is") {
    // Lists in lists, objects in objects and lists without end, as large as a file may be: each is refused where it
    // stops being a report, so that memory is asked for what fits in one alone.
    const auto refused = [](const std::string& rest, std::initializer_list<std::string> parts) {
      const std::string start = R"({"kind":"sylvit compare","schema":1,"pairs":[],"runs":[)";
      const std::size_t before = peak_memory();
      check_error([&] { (void)parse_report(start + rest, "x"); }, parts);
      const std::size_t made = peak_memory() - before;
      CAPTURE(made);
      CHECK(made < 10 * rest.size() + (std::size_t{64} << 20));
    };
    std::string lists;
    for (int i = 0; i < 10'000'000; ++i) lists += "[],";
    refused(lists + "[]]}", {"runs[0]", "no JSON object"});
    refused(R"({"results":[)" + lists + "[]]}]}", {"runs[0].results[0]", "no JSON object"});
    refused(R"({"results":[{"top1":[)" + lists + "[]]}]}]}", {"runs[0].results[0].top1[0]", "no whole number"});
    std::string zeros;
    for (int i = 0; i < 10'000'002; ++i) zeros += "0,";
    refused(R"({"results":[{"top1":[)" + zeros + "0]}]}]}", {"runs[0].results[0].top1[10000000]", "10000000 entries"});
    refused(R"({"cores":)" + lists.substr(0, 30) + "]}", {"runs[0].cores", "no whole number"});

    std::vector<Result> many(10'001, sample().runs[0].results[0]);
    for (Result& result : many) result.accuracy->layers.clear();
    const Report large = changed([&](Report& r) { r.runs[0].results = many; });
    check_error([&] { (void)parse_report(report_json(large), "x"); }, {"10001 results", "10000"});
  }

  TEST_CASE("nothing that a report holds becomes markup") {
    const std::string bad = "<script>alert(1)</script>\"'&\x01";
    const std::string page = report_html(changed([&](Report& r) {
      Run& run = r.runs[0];
      run.command = run.host = run.date = run.version = run.devices[0].name = run.devices[0].error = bad;
      run.commit = run.machine = bad;
      run.environment[0].name = run.environment[0].text = run.packages[0].text = bad;
      run.results[0].engines[0].engine = run.results[0].engines[1].kernels[0] = bad;
      run.models[0].weights = run.models[0].images = bad;
      r.baseline = Baseline{bad, 1.1, 1e-3, 1, {{bad, bad, bad, bad, 1, 2, 2, 1, 3, bad, bad}}};
      run.models[0].label = run.models[1].description = bad;
      run.devices[0].tuning[0].origin = bad;
      run.results[0].error = run.results[0].dtype = bad;
      run.results[0].accuracy->layers[0].name = bad;
      run.results[0].layers[0].layer = bad;
    }));
    CHECK(!has(page, "<script"));
    CHECK(has(page, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp; "));
  }

  TEST_CASE("runs of the same models become one report, of others an error") {
    const Report report = merged({{"a.json", sample()}, {"b.json", sample()}});
    REQUIRE(report.runs.size() == 2);
    // Each run's own pair, and one for each model across both.
    REQUIRE(report.pairs.size() == 4);
    CHECK(report.pairs[1].run_a == 1);
    CHECK(report.pairs[2].run_a == 1);
    CHECK(report.pairs[2].run_b == 0);
    CHECK(report.pairs[2].logits.l2 == 0);
    CHECK(report_json(parse_report(report_json(report), "x")) == report_json(report));
    // Both are called by their machine, with a number where that has no other name.
    CHECK(run_name(report, 1) == "laptop, run 2");
    CHECK(has(report_html(report), "laptop, run 2: device (opencl, rtc)"));
    Report two = report;
    two.runs[1].machine = "server";
    CHECK(device_text(two, 0, two.runs[0].devices[0]) == "laptop: device (opencl, rtc)");
    CHECK(device_text(two, 1, two.runs[1].devices[0]) == "server: device (opencl, rtc)");
    CHECK(!has(report_html(two), "run 2"));
    two.runs[1].machine.clear();  // a report of schema 1
    CHECK(run_name(two, 1) == "a processor");
    two.runs[1].host.clear();
    CHECK(run_name(two, 1) == "run 2");

    const auto refused = [](const std::function<void(Report&)>& change, std::initializer_list<std::string> parts) {
      check_error([&] { (void)merged({{"a.json", sample()}, {"b.json", changed(change)}}); }, parts);
    };
    refused([](Report& r) { r.runs[0].models[0].label = "S/32 softmax"; },
            {"a.json", "b.json", "S/32 softmax", "different models"});
    refused([](Report& r) { r.runs[0].models[1].weights_fingerprint = "c"; }, {"S/16 relu", "different weights"});
    refused([](Report& r) { r.runs[0].models[1].images_fingerprint = "c"; }, {"S/16 relu", "different images"});
    refused([](Report& r) { r.runs[0].models[0].description = "c"; }, {"S/16 softmax", "different sizes"});
  }

  TEST_CASE("regressions are found, and nothing else") {
    const NamedReport baseline{"base.json", sample()};
    const auto found = [&](const std::function<void(Report&)>& change) {
      return regressions(beside(changed(change), baseline, {1.1, 1e-3}));
    };
    CHECK(found([](Report&) {}).empty());
    CHECK(found([](Report& r) { r.runs[0].results[0].speeds[1].ms = timing(10.9); }).empty());
    const auto slower = found([](Report& r) { r.runs[0].results[0].speeds[1].ms = timing(11.1); });
    REQUIRE(slower.size() == 1);
    CHECK(has(slower[0],
              "device, S/16 softmax, f32: forward pass over 4 images takes 11.1 ms, "
              "1.11 times the baseline's 10 ms (1.07 to 1.16)"));
    // The same median, of times so different that they overlap the baseline's: said, and no regression.
    const Report noisy = changed([](Report& r) {
      r.runs[0].results[0].speeds[1].ms = timing(11.1);
      r.runs[0].results[0].speeds[1].ms.samples[1] = 9.9;
    });
    const Baseline beside_noise = beside(noisy, baseline, {1.1, 1e-3});
    CHECK(regressions(beside_noise).empty());
    CHECK(std::ranges::count(beside_noise.changes, beyond_but_unclear, &Change::verdict) == 1);
    CHECK(std::ranges::count(beside_noise.changes, "not distinguishable", &Change::verdict) == 5);
    // And on the page: old, new, ratio.
    Report shown = changed([](Report& r) { r.runs[0].results[0].speeds[1].ms = timing(12.5); });
    shown.baseline = beside(shown, baseline, {1.1, 1e-3});
    const std::string page = report_html(shown);
    for (const char* part : {"Beside the baseline", "base.json", "10.0 ms", "12.5 ms", "1.25<small>1.20 to 1.30",
                             "slower, beyond the limit", "1 of 8 changes since base.json are regressions"})
      CHECK_MESSAGE(has(page, part), part);
    CHECK(report_json(parse_report(report_json(shown), "x")) == report_json(shown));
    // Runs that are merged leave it behind.
    CHECK(!merged({{"a", shown}, {"b", shown}}).baseline);
    CHECK(found([](Report& r) { r.runs[0].results[1].accuracy->logits.l2 = 9e-4; }).empty());
    CHECK(found([](Report& r) { r.runs[0].results[1].accuracy->logits.l2 = 1.1e-3; }).size() == 1);
    // A NaN is never good enough.
    CHECK(found([](Report& r) { r.runs[0].results[1].accuracy->logits.l2 = NAN; }).size() == 1);
    CHECK(found([](Report& r) { r.runs[0].results[1].speeds[0].ms.median = NAN; }).size() == 1);
    CHECK(found([](Report& r) { r.runs[0].results[1].speeds[0].ms.samples.assign(7, NAN); }).empty());
    const auto failed = found([](Report& r) { r.runs[0].results[1].error = "lost"; });
    REQUIRE(failed.size() == 1);
    CHECK(has(failed[0], "lost"));
    const auto gone = found([](Report& r) { r.runs[0].results.pop_back(); });
    REQUIRE(gone.size() == 1);
    CHECK(has(gone[0], "was not computed"));
    const auto unmeasured = found([](Report& r) { r.runs[0].results[0].speeds.pop_back(); });
    REQUIRE(unmeasured.size() == 1);
    CHECK(has(unmeasured[0], "was not measured now"));
    CHECK(!found([](Report& r) { r.runs[0].models[0].description = "a smaller one"; }).empty());
    // Two runs on devices of one name: each has its own counterpart.
    NamedReport both{"both.json", merged({{"a", sample()}, {"b", sample()}})};
    both.report.runs[1].results[0].speeds[1].ms = timing(100);
    CHECK(regressions(beside(both.report, both, {1.1, 1e-3})).empty());
    check_error([&] { (void)found([](Report& r) { r.runs[0].devices[0].name = "another"; }); },
                {"base.json", "no result"});
  }

  TEST_CASE("a device that fails half-way is reported, and the rest goes on") {
    Request request = small_request();
    request.devices = two_devices();
    const auto run_failing = [&](const std::string& device, const std::string& what) {
      request.at_stage = [=](const Stage& stage) {
        if (stage.device == device && stage.what == what) throw Error("the device was lost");
      };
      return run(request);
    };
    const Report report = run_failing("one", "layers");
    const Run& made = report.runs.front();
    REQUIRE(made.results.size() == 2);
    CHECK(made.results[0].error == "the device was lost");
    CHECK(made.results[0].failed_in == "layers");
    // What it had done before is there, and the speeds that would have come after are not.
    REQUIRE(made.results[0].accuracy);
    CHECK(made.results[0].accuracy->logits.l2 < 1e-5);
    CHECK(made.results[0].speeds.empty());
    CHECK(made.results[1].error.empty());
    CHECK(made.results[1].speeds.size() == 1);
    CHECK(made.results[1].speeds[0].compute_share > 0);
    const std::string page = report_html(report);
    CHECK(has(
        page,
        "Failed: one, width 64, depth 1, MLP 96, patch 8, 2 heads relu/L, f32 failed in layers: the device was lost"));
    CHECK(failures_of(made).size() == 1);
    // The two devices are one, so their results have the same bits.
    REQUIRE(report.pairs.size() == 1);
    CHECK(report.pairs[0].logits.l2 == 0);
    CHECK(report_json(parse_report(report_json(report), "x")) == report_json(report));

    const Report unopened = run_failing("two", "opening");
    CHECK(unopened.runs[0].devices[1].error == "the device was lost");
    REQUIRE(unopened.runs[0].results.size() == 1);
    CHECK(unopened.runs[0].results[0].error.empty());
    CHECK(has(report_html(unopened), "Failed: two: the device was lost"));

    request.devices.resize(1);
    check_error([&] { (void)run_failing("one", "opening"); }, {"no device could be opened", "one", "lost"});
  }

  TEST_CASE("stages are counted right") {
    Request request = small_request();
    request.devices = two_devices();
    request.sweep = {2, 3};
    request.gradients = GradientsOf::tiny;
    request.backward = true;
    std::size_t begun = 0;
    request.at_stage = [&](const Stage&) { ++begun; };
    (void)run(request);
    CHECK(begun == stages_of(request));
  }

  TEST_CASE("a report is written whole or not at all") {
    const TemporaryDirectory directory;
    const std::filesystem::path out = directory.path() / "a" / "b";
    check_writable(out);
    write_report(out, sample());
    CHECK(test::read_file(out / "report.json") == report_json(sample()));
    CHECK(test::read_file(out / "index.html") == report_html(sample()));
    CHECK(test::read_file(out / "report.csv") == report_csv(sample()));
    // A directory where the page should be: the old report.json stays.
    std::filesystem::remove(out / "index.html");
    std::filesystem::create_directory(out / "index.html");
    std::ofstream(out / "report.json") << "old";
    check_error([&] { check_writable(out); }, {"index.html"});
    std::filesystem::remove_all(out);
    check_error([&] { write_report(out, sample()); }, {"report.json", "does not exist"});
    CHECK(!std::filesystem::exists(out));
    std::ofstream(directory.path() / "file") << "x";
    check_error([&] { check_writable(directory.path() / "file" / "report"); }, {"cannot write", "--out"});
  }

  TEST_CASE("synthetic images are the same everywhere") {
    VitConfig config = vit_preset("S/16");
    config.image_height = config.image_width = 32;
    const std::vector<float> images = synthetic_images(config, 2);
    REQUIRE(images.size() == 2 * 3 * 32 * 32);
    double sum = 0;
    for (const float value : images) sum += std::round((static_cast<double>(value) * 255 + 255) / 2);
    // As another program computed it.
    CHECK(sum == 1092993);
    CHECK(std::ranges::all_of(images, [](float value) { return value >= -1 && value <= 1; }));
  }

  TEST_CASE("plots leave out what is not finite, and their axes hold the rest") {
    const PlotAxis axis = axis_for("x", true, {1e-3, 0.5, NAN, INFINITY, -1, 0});
    CHECK(axis.from == doctest::Approx(1e-3));
    CHECK(axis.to == doctest::Approx(1));
    const std::string svg =
        plot("what", axis_for("x", false, {0, 1}), axis, {{.points = {{0, 0.5}, {0.5, NAN}, {1, 0.1}}, .marks = true}});
    CHECK(!has(svg, "nan"));
    CHECK(!has(svg, "inf"));
    CHECK(std::count(svg.begin(), svg.end(), 'L') == 1);
    CHECK(!has(plot("none", axis_for("x", true, {}), axis_for("y", false, {}), {}), "nan"));
  }

  TEST_CASE("no number makes a plot or a page that is none") {
    constexpr double smallest = 5e-324;
    constexpr double largest = 1.7976931348623157e308;
    const std::vector<double> numbers{0,    smallest, -smallest, 1e-310, 1e-300,  1e-100, 1,        1 + 1e-15,
                                      1e16, 1e100,    1e300,     1e305,  largest, -1,     -largest, INFINITY};
    const auto sound = [](const std::string& html) {
      // As numbers of attributes and of ticks; "info" and the like have letters around them.
      for (const char* none : {"\"nan", "\"-nan", "\"inf", "\"-inf", ">nan", ">-nan", ">inf", ">-inf", "nane", "infe",
                               " nan", " -nan", "Lnan", "Mnan", ":nan", ":inf"})
        if (has(html, none)) return false;
      return true;
    };
    for (const double a : numbers)
      for (const double b : numbers)
        for (const bool logarithmic : {false, true}) {
          CAPTURE(a);
          CAPTURE(b);
          CAPTURE(logarithmic);
          const std::vector<Series> series{{.points = {{a, b}, {b, a}, {a, a, "t", b, a, "label"}}, .marks = true}};
          const PlotAxis from_values = axis_for("x", logarithmic, {a, b});
          PlotAxis as_given{"y", logarithmic, a, b};
          for (const bool powers : {false, true}) {
            as_given.powers_of_two = powers;
            const std::string svg = plot("what", from_values, as_given, series);
            CHECK(sound(svg));
            CHECK(svg.size() < 200'000);
          }
          LineChart chart;
          chart.lines = {{"line", series[0].points}};
          chart.logarithmic_x = chart.powers_of_two = logarithmic;
          CHECK(sound(line_chart("what", chart)));
          CHECK(sound(bars({{"one", "1", a, b, a, 0}, {"two", "2", b, a, b, 1}})));
        }
    // In every field of a report, as it is measured and as it is read back.
    for (const double number : numbers) {
      CAPTURE(number);
      const Report report = changed([&](Report& r) {
        for (Result& result : r.runs[0].results) {
          result.accuracy->logits.l2 = result.accuracy->layers[0].errors.l2 = result.tolerance = number;
          for (Speed& speed : result.speeds) {
            speed.ms = {number, number, number, number, 1, {number}};
            speed.images_per_s = speed.gflops = speed.compute_share = speed.bandwidth_share = number;
          }
          for (LayerTime& layer : result.layers) layer.ms = layer.flops = layer.bytes = number;
        }
        r.runs[0].devices[0].bandwidth_gbs = r.runs[0].devices[0].yardsticks[0].gflops = number;
      });
      CHECK(!report_html(report).empty());
      const std::string text = report_json(report);
      if (number < 0 && number > -1e100 && number < -1e-100) continue;  // refused, as above
      const Report back = parse_report(text, "x");
      const std::string page = report_html(back);
      for (std::size_t at = 0; (at = page.find("<svg", at)) != std::string::npos;) {
        const std::size_t end = page.find("</svg>", at);
        CHECK(sound(page.substr(at, end - at)));
        at = end;
      }
    }
  }
}
