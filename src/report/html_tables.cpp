#include "report/html_tables.hpp"

#include <sylvit/memory.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "report/page.hpp"
#include "report/summary.hpp"
#include "report/svg.hpp"

namespace sylvit::report {

namespace {

std::string bytes_text(std::int64_t bytes) { return bytes > 0 ? readable_bytes(static_cast<std::size_t>(bytes)) : "-"; }

/// "S/16 relu/L, bf16"
std::string short_text(const Run& run, const Result& result) {
  return fmt::format("{}, {}", model_of(run, result).label, result.dtype);
}

/// The device, where there is more than one.
std::string device_if_several(const Report& report, std::size_t r, const Result& result) {
  const bool several = report.runs.size() > 1 || report.runs[r].devices.size() > 1;
  return several ? device_text(report, r, device_of(report.runs[r], result)) : "";
}

/// "S/16 relu/L, bf16, AMD EPYC (opencl, rtc)"
std::string result_text(const Report& report, std::size_t r, const Result& result) {
  const std::string device = device_if_several(report, r, result);
  return short_text(report.runs[r], result) + (device.empty() ? "" : ", " + device);
}

std::vector<HtmlTable::Column> error_columns(const std::string& first) {
  return {{first},        {"L2", true},   {"largest", true}, {"1 - cosine", true},
          {"50 %", true}, {"90 %", true}, {"99 %", true},    {"99.9 %", true}};
}

std::vector<std::string> error_cells(const std::string& name, const Errors& errors) {
  return {name,
          error_text(errors.l2),
          error_text(errors.max),
          error_text(errors.cosine_distance),
          error_text(errors.p50),
          error_text(errors.p90),
          error_text(errors.p99),
          error_text(errors.p999)};
}

const NamedErrors* worst_of(const std::vector<NamedErrors>& all) {
  const auto found = std::ranges::max_element(all, [](const NamedErrors& a, const NamedErrors& b) {
    const auto size = [](double error) { return std::isnan(error) ? std::numeric_limits<double>::infinity() : error; };
    return size(a.errors.l2) < size(b.errors.l2);
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

std::string summary_table(const Report& report) {
  HtmlTable table("cards", {{"Model"},
                            {"Device"},
                            {"Images/s", true},
                            {"GFLOP/s", true},
                            {"Of ceiling", true},
                            {"Of bandwidth", true},
                            {"Forward + backward images/s", true},
                            {"Memory", true},
                            {"Error, L2", true},
                            {"Top-1", true},
                            {"Beyond tolerance"}});
  for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
    const Speed* forward = speed_of(result, Pass::forward, run.batch);
    const Speed* backward = speed_of(result, Pass::forward_backward, run.batch);
    const auto spread = [](const Speed* speed) {
      if (speed == nullptr) return std::string("-");
      const auto rate = [&](double ms) { return number_text(static_cast<double>(speed->batch) / ms * 1000); };
      return number_text(speed->images_per_s) + "\n" + rate(speed->ms.p75) + " to " + rate(speed->ms.p25);
    };
    std::string outside = result.accuracy ? "no layer" : "-";
    if (result.accuracy && !result.accuracy->first_outside.empty())
      outside = layer_text(result.accuracy->first_outside) + ", " + error_text(result.accuracy->first_outside_error);
    if (!result.error.empty()) outside = "failed in " + result.failed_in;
    table.add({short_text(run, result), device_text(report, r, device_of(run, result)), spread(forward),
               forward ? number_text(forward->gflops) : "-", forward ? share_text(forward->compute_share) : "-",
               forward ? share_text(forward->bandwidth_share) : "-", spread(backward),
               forward ? bytes_text(forward->peak_bytes) : "-",
               result.accuracy ? error_text(result.accuracy->logits.l2) : "-",
               result.accuracy ? share_text(result.accuracy->top1_agreement) : "-", outside},
              !result.error.empty());
  });
  return table.html();
}

std::string score_table(const Report& report) {
  // A column for each pass and batch size, a row for each model, type and device.
  const std::vector<ScoreRatio> ratios = score_ratios(report);
  if (ratios.empty()) return "";
  std::vector<std::pair<Pass, std::int64_t>> passes;
  for (const ScoreRatio& ratio : ratios)
    if (std::ranges::find(passes, std::pair(ratio.pass, ratio.batch)) == passes.end())
      passes.emplace_back(ratio.pass, ratio.batch);
  std::ranges::stable_sort(passes, {}, &std::pair<Pass, std::int64_t>::first);
  std::vector<HtmlTable::Column> columns{{"Model"}, {"Device"}};
  for (const auto& [pass, batch] : passes)
    columns.push_back({fmt::format("{}, batch {}", pass_text(pass), batch), true});
  HtmlTable table("cards", std::move(columns));
  std::vector<const Result*> seen;
  for (const ScoreRatio& row : ratios) {
    if (std::ranges::find(seen, row.other) != seen.end()) continue;
    seen.push_back(row.other);
    std::vector<std::string> cells{short_text(report.runs[row.run], *row.other),
                                   device_if_several(report, row.run, *row.other)};
    for (const auto& [pass, batch] : passes) {
      const auto found = std::ranges::find_if(ratios, [&](const ScoreRatio& ratio) {
        return ratio.other == row.other && ratio.pass == pass && ratio.batch == batch;
      });
      cells.push_back(found == ratios.end() ? "-" : fmt::format("{:.2f}", found->speedup));
    }
    table.add(std::move(cells));
  }
  return table.headed("Times as fast as softmax");
}

std::string accuracy_table(const Report& report) {
  HtmlTable table("cards", {{"Model"},
                            {"Device"},
                            {"L2", true},
                            {"Largest", true},
                            {"1 - cosine", true},
                            {"99 % within", true},
                            {"Top-1", true},
                            {"Loss", true},
                            {"fp64 loss", true},
                            {"Worst layer"}});
  for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
    if (!result.accuracy) return;
    const Accuracy& accuracy = *result.accuracy;
    const NamedErrors* worst = worst_of(accuracy.layers);
    table.add({short_text(run, result), device_if_several(report, r, result), error_text(accuracy.logits.l2),
               error_text(accuracy.logits.max), error_text(accuracy.logits.cosine_distance),
               error_text(accuracy.logits.p99), share_text(accuracy.top1_agreement),
               fmt::format("{:.6f}", accuracy.loss), fmt::format("{:.6f}", accuracy.reference_loss),
               worst == nullptr ? "-" : layer_text(worst->name) + ", " + error_text(worst->errors.l2)});
  });
  return table.headed("Logits beside the fp64 reference");
}

std::string pair_table(const Report& report) {
  HtmlTable table("cards", {{"Model"},
                            {"One"},
                            {"The other"},
                            {"Logits, L2", true},
                            {"Largest", true},
                            {"Same top-1", true},
                            {"Worst layer"}});
  for (const Pair& pair : report.pairs) {
    const Run& run_a = report.runs[static_cast<std::size_t>(pair.run_a)];
    const Run& run_b = report.runs[static_cast<std::size_t>(pair.run_b)];
    const Result& a = run_a.results[static_cast<std::size_t>(pair.result_a)];
    const Result& b = run_b.results[static_cast<std::size_t>(pair.result_b)];
    const NamedErrors* worst = worst_of(pair.layers);
    const auto side = [&](std::int64_t r, const Result& result) {
      const std::string device = device_if_several(report, static_cast<std::size_t>(r), result);
      return result.dtype + (device.empty() ? "" : ", " + device);
    };
    table.add({model_of(run_a, a).label, side(pair.run_a, a), side(pair.run_b, b), error_text(pair.logits.l2),
               error_text(pair.logits.max), share_text(pair.top1_agreement),
               worst == nullptr ? "" : layer_text(worst->name) + ", " + error_text(worst->errors.l2)});
  }
  return table.headed("Results beside each other");
}

std::string gradient_table(const Report& report) {
  HtmlTable table(
      "cards", {{"Model"}, {"Device"}, {"Of"}, {"Loss", true}, {"fp64 loss", true}, {"Worst parameter"}, {"L2", true}});
  for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
    if (!result.gradients) return;
    const NamedErrors* worst = worst_of(result.gradients->parameters);
    table.add({short_text(run, result), device_if_several(report, r, result), result.gradients->model,
               fmt::format("{:.6f}", result.gradients->loss), fmt::format("{:.6f}", result.gradients->reference_loss),
               worst == nullptr ? "-" : worst->name, worst == nullptr ? "-" : error_text(worst->errors.l2)});
  });
  return table.headed("Gradients beside the fp64 reference");
}

std::string run_details(const Report& report) {
  std::string html;
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    const Run& run = report.runs[r];
    html += fmt::format("<h3>{}</h3>\n<pre>{}</pre>\n<dl>",
                        report.runs.size() > 1 ? fmt::format("Run {}", r + 1) : std::string("The run"),
                        escaped(run.command));
    const auto fact = [&](const std::string& name, const std::string& value) {
      if (!value.empty()) html += fmt::format("<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(value));
    };
    fact("when", fmt::format("{}, for {:.0f} s", run.date, run.seconds));
    fact("sylvit", fmt::format("{}, toolchain {}, {}", run.version, run.toolchain, run.compiler));
    fact("machine",
         fmt::format("{}, {} core{} usable, {}", run.host, run.cores, run.cores == 1 ? "" : "s", run.system));
    html += "</dl>\n";
  }
  return html;
}

std::string device_details(const Report& report) {
  std::string html;
  for (std::size_t r = 0; r < report.runs.size(); ++r)
    for (const DeviceReport& device : report.runs[r].devices) {
      std::string content = "<dl>";
      const auto fact = [&](const std::string& name, const std::string& value) {
        if (!value.empty()) content += fmt::format("<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(value));
      };
      fact("vendor", device.vendor);
      fact("kind", fmt::format("{}, {}", device.type, device.backend));
      fact("driver", device.driver);
      fact("architecture", device.architecture);
      fact("compute units", std::to_string(device.compute_units));
      fact("memory", bytes_text(device.memory_bytes) + ", local " + bytes_text(device.local_memory_bytes));
      std::string sizes;
      for (const std::int64_t size : device.sub_group_sizes)
        sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
      fact("sub-groups", sizes);
      for (const ComputeCeiling& ceiling : device.ceilings)
        fact("ceiling, " + ceiling.dtype, number_text(ceiling.gflops) + " GFLOP/s (" + ceiling.provider + ")");
      if (std::isfinite(device.bandwidth_gbs)) fact("memory bandwidth", number_text(device.bandwidth_gbs) + " GB/s");
      if (std::isfinite(device.kernels_seconds))
        fact("kernels", fmt::format("{}, {} in {} s", device.kernels,
                                    report.runs[r].cold ? "built" : "built or taken from the cache",
                                    number_text(device.kernels_seconds)));
      fact("tuning table", device.tuning_table);
      fact("note", device.tuning_note);
      fact("error", device.error);
      content += "</dl>\n";
      HtmlTable table("cards", {{"Kernel"}, {"Case"}, {"Record"}, {"Numbers"}, {"Origin"}});
      for (const TuningUse& use : device.tuning)
        table.add({use.kernel, use.what, fmt::format("{}, {}", use.file, use.record), use.numbers, use.origin});
      if (!table.empty()) content += table.html();
      html += details(device_text(report, r, device), "properties, ceilings, tuning records", content, true);
    }
  return html;
}

std::string model_details(const Report& report) {
  std::string html;
  for (const ModelReport& model : report.runs.front().models) {
    std::string content = "<dl>";
    const auto fact = [&](const std::string& name, const std::string& value) {
      content += fmt::format("<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(value));
    };
    fact("model", model.description);
    fact("parameters", fmt::format("{:.2f} million", static_cast<double>(model.parameters) / 1e6));
    fact("work", fmt::format("{} GFLOP for one image, forward", number_text(model.forward_flops / 1e9)));
    fact("weights", model.weights + ", fingerprint " + model.weights_fingerprint);
    fact("images", model.images + ", fingerprint " + model.images_fingerprint);
    html += details(model.label, "the model and its inputs", content + "</dl>\n", true);
  }
  return html;
}

std::string speed_details(const Report& report) {
  HtmlTable table("cards", {{"Model"},
                            {"Device"},
                            {"Pass"},
                            {"Batch", true},
                            {"Median ms", true},
                            {"Middle half, ms", true},
                            {"Best ms", true},
                            {"Runs", true},
                            {"Images/s", true},
                            {"Memory", true}});
  for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
    for (const Speed& speed : result.speeds)
      table.add({short_text(run, result), device_if_several(report, r, result), pass_text(speed.pass),
                 std::to_string(speed.batch), number_text(speed.ms.median),
                 number_text(speed.ms.p25) + " to " + number_text(speed.ms.p75), number_text(speed.ms.best),
                 std::to_string(speed.ms.count), number_text(speed.images_per_s), bytes_text(speed.peak_bytes)});
  });
  return table.empty() ? "" : details("All times", "every pass and batch size", table.html(), true);
}

std::string layer_details(const Report& report) {
  std::string html;
  for_each_result(report, [&](std::size_t r, const Run&, const Result& result) {
    const std::string text = result_text(report, r, result);
    if (!result.layers.empty()) {
      HtmlTable table("dense",
                      {{"Layer"}, {"times", true}, {"ms", true}, {"share", true}, {"GFLOP/s", true}, {"GB/s", true}});
      double all = 0;
      for (const LayerTime& layer : result.layers) all += layer.ms;
      for (const LayerTime& layer : result.layers)
        table.add({layer.layer, std::to_string(layer.times), number_text(layer.ms), share_text(layer.ms / all),
                   layer.flops > 0 ? number_text(layer.flops / layer.ms / 1e6) : "-",
                   number_text(layer.bytes / layer.ms / 1e6)});
      html += details("Time per layer: " + text, fmt::format("batch {}", result.layers_batch), table.html());
    }
    if (result.accuracy) {
      HtmlTable table("dense", error_columns("Layer"));
      for (const NamedErrors& layer : result.accuracy->layers)
        table.add(error_cells(layer_text(layer.name), layer.errors), !(layer.errors.l2 <= result.tolerance));
      html +=
          details("Error per layer: " + text,
                  fmt::format("over {} images, tolerance {}", result.accuracy->judged, number_text(result.tolerance)),
                  table.html());
    }
  });
  return html;
}

std::string gradient_details(const Report& report) {
  std::string html;
  for_each_result(report, [&](std::size_t r, const Run&, const Result& result) {
    if (!result.gradients) return;
    HtmlTable table("dense", error_columns("Parameter"));
    for (const NamedErrors& parameter : result.gradients->parameters)
      table.add(error_cells(parameter.name, parameter.errors));
    html += details("Gradients: " + result_text(report, r, result), result.gradients->model, table.html());
  });
  return html;
}

std::string pair_details(const Report& report) {
  std::string html;
  for (const Pair& pair : report.pairs) {
    if (pair.layers.empty()) continue;
    const Run& run = report.runs[static_cast<std::size_t>(pair.run_a)];
    const auto r = static_cast<std::size_t>(pair.run_a);
    HtmlTable table("dense", error_columns("Layer"));
    for (const NamedErrors& layer : pair.layers) table.add(error_cells(layer_text(layer.name), layer.errors));
    html += details(
        fmt::format("Beside each other: {}",
                    result_text(report, r, run.results[static_cast<std::size_t>(pair.result_a)])),
        "and " +
            result_text(
                report, static_cast<std::size_t>(pair.run_b),
                report.runs[static_cast<std::size_t>(pair.run_b)].results[static_cast<std::size_t>(pair.result_b)]),
        table.html());
  }
  return html;
}

}  // namespace sylvit::report
