// The parts that pages are composed of: whatever text they get, and the charts' axes, error bars and labels.
#include <algorithm>
#include <cmath>
#include <random>

#include "report/charts.hpp"
#include "report/csv.hpp"
#include "report/interval.hpp"
#include "report/page.hpp"
#include "support.hpp"

using namespace sylvit::report;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_SUITE("report/parts") {
  TEST_CASE("a page of another command is made of the same parts, and none of its text becomes markup") {
    const std::string bad = "<b>&\"'";
    HtmlTable table("cards", {{"Epoch " + bad}, {"Loss", true}, {"Empty"}});
    CHECK(table.headed("Epochs").empty());
    table.add({bad, "2.31\n" + bad, ""});
    const LineChart chart{.x = "epoch" + bad,
                          .y = "loss",
                          .lines = {{.name = bad, .points = {{1, 2.5}, {2, 2}}}, {.name = "", .points = {{1, 3}}}}};
    const std::string page =
        html_page({.program = "sylvit train " + bad,
                   .title = bad,
                   .lead = bad,
                   .notes = note("warn", bad),
                   .content = section(bad, grid(line_card(bad, bad, chart))) +
                              section("Epochs", table.headed(bad) + facts({{bad, bad}, {"x", ""}})) +
                              section("Nothing", "") + details(bad, bad, bars({{bad, bad, 1, 0, 2, 3}})),
                   .footer = bad});
    CHECK(!has(page, "<b>"));
    CHECK(has(page, "&lt;b&gt;&amp;&quot;&#39;"));
    CHECK(!has(page, "<script"));
    CHECK(!has(page, "Nothing"));
    CHECK(!has(page, "Empty"));       // a column without text
    CHECK(!has(page, "<dt>x</dt>"));  // a fact without a value
    CHECK(has(page, "default-src 'none'"));
    CHECK(page.ends_with("</html>\n"));
    for (const char* element : {"section", "figure", "table", "details", "svg", "header", "main", "footer"}) {
      CAPTURE(element);
      CHECK(count(page, std::string("<") + element) == count(page, std::string("</") + element));
    }
    // One entry: the nameless line has none.
    CHECK(count(page, "<li>") == 1);
  }

  TEST_CASE("a line chart holds its error bars, and leaves out what is not finite") {
    const double none = NAN;
    Line line{.name = "f32", .points = {{1, 10}, {2, 20}, {3, none}}, .marks = true};
    line.points[0].low = 5;
    line.points[0].high = 100;
    line.points[1].low = 15;  // no upper end: no bar
    const std::string chart = line_chart("what", {.x = "x", .y = "y", .lines = {line}});
    CHECK(count(chart, "class=\"spread\"") == 1);
    CHECK(count(chart, "<circle") == 2);
    CHECK(has(chart, ">100</text>"));  // the axis reaches the bar's end
    CHECK(!has(chart, "nan"));
    CHECK(!has(chart, "inf"));
    // No points at all, one, and equal ones.
    CHECK(line_card("a", "b", {.x = "x", .y = "y", .lines = {{.name = "empty", .points = {}}}}).empty());
    for (const std::vector<Point>& points :
         {std::vector<Point>{{1, 0}}, {{1, 5}, {1, 5}}, {{none, none}}, {{-1, 1e300}}})
      for (const bool logarithmic : {false, true}) {
        const std::string one = line_chart("w", {.x = "x",
                                                 .y = "y",
                                                 .logarithmic_x = logarithmic,
                                                 .logarithmic_y = logarithmic,
                                                 .powers_of_two = logarithmic,
                                                 .lines = {{.name = "n", .points = points}}});
        CHECK(!has(one, "nan"));
        CHECK(!has(one, "inf"));
      }
    // An axis that does not begin at zero unless it is told to.
    const LineChart high{.x = "x", .y = "y", .lines = {{.name = "n", .points = {{1, 90}, {2, 91}}}}};
    CHECK(!has(line_chart("w", high), ">0</text>"));
    LineChart from_zero = high;
    from_zero.y_from_zero = true;
    CHECK(has(line_chart("w", from_zero), ">0</text>"));
  }

  TEST_CASE("the interval of a median is the sign test's") {
    const auto ends = [](int count) {
      std::vector<double> samples;
      for (int i = count; i > 0; --i) samples.push_back(i);
      const Interval interval = median_interval(samples);
      return std::tuple(interval.low, interval.high, interval.sure);
    };
    // From the table of the binomial distribution: ranks k and n + 1 - k.
    CHECK(ends(1) == std::tuple(1, 1, false));
    CHECK(ends(5) == std::tuple(1, 5, false));
    CHECK(ends(6) == std::tuple(1, 6, true));
    CHECK(ends(8) == std::tuple(1, 8, true));
    CHECK(ends(9) == std::tuple(2, 8, true));
    CHECK(ends(20) == std::tuple(6, 15, true));
    CHECK(ends(100) == std::tuple(40, 61, true));
    CHECK(ends(500) == std::tuple(228, 273, true));
    const auto [low, high, sure] = ends(501);  // by the normal distribution from here on
    CHECK(std::abs(low - 228) <= 1);
    CHECK(low + high == 502);
    CHECK(!median_interval({}).sure);
    // What is not finite does not count.
    std::vector<double> some{NAN, INFINITY, 1, 2, 3, 4, 5, 6};
    CHECK(median_interval(some).high == 6);
    some.pop_back();
    CHECK(!median_interval(some).sure);
    // It does what it says: of 2000 medians of skewed numbers, 95 of 100 or more lie in it.
    std::mt19937 generator(7);
    std::exponential_distribution<double> numbers;
    for (const std::size_t count : {6U, 11U, 40U}) {
      int within = 0;
      for (int trial = 0; trial < 2000; ++trial) {
        std::vector<double> samples(count);
        for (double& sample : samples) sample = numbers(generator);
        const Interval interval = median_interval(samples);
        within += interval.low <= std::log(2.0) && std::log(2.0) <= interval.high ? 1 : 0;
      }
      CAPTURE(count);
      CHECK(within >= 1880);
      CHECK(within < 2000);
    }
  }

  TEST_CASE("ratios of rounds, and of times apart") {
    // A machine that gets slower and slower: in each round one takes 1.1 times as long.
    std::vector<double> a;
    std::vector<double> b;
    for (int round = 1; round <= 8; ++round) {
      b.push_back(round);
      a.push_back(round * (1.1 + 0.001 * round));
    }
    const Ratio paired = paired_ratio(a, b);
    CHECK(paired.value == doctest::Approx(1.1045));
    CHECK(paired.interval.low == doctest::Approx(1.101));
    CHECK(paired.interval.high == doctest::Approx(1.108));
    CHECK(paired.distinguishable());
    CHECK(ratio_text(paired) == "1.10 (1.10 to 1.11)");
    CHECK(ratio_text(paired, "times as long") == "1.10 times as long (1.10 to 1.11)");
    // Of the same numbers without their rounds nothing can be said.
    const Timing of_a{5, 1, 2, 7, 8, a};
    const Timing of_b{4.5, 1, 2, 7, 8, b};
    const Ratio apart = unpaired_ratio(of_a, of_b);
    CHECK(!apart.distinguishable());
    CHECK(has(ratio_text(apart), "not distinguishable"));
    CHECK(apart.interval.low == doctest::Approx(1.101 / 8));
    // Intervals that do not overlap.
    const Timing slow{20, 20, 20, 22, 8, {20, 21, 20, 22, 21, 20, 20, 22}};
    CHECK(unpaired_ratio(slow, of_b).distinguishable());
    CHECK(unpaired_ratio(of_b, slow).distinguishable());
    // Five rounds are too few, however clear they look.
    CHECK(!paired_ratio(std::span(a).first(5), std::span(b).first(5)).distinguishable());
    CHECK(paired_ratio(std::span(a).first(6), std::span(b).first(6)).distinguishable());
    // Zeros and what is not known.
    CHECK(ratio_text(paired_ratio(a, std::vector<double>(8, 0.0))) == "-");
    CHECK(ratio_text(unpaired_ratio({}, {})) == "-");
    CHECK(interval_text({}).empty());
    CHECK(interval_text({6.5, 7}) == "6.50 to 7.00");
  }

  TEST_CASE("a percentile wants samples enough") {
    std::vector<double> samples;
    for (int i = 1; i <= 9; ++i) samples.push_back(i);
    CHECK(percentile(samples, 0.5) == 5);
    CHECK(std::isnan(percentile(samples, 0.9)));
    samples.push_back(10);
    CHECK(percentile(samples, 0.9) == 9);
    CHECK(std::isnan(percentile(samples, 0.99)));
    for (int i = 11; i <= 100; ++i) samples.insert(samples.begin(), i);
    CHECK(percentile(samples, 0.9) == 90);
    CHECK(percentile(samples, 0.99) == 99);
    CHECK(std::isnan(percentile({}, 0.5)));
  }

  TEST_CASE("comma-separated values are quoted where they must be, and nothing in them is a formula") {
    CsvTable table({"name", "number", "count"});
    table.begin_row();
    table.add("a, \"b\"\nc");
    table.add(0.1);
    table.add(std::int64_t{3});
    table.begin_row();
    table.add("=1+1\x1b[31m");
    table.add(NAN);
    table.add(std::int64_t{-3});
    CHECK(table.text() == "name,number,count\r\n\"a, \"\"b\"\"\nc\",0.1,3\r\n'=1+1 [31m,,-3\r\n");
    table.begin_row();
    sylvit::test::check_error([&] { (void)table.text(); }, {"row of 0 cells", "3 columns"});
  }

  TEST_CASE("a chart of intervals has a mark for each value, and a line where nothing differs") {
    const std::string chart =
        interval_chart("what", {.x = "batch",
                                .y = "ratio",
                                .categories = {"1", "4 + backward"},
                                .reference = 1,
                                .contestants = {{"f32", 0, {{0, 1.2, 1.1, 1.3}, {1, 0.99, 0.9, 1.1, true}}},
                                                {"bf16", 1, {{1, 1.5, 1.4, NAN}}}}});
    CHECK(count(chart, "<circle") == 3);
    CHECK(count(chart, "class=\"spread\"") == 2);
    CHECK(count(chart, "class=\"neutral\"") == 1);
    CHECK(count(chart, "class=\"s0 hollow\"") == 1);
    CHECK(has(chart, ">4 + backward</text>"));
    CHECK(count(chart, "<li>") == 2);
    CHECK(!has(chart, "nan"));
    CHECK(!has(interval_chart("none", {.x = "x", .y = "y"}), "nan"));
  }

  TEST_CASE("labels stand beside their points and cover nothing") {
    const PlotAxis axis{"x", false, 0, 10};
    Series points{.points = {{5, 5}, {5, 5.2}, {5, 4.8}, {9.9, 9.9}}, .line = false, .marks = true};
    for (Point& point : points.points) point.label = "attention";
    const std::string svg = plot("w", axis, axis, {points});
    CHECK(count(svg, ">attention</text>") == 4);
    // Four texts at four places.
    std::vector<std::string> places;
    for (std::size_t at = svg.find("<text class=\"label\""); at != std::string::npos;
         at = svg.find("<text class=\"label\"", at + 1))
      places.push_back(svg.substr(at, svg.find('>', at) - at));
    std::ranges::sort(places);
    CHECK(std::ranges::adjacent_find(places) == places.end());
    // Where there is no room, none is written over another.
    points.points.assign(200, {5, 5, "", NAN, NAN, "attention"});
    CHECK(count(plot("w", axis, axis, {points}), ">attention</text>") < 20);
  }
}
