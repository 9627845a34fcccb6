#include "report/plots.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <set>

#include "report/charts.hpp"
#include "report/page.hpp"
#include "report/summary.hpp"

namespace sylvit::report {

namespace {

/// A colour for each device and type, the same in every plot.
class Colours {
 public:
  explicit Colours(const Report& report) : report_(report) {
    for_each_result(report, [&](std::size_t r, const Run&, const Result& result) {
      colours_.try_emplace(key(r, result), colours_.size());
    });
  }
  std::size_t operator()(std::size_t run, const Result& result) const { return colours_.at(key(run, result)); }
  /// "f32"; with several devices "f32, AMD EPYC (opencl, rtc)".
  std::string text(std::size_t run, const Result& result) const {
    const std::string device = device_if_several(report_, run, result);
    return device.empty() ? result.dtype : result.dtype + ", " + device;
  }

 private:
  static std::string key(std::size_t run, const Result& result) {
    return fmt::format("{} {} {}", run, result.device, result.dtype);
  }
  const Report& report_;
  std::map<std::string, std::size_t> colours_;
};

/// What stands in one plot: softmax with one point-wise score of the same model, or a model alone.
struct Contest {
  std::string title;
  std::vector<std::string> labels;  ///< one or two of models; the second's lines are dashed, and its marks rings

  bool has(const std::string& label) const { return std::ranges::find(labels, label) != labels.end(); }
  bool second(const std::string& label) const { return labels.size() > 1 && label == labels[1]; }
};

std::vector<Contest> contests_of(const Report& report) {
  struct Name {
    std::string name, softmax;
    std::vector<std::string> others;
  };
  std::vector<Name> names;
  for (const Run& run : report.runs)
    for (const ModelReport& model : run.models) {
      auto found = std::ranges::find(names, model.name, &Name::name);
      if (found == names.end()) found = names.insert(names.end(), {model.name, "", {}});
      if (model.score == "softmax")
        found->softmax = model.label;
      else if (std::ranges::find(found->others, model.label) == found->others.end())
        found->others.push_back(model.label);
    }
  std::vector<Contest> contests;
  for (const Name& name : names) {
    if (name.others.empty()) contests.push_back({name.softmax, {name.softmax}});
    for (const std::string& other : name.others)
      contests.push_back(name.softmax.empty() ? Contest{other, {other}}
                                              : Contest{other + " beside softmax", {name.softmax, other}});
  }
  return contests;
}

/// The legend's entries of the two models of a contest.
void add_styles(std::vector<LegendEntry>& entries, const Contest& contest, bool lines, bool marks) {
  if (contest.labels.size() < 2 || entries.empty()) return;
  const std::size_t colour = entries.front().colour;
  for (const std::string& label : contest.labels) {
    const bool second = contest.second(label);
    entries.push_back({label, colour, lines && second, marks && second, !lines});
  }
}

void add_once(std::vector<LegendEntry>& entries, LegendEntry entry) {
  if (std::ranges::find(entries, entry.text, &LegendEntry::text) == entries.end()) entries.push_back(std::move(entry));
}

/// Where each block begins; of many blocks only some have their number there.
std::vector<std::pair<double, std::string>> block_marks(const std::vector<NamedErrors>& layers) {
  std::vector<std::pair<double, std::string>> marks;
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (const std::string& name = layers[i].name; name.starts_with("blocks.") && name.ends_with(".norm1"))
      marks.emplace_back(static_cast<double>(i), name.substr(7, name.size() - 7 - 6).substr(0, 4));
  const std::size_t step = marks.size() / 16 + 1;
  for (std::size_t i = 0; i < marks.size(); ++i)
    if (i % step != 0) marks[i].second.clear();
  return marks;
}

/// What a kind of layer counts as.
constexpr std::array groups{"attention", "projections", "MLP", "norms", "the rest"};
std::size_t group_of(const std::string& layer) {
  if (layer.ends_with(".attn") || layer == "attn_pool") return 0;
  if (layer.find(".attn.") != std::string::npos || layer.starts_with("attn_pool.")) return 1;
  if (layer.find(".mlp.") != std::string::npos) return 2;
  if (layer.find("norm") != std::string::npos) return 3;
  return 4;
}

}  // namespace

std::string throughput_cards(const Report& report) {
  const Colours colour(report);
  const std::int64_t batch = report.runs.front().batch;
  const bool one_batch = std::ranges::all_of(report.runs, [&](const Run& run) { return run.batch == batch; });
  std::string html;
  for (const Pass pass : {Pass::forward, Pass::forward_backward}) {
    std::vector<Bar> all;
    for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
      const Speed* speed = speed_of(result, pass, run.batch);
      if (speed == nullptr) return;
      const Interval interval = rate_interval(*speed);
      all.push_back({model_of(run, result).label + ", " + colour.text(r, result) +
                         (one_batch ? "" : fmt::format(", batch {}", run.batch)),
                     number_text(speed->images_per_s) + " images/s", speed->images_per_s, interval.low, interval.high,
                     colour(r, result)});
    });
    if (all.empty()) continue;
    html += card(
        "Throughput, " + pass_text(pass),
        fmt::format("Images a second in batches of {}, at the median time; the thin line is where the median lies, "
                    "at 95 %.",
                    one_batch ? std::to_string(batch) : "each run's own size"),
        bars(all));
  }
  return html;
}

std::string ratio_cards(const Report& report) {
  const Colours colour(report);
  const std::vector<ScoreRatio> all = score_ratios(report);
  std::string html;
  for (const Contest& contest : contests_of(report)) {
    if (contest.labels.size() < 2) continue;
    std::vector<const ScoreRatio*> ratios;
    std::vector<std::pair<Pass, std::int64_t>> passes;
    for (const ScoreRatio& ratio : all) {
      if (model_of(report.runs[ratio.run], *ratio.other).label != contest.labels[1]) continue;
      ratios.push_back(&ratio);
      passes.emplace_back(ratio.pass, ratio.batch);
    }
    if (ratios.empty()) continue;
    std::ranges::sort(passes);
    passes.erase(std::unique(passes.begin(), passes.end()), passes.end());
    IntervalChart chart{
        .x = "batch size", .y = "times as fast as softmax", .categories = {}, .reference = 1, .contestants = {}};
    for (const auto& [pass, batch] : passes)
      chart.categories.push_back(fmt::format("{}{}", batch, pass == Pass::forward ? "" : " + backward"));
    for (const ScoreRatio* ratio : ratios) {
      const std::string name = colour.text(ratio->run, *ratio->other);
      auto found = std::ranges::find(chart.contestants, name, &IntervalChart::Contestant::name);
      if (found == chart.contestants.end())
        found = chart.contestants.insert(chart.contestants.end(), {name, colour(ratio->run, *ratio->other), {}});
      const auto category = std::ranges::find(passes, std::pair(ratio->pass, ratio->batch)) - passes.begin();
      const Interval& interval = ratio->speedup.interval;
      found->points.push_back({static_cast<std::size_t>(category), ratio->speedup.value, interval.low, interval.high,
                               !ratio->speedup.distinguishable(),
                               fmt::format("{}, {}, batch {}: {}", name, pass_text(ratio->pass), ratio->batch,
                                           ratio_text(ratio->speedup))});
    }
    html += card("Speed, " + contest.title,
                 "Times as fast, round by round: the median and where it lies, at 95 %. Rings cannot be told from 1.",
                 interval_chart("How many times as fast " + contest.labels[1] + " is", chart));
  }
  return html;
}

std::string error_cards(const Report& report) {
  const Colours colour(report);
  std::string html;
  for (const Contest& contest : contests_of(report)) {
    std::vector<Series> series;
    std::vector<LegendEntry> entries;
    std::vector<double> values;
    std::map<double, std::size_t> tolerances;
    std::vector<std::pair<double, std::string>> blocks;
    double layers = 1;
    for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
      const std::string& label = model_of(run, result).label;
      if (!contest.has(label) || !result.accuracy) return;
      if (blocks.empty()) blocks = block_marks(result.accuracy->layers);
      Series line{.points = {}, .colour = colour(r, result), .dashed = contest.second(label)};
      for (std::size_t i = 0; i < result.accuracy->layers.size(); ++i) {
        const NamedErrors& layer = result.accuracy->layers[i];
        line.points.push_back({static_cast<double>(i), layer.errors.l2});
        values.push_back(layer.errors.l2);
      }
      layers = std::max(layers, static_cast<double>(line.points.size()) - 1);
      tolerances.try_emplace(result.tolerance, line.colour);
      values.push_back(result.tolerance);
      add_once(entries, {colour.text(r, result), line.colour});
      series.push_back(std::move(line));
    });
    if (series.empty()) continue;
    add_styles(entries, contest, true, false);
    for (const auto& [tolerance, of_colour] : tolerances)
      series.push_back({.points = {{0, tolerance}, {layers, tolerance}}, .colour = of_colour, .dotted = true});
    PlotAxis x{"steps of the forward pass, by block", false, 0, layers};
    x.marks = std::move(blocks);
    html += card(
        "Error per layer, " + contest.title,
        "Distance to the fp64 reference, relative (L2), after each step. Dotted: the tolerance of each type.",
        plot("Relative error of each layer, " + contest.title, x, axis_for("relative error", true, values), series) +
            legend(entries));
  }
  return html;
}

namespace {

/// One device in one type: where its roof is, and the kinds of layers below (or above) it.
class Roofline {
 public:
  Roofline(const Report& report, std::size_t run, const DeviceReport& device, const Contest& contest,
           const YardstickRate& yardstick)
      : report_(report), run_(run), device_(device), contest_(contest), yardstick_(yardstick) {}

  void add(const Result& result, std::size_t colour) {
    const std::string& label = model_of(report_.runs[run_], result).label;
    Series series{.points = {}, .colour = colour, .line = false, .marks = true, .hollow = contest_.second(label)};
    for (const LayerTime& layer : result.layers) {
      if (!(layer.flops > 0) || !(layer.bytes > 0) || !(layer.ms > 0)) continue;
      const double gflops = layer.flops / layer.ms / 1e6;
      const double intensity = layer.flops / layer.bytes;
      series.points.push_back({.x = intensity,
                               .y = gflops,
                               .title = fmt::format("{}, {}: {} GFLOP/s at {:.0f} FLOP a byte", label, layer.layer,
                                                    number_text(gflops), intensity),
                               .label = name_of_point(layer.layer, label)});
      intensities_.push_back(intensity);
      speeds_.push_back(gflops);
    }
    if (!series.points.empty()) points_.push_back(std::move(series));
  }

  std::string html() const {
    if (points_.empty()) return "";
    std::vector<double> speeds = speeds_;
    speeds.push_back(yardstick_.gflops);
    const PlotAxis x = axis_for("FLOP a byte", true, intensities_);
    const PlotAxis y = axis_for("GFLOP/s", true, speeds);
    const std::size_t colour = points_.front().colour;
    // From where the slope enters the plot, up to the ridge, and level from there.
    const double bandwidth = device_.bandwidth_gbs;
    const double ridge = yardstick_.gflops / bandwidth;
    const double enters = std::max(x.from, y.from / bandwidth);
    std::vector<Series> series{
        {.points = {{enters, enters * bandwidth}, {ridge, yardstick_.gflops}, {x.to, yardstick_.gflops}},
         .colour = colour}};
    series.insert(series.end(), points_.begin(), points_.end());
    std::vector<LegendEntry> entries{
        {fmt::format("GEMM 1024: {} GFLOP/s; memory: {} GB/s", number_text(yardstick_.gflops), number_text(bandwidth)),
         colour}};
    add_styles(entries, contest_, false, true);
    const std::string device = report_.runs.size() > 1 || report_.runs[run_].devices.size() > 1
                                   ? ", " + device_text(report_, run_, device_)
                                   : "";
    return card(
        "Roofline, " + yardstick_.dtype + ", " + contest_.title + device,
        "Each point is a kind of layer, forward. The roof is two yardsticks, measured on this device: matrix "
        "products of 1024 x 1024 and memory. What stays in caches, or is faster than such products, lies above.",
        plot("Roofline of " + device_.name + ", " + yardstick_.dtype, x, y, series) + legend(entries));
  }

 private:
  /// Products have their name once, beside the first model's point; attention beside each.
  std::string name_of_point(const std::string& layer, const std::string& label) {
    static constexpr std::array<std::pair<std::string_view, const char*>, 7> names{{{".attn", "attention"},
                                                                                    {"attn_pool", "attention pool"},
                                                                                    {".attn.qkv", "q, k, v"},
                                                                                    {".attn.proj", "projection"},
                                                                                    {".mlp.fc1", "fc1"},
                                                                                    {".mlp.fc2", "fc2"},
                                                                                    {"patch_embed.proj", "patches"}}};
    const auto known = std::ranges::find_if(names, [&](const auto& one) { return layer.ends_with(one.first); });
    std::string name = known == names.end() ? layer.substr(layer.rfind('.') + 1) : known->second;
    if (layer.starts_with("attn_pool.")) name = "pool " + name;
    if (name == "attention" && contest_.labels.size() > 1) {
      const std::string model = model_name_of(label);
      name = label.substr(model.empty() ? 0 : model.size() + 1) + " attention";
    }
    if (!named_.insert(name).second) return "";
    return name;
  }
  std::string model_name_of(const std::string& label) const {
    for (const ModelReport& model : report_.runs[run_].models)
      if (model.label == label && label.starts_with(model.name + " ")) return model.name;
    return "";
  }

  const Report& report_;
  std::size_t run_;
  const DeviceReport& device_;
  const Contest& contest_;
  const YardstickRate& yardstick_;
  std::vector<Series> points_;
  std::vector<double> intensities_{1}, speeds_;
  std::set<std::string> named_;
};

}  // namespace

std::string roofline_cards(const Report& report) {
  const Colours colour(report);
  const std::vector<Contest> contests = contests_of(report);
  std::string html;
  for (std::size_t r = 0; r < report.runs.size(); ++r)
    for (const DeviceReport& device : report.runs[r].devices)
      for (const Contest& contest : contests)
        for (const YardstickRate& yardstick : device.yardsticks) {
          const Run& run = report.runs[r];
          if (!(yardstick.gflops > 0) || !(device.bandwidth_gbs > 0)) continue;
          Roofline roofline(report, r, device, contest, yardstick);
          for (const Result& result : run.results)
            if (&device_of(run, result) == &device && result.dtype == yardstick.dtype &&
                contest.has(model_of(run, result).label))
              roofline.add(result, colour(r, result));
          html += roofline.html();
        }
  return html;
}

std::string batch_cards(const Report& report) {
  const Colours colour(report);
  std::string html;
  for (const Contest& contest : contests_of(report)) {
    std::vector<Series> series;
    std::vector<LegendEntry> entries;
    std::vector<double> rates;
    double most = 1;
    double least = 1e9;
    for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
      const std::string& label = model_of(run, result).label;
      if (!contest.has(label)) return;
      Series line{.points = {},
                  .colour = colour(r, result),
                  .dashed = contest.second(label),
                  .marks = true,
                  .hollow = contest.second(label)};
      for (const Speed& speed : result.speeds) {
        if (speed.pass != Pass::forward) continue;
        const auto batch = static_cast<double>(speed.batch);
        const Interval interval = rate_interval(speed);
        line.points.push_back({batch, speed.images_per_s,
                               fmt::format("{}, batch {}: {} images/s", label, speed.batch, rate_text(speed)),
                               interval.low, interval.high});
        rates.insert(rates.end(), {speed.images_per_s, interval.low, interval.high});
        most = std::max(most, batch);
        least = std::min(least, batch);
      }
      if (line.points.size() < 2) return;
      add_once(entries, {colour.text(r, result), line.colour});
      series.push_back(std::move(line));
    });
    if (series.empty()) continue;
    add_styles(entries, contest, true, true);
    PlotAxis x{"batch size", true, least / 1.15, most * 1.15};
    x.powers_of_two = true;
    html += card("Batch sizes, " + contest.title,
                 "Images a second in inference, at the median time, and where that lies, at 95 %.",
                 plot("Throughput by batch size, " + contest.title, x, axis_for("images/s", false, rates), series) +
                     legend(entries));
  }
  return html;
}

std::string layer_cards(const Report& report) {
  const Colours colour(report);
  std::string rows;
  for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
    if (result.layers.empty()) return;
    std::array<double, groups.size()> ms{};
    double all = 0;
    for (const LayerTime& layer : result.layers) {
      ms[group_of(layer.layer)] += layer.ms;
      all += layer.ms;
    }
    if (!(all > 0)) return;
    rows += fmt::format(
        "<div class=\"bar\"><span class=\"name\">{}</span><span class=\"value\">{} ms</span><div class=\"track "
        "stack\">",
        escaped(model_of(run, result).label + ", " + colour.text(r, result)), number_text(all));
    for (std::size_t i = 0; i < ms.size(); ++i)
      rows += fmt::format(R"(<div class="fill s{}" style="width:{:.2f}%" title="{}: {:.1f} %"></div>)", i,
                          100 * ms[i] / all, groups[i], 100 * ms[i] / all);
    rows += "</div></div>";
  });
  if (rows.empty()) return "";
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < groups.size(); ++i) entries.push_back({groups[i], i, false, false, true});
  return card(
      "Where the time goes",
      "Shares of a forward pass by kind of layer, from the device's own clock. The tables below have each kind.",
      R"(<div class="bars">)" + rows + "</div>" + legend(entries));
}

}  // namespace sylvit::report
