#include "report/svg.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>

namespace sylvit::report {

namespace {

// In units that are pixels on a phone of 360 pixels.
constexpr double width = 330;
constexpr double height = 220;
constexpr double left = 50;
constexpr double right = 16;
constexpr double top = 8;
constexpr double bottom = 36;

/// Beyond these, a power of ten, a logarithm or a difference of two numbers may not be one any more.
constexpr double smallest_size = 1e-300;
constexpr double largest_size = 1e300;

/// The same axis with ends between which there is something, whatever it was made from.
PlotAxis sound(PlotAxis axis) {
  const double least = axis.logarithmic ? smallest_size : -largest_size;
  axis.from = std::isfinite(axis.from) ? std::clamp(axis.from, least, largest_size / 10) : axis.logarithmic ? 1 : 0;
  axis.to = std::isfinite(axis.to) ? std::clamp(axis.to, least, largest_size) : axis.from;
  // So much room that the ticks differ.
  const double size = std::max(std::abs(axis.from), std::abs(axis.to));
  if (!(axis.to - axis.from > std::max(1e-9 * size, smallest_size)))
    axis.to = axis.logarithmic ? 10 * axis.from : axis.from + std::max(1.0, 0.1 * size);
  return axis;
}

std::string tick_text(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size >= 1e5 || size < 1e-2) {
    const int power = static_cast<int>(std::floor(std::log10(size) + 1e-9));
    const double mantissa = value / std::pow(10.0, power);
    return std::abs(mantissa - 1) < 1e-6 ? fmt::format("1e{}", power) : fmt::format("{:.2g}e{}", mantissa, power);
  }
  return size >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::vector<double> round_numbers(const PlotAxis& axis) {
  std::vector<double> ticks;
  if (axis.powers_of_two) {
    for (double tick = 1; tick <= axis.to; tick *= 2)
      if (tick >= axis.from) ticks.push_back(tick);
    return ticks;
  }
  if (axis.logarithmic) {
    const int first = static_cast<int>(std::ceil(std::log10(axis.from) - 1e-9));
    const int last = static_cast<int>(std::floor(std::log10(axis.to) + 1e-9));
    const int step = std::max(1, (last - first) / 6 + ((last - first) % 6 > 0 ? 1 : 0));
    for (int power = first; power <= last; power += step) ticks.push_back(std::pow(10.0, power));
    return ticks;
  }
  const double rough = (axis.to - axis.from) / 5;
  const double decade = std::pow(10.0, std::floor(std::log10(rough)));
  const double step = decade * (rough / decade > 5 ? 10 : rough / decade > 2 ? 5 : rough / decade > 1 ? 2 : 1);
  const double first = std::ceil(axis.from / step);
  for (int i = 0; (first + i) * step <= axis.to + 1e-9 * step && i < 20; ++i)
    ticks.push_back(std::abs(first + i) < 1e-9 ? 0 : (first + i) * step);
  return ticks;
}

std::vector<std::pair<double, std::string>> ticks_of(const PlotAxis& axis) {
  if (!axis.marks.empty()) return axis.marks;
  std::vector<std::pair<double, std::string>> ticks;
  for (const double number : round_numbers(axis)) ticks.emplace_back(number, tick_text(number));
  return ticks;
}

/// 0 to 1 along the axis.
double place_of(const PlotAxis& axis, double value) {
  const double share = axis.logarithmic
                           ? (std::log(value) - std::log(axis.from)) / (std::log(axis.to) - std::log(axis.from))
                           : (value - axis.from) / (axis.to - axis.from);
  return std::clamp(share, 0.0, 1.0);
}

bool drawable(const PlotAxis& axis, double value) {
  return std::abs(value) <= largest_size && (!axis.logarithmic || value >= smallest_size);
}

/// Rectangles that are taken by marks and labels.
class Taken {
 public:
  struct Box {
    double left, top, right, bottom;
  };

  void add(const Box& box) { boxes_.push_back(box); }
  bool free(const Box& box) const {
    return box.left >= left && box.right <= width - 2 && box.top >= top && box.bottom <= height - bottom &&
           std::ranges::none_of(boxes_, [&](const Box& other) {
             return box.left < other.right && other.left < box.right && box.top < other.bottom &&
                    other.top < box.bottom;
           });
  }

 private:
  std::vector<Box> boxes_;
};

/// The labels of all points, each beside its point where it covers no mark and no other label; else there is none.
std::string labels(const PlotAxis& x, const PlotAxis& y, const std::vector<Series>& series, const auto& at_x,
                   const auto& at_y) {
  constexpr double letter = 5.2;  // of a label's font, at the most
  constexpr double line = 9;
  Taken taken;
  const auto for_each_point = [&](const auto& visit) {
    for (const Series& one : series)
      if (one.marks)
        for (const Point& point : one.points)
          if (drawable(x, point.x) && drawable(y, point.y)) visit(point, at_x(point.x), at_y(point.y));
  };
  for_each_point([&](const Point&, double px, double py) { taken.add({px - 4, py - 4, px + 4, py + 4}); });
  std::string svg;
  for_each_point([&](const Point& point, double px, double py) {
    if (point.label.empty()) return;
    const double wide = letter * static_cast<double>(point.label.size());
    for (const double away : {0.0, 9.0, -9.0, 18.0, -18.0, 27.0, -27.0})
      for (const bool right_of : {true, false}) {
        const double from = right_of ? px + 5 : px - 5 - wide;
        const Taken::Box box{from, py + away - line / 2, from + wide, py + away + line / 2};
        if (!taken.free(box)) continue;
        taken.add(box);
        // A label that had to move away keeps a line to its point.
        if (away != 0)
          svg += fmt::format(R"(<line class="leader" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)", px, py,
                             right_of ? from : from + wide, py + away);
        svg += fmt::format(R"(<text class="label" x="{:.1f}" y="{:.1f}">{}</text>)", from, py + away + 3,
                           escaped(point.label));
        return;
      }
  });
  return svg;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        // Control characters have no place in a page.
        result += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  return result;
}

PlotAxis axis_for(std::string label, bool logarithmic, const std::vector<double>& values) {
  PlotAxis axis{std::move(label), logarithmic};
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  for (const double value : values)
    if (drawable(axis, value)) {
      least = std::min(least, value);
      most = std::max(most, value);
    }
  if (!(least <= most)) least = most = 1;
  if (logarithmic) {
    axis.from = std::pow(10.0, std::floor(std::log10(least)));
    axis.to = std::pow(10.0, std::ceil(std::log10(most)));
  } else {
    axis.from = std::min(0.0, least);
    axis.to = most > axis.from ? axis.from + (most - axis.from) * 1.08 : axis.from + 1;
  }
  return sound(axis);
}

std::string plot(const std::string& what, const PlotAxis& given_x, const PlotAxis& given_y,
                 const std::vector<Series>& series) {
  const PlotAxis x = sound(given_x);
  const PlotAxis y = sound(given_y);
  const auto at_x = [&](double value) { return left + (width - left - right) * place_of(x, value); };
  const auto at_y = [&](double value) { return height - bottom - (height - top - bottom) * place_of(y, value); };
  std::string svg =
      fmt::format(R"(<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">)", width, height, escaped(what));
  for (const auto& [tick, text] : ticks_of(x)) {
    svg += fmt::format(R"(<line class="grid" x1="{0:.1f}" y1="{1}" x2="{0:.1f}" y2="{2}"/>)", at_x(tick), top,
                       height - bottom);
    if (!text.empty())
      svg += fmt::format(R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", at_x(tick), height - bottom + 13,
                         escaped(text));
  }
  for (const auto& [tick, text] : ticks_of(y)) {
    svg += fmt::format(R"(<line class="grid" x1="{1}" y1="{0:.1f}" x2="{2}" y2="{0:.1f}"/>)", at_y(tick), left,
                       width - right);
    if (!text.empty())
      svg += fmt::format(R"(<text x="{}" y="{:.1f}" text-anchor="end">{}</text>)", left - 5, at_y(tick) + 3.5,
                         escaped(text));
  }
  svg += fmt::format(R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", (left + width - right) / 2,
                     height - 6, escaped(x.label));
  svg += fmt::format(R"svg(<text transform="translate(10 {:.1f}) rotate(-90)" text-anchor="middle">{}</text>)svg",
                     (top + height - bottom) / 2, escaped(y.label));
  for (const Series& one : series) {
    svg += fmt::format(R"(<g class="{}{}">)", one.neutral ? "neutral" : fmt::format("s{}", one.colour % colours),
                       one.hollow ? " hollow" : "");
    std::string path;
    for (const Point& point : one.points) {
      if (!drawable(x, point.x) || !drawable(y, point.y)) continue;
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", at_x(point.x), at_y(point.y));
    }
    if (one.line && !path.empty())
      svg += fmt::format(R"(<path d="{}"{}/>)", path,
                         one.dashed   ? R"( stroke-dasharray="4 3")"
                         : one.dotted ? R"( stroke-dasharray="1 3")"
                                      : "");
    for (const Point& point : one.points)
      if (drawable(x, point.x) && drawable(y, point.low) && drawable(y, point.high))
        svg += fmt::format(
            R"(<path class="spread" d="M{0:.1f} {1:.1f}L{0:.1f} {2:.1f}M{3:.1f} {1:.1f}L{4:.1f} {1:.1f}M{3:.1f} {2:.1f}L{4:.1f} {2:.1f}"/>)",
            at_x(point.x), at_y(point.low), at_y(point.high), at_x(point.x) - 3, at_x(point.x) + 3);
    if (one.marks)
      for (const Point& point : one.points)
        if (drawable(x, point.x) && drawable(y, point.y))
          svg += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.2"><title>{}</title></circle>)", at_x(point.x),
                             at_y(point.y), escaped(point.title));
    svg += "</g>";
  }
  return svg + labels(x, y, series, at_x, at_y) + "</svg>";
}

}  // namespace sylvit::report
