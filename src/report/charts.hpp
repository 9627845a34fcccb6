// Charts that are ready to stand on a page (page.hpp says how a page is composed): lines with error bars, bars,
// legends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/svg.hpp"

namespace sylvit::report {

struct LegendEntry {
  std::string text;
  std::size_t colour;
  bool dashed = false;
  bool hollow = false;
  bool mark = false;
};
std::string legend(const std::vector<LegendEntry>& entries);

/// One line of a chart. Points may have an error bar (Point::low, high) and a title.
struct Line {
  std::string name;  ///< in the legend; lines without one are not in it
  std::vector<Point> points;
  std::optional<std::size_t> colour = {};  ///< none: that of its place among the lines
  bool dashed = false;
  bool marks = false;   ///< a mark at each point
  bool hollow = false;  ///< marks are rings
};

struct LineChart {
  std::string x, y;  ///< what the axes show
  bool logarithmic_x = false, logarithmic_y = false;
  bool powers_of_two = false;                                ///< ticks of a logarithmic x at 1, 2, 4, …
  bool y_from_zero = false;                                  ///< else from a little below the least value
  std::vector<std::pair<double, std::string>> x_marks = {};  ///< ticks of one's own
  std::vector<Line> lines;
};
/// The plot and its legend. Axes hold all points with their error bars; what is not finite is left out.
std::string line_chart(const std::string& what, const LineChart& chart);
/// The same as a card; nothing if no line has a point.
std::string line_card(const std::string& heading, const std::string& sentence, const LineChart& chart);

/// One value with its interval, in a category.
struct IntervalPoint {
  std::size_t category;
  double value, low, high;
  bool hollow = false;
  std::string title = {};
};

/// Values of several things beside each other: a group of marks with their intervals for each category.
struct IntervalChart {
  struct Contestant {
    std::string name;
    std::size_t colour;
    std::vector<IntervalPoint> points;
  };

  std::string x, y;
  std::vector<std::string> categories = {};
  double reference = std::numeric_limits<double>::quiet_NaN();  ///< where a dashed line is drawn
  std::vector<Contestant> contestants = {};
};
std::string interval_chart(const std::string& what, const IntervalChart& chart);

/// A bar with its label above it, so that long names find room. From `low` to `high` there is a thin line.
struct Bar {
  std::string label, value;
  double size, low, high;
  std::size_t colour;
};
std::string bars(const std::vector<Bar>& all);

}  // namespace sylvit::report
