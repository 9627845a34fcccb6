// The parts that pages are composed of: whatever text they get, and the charts' axes, error bars and labels.
#include <algorithm>
#include <cmath>

#include "report/charts.hpp"
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
