// Plots as inline SVG. Colours are classes (s0, s1, …) that the page's style gives a colour in light and in dark.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sylvit::report {

/// Fit for the text of an element and for an attribute's value, whatever it holds.
std::string escaped(std::string_view text);

/// Colours there are; series beyond use them again.
inline constexpr std::size_t colours = 8;

struct PlotAxis {
  std::string label;
  bool logarithmic = false;
  double from = 0, to = 1;
  bool powers_of_two = false;                              ///< ticks at 1, 2, 4, …; logarithmic only
  std::vector<std::pair<double, std::string>> marks = {};  ///< ticks of one's own instead; a text may be empty
};

struct Point {
  double x, y;
  std::string title = {};  ///< shown under a mouse
  /// Ends of the error bar; none where they are not finite.
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
  std::string label = {};  ///< written beside it, where there is room
};

struct Series {
  std::vector<Point> points;
  std::size_t colour = 0;
  bool line = true;
  bool dashed = false;
  bool dotted = false;
  bool marks = false;
  bool hollow = false;   ///< marks are rings
  bool neutral = false;  ///< grey, whatever the colour
};

/// Series over two axes. What is not finite, or beyond 1e300 as good as infinite, is left out. `what` is what the plot
/// shows, for those who do not see it.
std::string plot(const std::string& what, const PlotAxis& x, const PlotAxis& y, const std::vector<Series>& series);

/// An axis that holds all these values, with some room; for a logarithmic one only the positive count.
PlotAxis axis_for(std::string label, bool logarithmic, const std::vector<double>& values);

}  // namespace sylvit::report
