#include "report/plots.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <map>

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
    const bool several = report_.runs.size() > 1 || report_.runs[run].devices.size() > 1;
    const std::string device = device_text(report_, run, device_of(report_.runs[run], result));
    return several ? result.dtype + ", " + device : result.dtype;
  }

 private:
  static std::string key(std::size_t run, const Result& result) {
    return fmt::format("{} {} {}", run, result.device, result.dtype);
  }
  const Report& report_;
  std::map<std::string, std::size_t> colours_;
};

std::vector<std::string> labels_of(const Report& report) {
  std::vector<std::string> labels;
  for (const Run& run : report.runs)
    for (const ModelReport& model : run.models)
      if (std::ranges::find(labels, model.label) == labels.end()) labels.push_back(model.label);
  return labels;
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
      const auto rate = [&](double ms) { return static_cast<double>(speed->batch) / ms * 1000; };
      all.push_back({model_of(run, result).label + ", " + colour.text(r, result) +
                         (one_batch ? "" : fmt::format(", batch {}", run.batch)),
                     number_text(speed->images_per_s) + " images/s", speed->images_per_s, rate(speed->ms.p75),
                     rate(speed->ms.p25), colour(r, result)});
    });
    if (all.empty()) continue;
    html +=
        card("Throughput, " + pass_text(pass),
             fmt::format("Images a second in batches of {}, at the median time; the thin line spans the middle half "
                         "of all times.",
                         one_batch ? std::to_string(batch) : "each run's own size"),
             bars(all));
  }
  return html;
}

std::string error_cards(const Report& report) {
  const Colours colour(report);
  std::string html;
  for (const std::string& label : labels_of(report)) {
    std::vector<Series> series;
    std::vector<LegendEntry> entries;
    std::vector<double> values;
    std::map<double, std::size_t> tolerances;
    std::vector<std::pair<double, std::string>> blocks;
    double layers = 1;
    for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
      if (model_of(run, result).label != label || !result.accuracy) return;
      if (blocks.empty()) blocks = block_marks(result.accuracy->layers);
      Series line{.points = {}, .colour = colour(r, result)};
      for (std::size_t i = 0; i < result.accuracy->layers.size(); ++i) {
        const NamedErrors& layer = result.accuracy->layers[i];
        line.points.push_back({static_cast<double>(i), layer.errors.l2});
        values.push_back(layer.errors.l2);
      }
      layers = std::max(layers, static_cast<double>(line.points.size()) - 1);
      tolerances.try_emplace(result.tolerance, line.colour);
      values.push_back(result.tolerance);
      entries.push_back({colour.text(r, result), line.colour});
      series.push_back(std::move(line));
    });
    if (series.empty()) continue;
    for (const auto& [tolerance, of_colour] : tolerances)
      series.push_back({.points = {{0, tolerance}, {layers, tolerance}}, .colour = of_colour, .dashed = true});
    PlotAxis x{"steps of the forward pass, by block", false, 0, layers};
    x.marks = std::move(blocks);
    html += card("Error per layer, " + label,
                 "Distance to the fp64 reference, relative (L2), after each step. Dashed: the tolerance of each type.",
                 plot("Relative error of each layer of " + label, x, axis_for("relative error", true, values), series) +
                     legend(entries));
  }
  return html;
}

std::string roofline_cards(const Report& report) {
  const Colours colour(report);
  std::string html;
  for (std::size_t r = 0; r < report.runs.size(); ++r)
    for (std::size_t d = 0; d < report.runs[r].devices.size(); ++d) {
      const Run& run = report.runs[r];
      const DeviceReport& device = run.devices[d];
      if (device.ceilings.empty() || !(device.bandwidth_gbs > 0)) continue;
      std::vector<Series> points;
      std::vector<LegendEntry> entries;
      std::vector<double> intensities{1};
      std::vector<double> speeds;
      std::vector<std::pair<std::string, std::size_t>> types;
      for (const Result& result : run.results) {
        if (static_cast<std::size_t>(result.device) != d || result.layers.empty()) continue;
        Series series{.points = {}, .colour = colour(r, result), .line = false, .marks = true};
        series.hollow = model_of(run, result).score != "softmax";
        for (const LayerTime& layer : result.layers) {
          if (!(layer.flops > 0) || !(layer.bytes > 0) || !(layer.ms > 0)) continue;
          const double gflops = layer.flops / layer.ms / 1e6;
          series.points.push_back(
              {layer.flops / layer.bytes, gflops,
               fmt::format("{}, {}, {}: {} GFLOP/s at {:.0f} FLOP a byte", model_of(run, result).label, result.dtype,
                           layer.layer, number_text(gflops), layer.flops / layer.bytes)});
          intensities.push_back(layer.flops / layer.bytes);
          speeds.push_back(gflops);
        }
        if (std::ranges::find(types, result.dtype, &std::pair<std::string, std::size_t>::first) == types.end())
          types.emplace_back(result.dtype, series.colour);
        points.push_back(std::move(series));
      }
      for (const ComputeCeiling& ceiling : device.ceilings) speeds.push_back(ceiling.gflops);
      const PlotAxis x = axis_for("FLOP a byte", true, intensities);
      const PlotAxis y = axis_for("GFLOP/s", true, speeds);
      std::vector<Series> series;
      for (const auto& [dtype, of_colour] : types) {
        const auto ceiling = std::ranges::find(device.ceilings, dtype, &ComputeCeiling::dtype);
        if (ceiling == device.ceilings.end()) continue;
        // From where the slope enters the plot, up to the ridge, and level from there.
        const double ridge = ceiling->gflops / device.bandwidth_gbs;
        const double enters = std::max(x.from, y.from / device.bandwidth_gbs);
        series.push_back(
            {.points = {{enters, enters * device.bandwidth_gbs}, {ridge, ceiling->gflops}, {x.to, ceiling->gflops}},
             .colour = of_colour});
        entries.push_back({fmt::format("{}: {} GFLOP/s", dtype, number_text(ceiling->gflops)), of_colour});
      }
      const bool softmax = std::ranges::any_of(points, [](const Series& one) { return !one.hollow; });
      const bool others = std::ranges::any_of(points, [](const Series& one) { return one.hollow; });
      if (softmax && others) {
        entries.push_back({"softmax", types.front().second, false, false, true});
        entries.push_back({"other scores", types.front().second, false, true, true});
      }
      series.insert(series.end(), points.begin(), points.end());
      html +=
          card("Roofline, " + device_text(report, r, device),
               fmt::format("Each point is a kind of layer, forward. The roof is what this device was measured to do: "
                           "{} GB/s of memory, and matrix products of 1024 x 1024. What stays in caches may lie "
                           "above the slope.",
                           number_text(device.bandwidth_gbs)),
               plot("Roofline of " + device.name, x, y, series) + legend(entries));
    }
  return html;
}

std::string batch_cards(const Report& report) {
  const Colours colour(report);
  std::string html;
  for (const std::string& label : labels_of(report)) {
    std::vector<Series> series;
    std::vector<LegendEntry> entries;
    std::vector<double> rates;
    double most = 1;
    double least = 1e9;
    for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
      if (model_of(run, result).label != label) return;
      Series line{.points = {}, .colour = colour(r, result), .marks = true};
      for (const Speed& speed : result.speeds) {
        if (speed.pass != Pass::forward) continue;
        const auto batch = static_cast<double>(speed.batch);
        line.points.push_back({batch, speed.images_per_s,
                               fmt::format("batch {}: {} images/s", speed.batch, number_text(speed.images_per_s))});
        rates.push_back(speed.images_per_s);
        most = std::max(most, batch);
        least = std::min(least, batch);
      }
      if (line.points.size() < 2) return;
      entries.push_back({colour.text(r, result), line.colour});
      series.push_back(std::move(line));
    });
    if (series.empty()) continue;
    PlotAxis x{"batch size", true, least / 1.15, most * 1.15};
    x.powers_of_two = true;
    html += card("Batch sizes, " + label, "Images a second in inference, at the median time.",
                 plot("Throughput of " + label + " by batch size", x, axis_for("images/s", false, rates), series) +
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
