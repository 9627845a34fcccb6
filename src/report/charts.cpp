#include "report/charts.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "report/page.hpp"

namespace sylvit::report {

namespace {

/// An axis that hugs its values, for what never comes near zero.
PlotAxis close_axis(std::string label, const std::vector<double>& values) {
  double least = HUGE_VAL;
  double most = -HUGE_VAL;
  for (const double value : values)
    if (std::isfinite(value)) {
      least = std::min(least, value);
      most = std::max(most, value);
    }
  if (!(least <= most)) least = most = 0;
  // Of one value alone, a tenth of it, in either direction.
  const double room = most > least ? 0.06 * (most - least) : most != 0 ? 0.1 * std::abs(most) : 1;
  return {std::move(label), false, least - room, most + room};
}

}  // namespace

std::string legend(const std::vector<LegendEntry>& entries) {
  if (entries.empty()) return "";
  std::string html = "<ul class=\"legend\">";
  for (const LegendEntry& entry : entries)
    html +=
        fmt::format("<li><i class=\"key s{}{}{}{}\"></i>{}</li>", entry.colour % colours, entry.dashed ? " dashed" : "",
                    entry.hollow ? " hollow" : "", entry.mark ? " mark" : "", escaped(entry.text));
  return html + "</ul>";
}

std::string line_chart(const std::string& what, const LineChart& chart) {
  std::vector<double> xs;
  std::vector<double> ys;
  std::vector<Series> series;
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    const Line& line = chart.lines[i];
    const std::size_t colour = line.colour.value_or(i);
    for (const Point& point : line.points) {
      xs.push_back(point.x);
      ys.insert(ys.end(), {point.y, point.low, point.high});
    }
    series.push_back(
        {.points = line.points, .colour = colour, .dashed = line.dashed, .marks = line.marks, .hollow = line.hollow});
    if (!line.name.empty()) entries.push_back({line.name, colour, line.dashed});
  }
  PlotAxis x = chart.logarithmic_x ? axis_for(chart.x, true, xs) : close_axis(chart.x, xs);
  if (chart.logarithmic_x && chart.powers_of_two) {
    // Decades would leave most of the plot empty.
    x.powers_of_two = true;
    std::erase_if(xs, [](double value) { return !std::isfinite(value) || value <= 0; });
    if (!xs.empty()) {
      x.from = *std::ranges::min_element(xs) / 1.15;
      x.to = *std::ranges::max_element(xs) * 1.15;
    }
  }
  x.marks = chart.x_marks;
  const PlotAxis y =
      chart.logarithmic_y || chart.y_from_zero ? axis_for(chart.y, chart.logarithmic_y, ys) : close_axis(chart.y, ys);
  return plot(what, x, y, series) + legend(entries);
}

std::string line_card(const std::string& heading, const std::string& sentence, const LineChart& chart) {
  if (std::ranges::all_of(chart.lines, [](const Line& line) { return line.points.empty(); })) return "";
  return card(heading, sentence, line_chart(heading, chart));
}

std::string interval_chart(const std::string& what, const IntervalChart& chart) {
  constexpr double room = 0.7;  // of a category's, for its marks
  const auto count = static_cast<double>(chart.contestants.size());
  std::vector<double> ys{chart.reference};
  std::vector<Series> series;
  std::vector<LegendEntry> entries;
  const double last = static_cast<double>(chart.categories.size()) - 0.5;
  if (std::isfinite(chart.reference))
    series.push_back({.points = {{-0.5, chart.reference}, {last, chart.reference}}, .dashed = true, .neutral = true});
  for (std::size_t c = 0; c < chart.contestants.size(); ++c) {
    const IntervalChart::Contestant& contestant = chart.contestants[c];
    const double offset = room * ((static_cast<double>(c) + 0.5) / count - 0.5);
    for (const bool hollow : {false, true}) {
      Series& marks = series.emplace_back(
          Series{.points = {}, .colour = contestant.colour, .line = false, .marks = true, .hollow = hollow});
      for (const IntervalPoint& point : contestant.points) {
        if (point.hollow != hollow) continue;
        marks.points.push_back(
            {static_cast<double>(point.category) + offset, point.value, point.title, point.low, point.high});
        ys.insert(ys.end(), {point.value, point.low, point.high});
      }
    }
    entries.push_back({contestant.name, contestant.colour, false, false, true});
  }
  PlotAxis x{chart.x, false, -0.5, last};
  for (std::size_t i = 0; i < chart.categories.size(); ++i)
    x.marks.emplace_back(static_cast<double>(i), chart.categories[i]);
  return plot(what, x, close_axis(chart.y, ys), series) + legend(entries);
}

std::string bars(const std::vector<Bar>& all) {
  double most = 0;
  for (const Bar& bar : all)
    for (const double value : {bar.size, bar.high})
      if (std::isfinite(value)) most = std::max(most, value);
  if (!(most > 0)) most = 1;
  const auto percent = [&](double value) {
    return std::isfinite(value) ? 100 * std::clamp(value / most, 0.0, 1.0) : 0.0;
  };
  std::string html = "<div class=\"bars\">";
  for (const Bar& bar : all)
    html += fmt::format(
        "<div class=\"bar\"><span class=\"name\">{}</span><span class=\"value\">{}</span>"
        "<div class=\"track\"><div class=\"fill s{}\" style=\"width:{:.1f}%\"></div>"
        "<div class=\"spread\" style=\"left:{:.1f}%;width:{:.1f}%\"></div></div></div>",
        escaped(bar.label), escaped(bar.value), bar.colour % colours, percent(bar.size), percent(bar.low),
        std::max(0.0, percent(bar.high) - percent(bar.low)));
  return html + "</div>";
}

}  // namespace sylvit::report
