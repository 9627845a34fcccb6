#include "report/html_tables.hpp"

#include <sylvit/gemm.hpp>
#include <sylvit/memory.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>

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

/// A number with its interval below it.
std::string rate_cell(const Speed* speed) {
  return speed == nullptr ? "-" : number_text(speed->images_per_s) + "\n" + interval_text(rate_interval(*speed));
}

std::string ratio_cell(const Ratio& ratio) {
  if (!std::isfinite(ratio.value)) return "-";
  const std::string interval = std::isfinite(ratio.interval.low) && std::isfinite(ratio.interval.high)
                                   ? fmt::format("\n{:.2f} to {:.2f}", ratio.interval.low, ratio.interval.high)
                                   : "";
  return fmt::format("{:.2f}{}{}", ratio.value, interval, ratio.distinguishable() ? "" : "\nnot distinguishable");
}

std::string agreement_cell(const std::optional<Accuracy>& accuracy) {
  return accuracy ? agreement_text(accuracy->top1_agreement, static_cast<std::size_t>(accuracy->judged)) : "-";
}

/// The results of one model on one device: its types, which stand beside each other as columns.
struct Types {
  std::size_t run = 0;
  std::vector<const Result*> results = {};

  /// "S/16 relu/L", with several devices also which.
  std::string text(const Report& report) const {
    const std::string device = device_if_several(report, run, *results.front());
    return model_of(report.runs[run], *results.front()).label + (device.empty() ? "" : ", " + device);
  }
};

std::vector<Types> types_of_models(const Report& report) {
  std::vector<Types> all;
  for_each_result(report, [&](std::size_t r, const Run&, const Result& result) {
    const auto found = std::ranges::find_if(all, [&](const Types& types) {
      const Result& first = *types.results.front();
      return types.run == r && first.device == result.device && first.model == result.model;
    });
    if (found == all.end())
      all.push_back({r, {&result}});
    else
      found->results.push_back(&result);
  });
  return all;
}

/// A cell of a table whose columns are types.
struct TypeCell {
  std::string row, text;
  bool bad = false;  ///< marks its row
};

/// A table with a column for each type and a row for each name that `cells_of(result)` has a cell for. Cells of one
/// place stand below each other.
HtmlTable table_of_types(const Types& types, const std::string& heading, const auto& cells_of) {
  struct Row {
    std::vector<std::string> cells;
    bool bad = false;
  };
  std::vector<HtmlTable::Column> columns{{heading}};
  std::vector<Row> rows;
  std::map<std::string, std::size_t> places;
  for (std::size_t t = 0; t < types.results.size(); ++t) {
    columns.push_back({types.results[t]->dtype, true});
    for (const TypeCell& cell : cells_of(*types.results[t])) {
      const auto [place, is_new] = places.try_emplace(cell.row, rows.size());
      if (is_new) rows.push_back({std::vector<std::string>(types.results.size() + 1, "-"), false});
      Row& row = rows[place->second];
      row.cells.front() = cell.row;
      std::string& text = row.cells[t + 1];
      text = text == "-" ? cell.text : text + "\n" + cell.text;
      row.bad = row.bad || cell.bad;
    }
  }
  HtmlTable table("dense", std::move(columns));
  for (Row& row : rows) table.add(std::move(row.cells), row.bad);
  return table;
}

std::string errors_cell(const Errors& errors) {
  return error_text(errors.l2) + "\nlargest " + error_text(errors.max) + "\n99 % " + error_text(errors.p99);
}

std::vector<TypeCell> time_cells(const Result& result) {
  std::map<std::string_view, std::string_view> providers;
  for (const EngineUse& use : result.engines)
    if (use.pass == Pass::forward && find_gemm_provider(use.engine)) providers.try_emplace(use.layer, use.engine);
  double all = 0;
  for (const LayerTime& layer : result.layers) all += layer.ms;
  std::vector<TypeCell> cells;
  for (const LayerTime& layer : result.layers) {
    std::string text = fmt::format("{} ms\n{}, {} time{}", number_text(layer.ms), share_text(layer.ms / all),
                                   layer.times, layer.times == 1 ? "" : "s");
    if (layer.flops > 0) text += fmt::format("\n{} GFLOP/s", number_text(layer.flops / layer.ms / 1e6));
    text += fmt::format("\n{} GB/s", number_text(layer.bytes / layer.ms / 1e6));
    if (const auto provider = providers.find(layer.layer); provider != providers.end())
      text += fmt::format("\n{}", provider->second);
    cells.push_back({layer.layer, text});
  }
  return cells;
}

std::vector<TypeCell> error_cells_of_layers(const Result& result) {
  std::vector<TypeCell> cells;
  if (result.accuracy)
    for (const NamedErrors& layer : result.accuracy->layers) {
      const bool beyond = !(layer.errors.l2 <= result.tolerance);
      cells.push_back({layer_text(layer.name), errors_cell(layer.errors) + (beyond ? "\nbeyond" : ""), beyond});
    }
  return cells;
}

}  // namespace

std::string summary_table(const Report& report) {
  HtmlTable table("cards", {{"Model"},
                            {"Device"},
                            {"Images/s", true},
                            {"GFLOP/s", true},
                            {"Of yardstick", true},
                            {"Of bandwidth", true},
                            {"Forward + backward images/s", true},
                            {"Memory", true},
                            {"Error, L2", true},
                            {"Agrees with fp64 on", true},
                            {"Beyond tolerance"}});
  for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
    const Speed* forward = speed_of(result, Pass::forward, run.batch);
    const Speed* backward = speed_of(result, Pass::forward_backward, run.batch);
    std::string outside = result.accuracy ? "no layer" : "-";
    if (result.accuracy && !result.accuracy->first_outside.empty())
      outside = layer_text(result.accuracy->first_outside) + ", " + error_text(result.accuracy->first_outside_error);
    if (!result.error.empty()) outside = "failed in " + result.failed_in;
    table.add(
        {short_text(run, result), device_text(report, r, device_of(run, result)), rate_cell(forward),
         forward ? number_text(forward->gflops) : "-", forward ? share_text(forward->compute_share) : "-",
         forward ? share_text(forward->bandwidth_share) : "-", rate_cell(backward),
         forward ? bytes_text(forward->peak_bytes) : "-",
         result.accuracy ? error_text(result.accuracy->logits.l2) : "-", agreement_cell(result.accuracy), outside},
        !result.error.empty());
  });
  return table.html() + paragraph(
                            "Small: where the median lies, at 95 %. The yardstick is the device's fastest product "
                            "of 1024 x 1024 matrices in that type, the bandwidth what it copies; neither is a "
                            "limit, so a share may exceed 100 %.");
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
      cells.push_back(found == ratios.end() ? "-" : ratio_cell(found->speedup));
    }
    table.add(std::move(cells));
  }
  return table.headed("Times as fast as softmax");
}

std::string baseline_table(const Report& report) {
  if (!report.baseline) return "";
  HtmlTable table(
      "cards",
      {{"Model"}, {"Device"}, {"What"}, {"Before", true}, {"Now", true}, {"Times as long", true}, {"Verdict"}});
  for (const Change& change : report.baseline->changes) {
    const bool time = std::isfinite(change.ratio);
    const auto number = [&](double value) { return time ? number_text(value) + " ms" : number_text(value); };
    table.add(
        {change.model + ", " + change.dtype, change.device, change.what, number(change.before), number(change.now),
         time ? fmt::format("{:.2f}\n{:.2f} to {:.2f}", change.ratio, change.low, change.high) : "-", change.verdict},
        !change.regression.empty());
  }
  return table.html() + paragraph(fmt::format(
                            "Beside {}. A pass counts as slower where its median takes more than {} times as long and "
                            "the two intervals do not overlap, a result as less accurate where the error has grown "
                            "by more than {}.",
                            report.baseline->file, number_text(report.baseline->slowdown_limit),
                            number_text(report.baseline->error_limit)));
}

std::string latency_table(const Report& report) {
  HtmlTable table("cards", {{"Model"},
                            {"Device"},
                            {"Batch", true},
                            {"50 %", true},
                            {"90 %", true},
                            {"99 %", true},
                            {"Slowest", true},
                            {"Passes", true}});
  for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
    const Speed* smallest = nullptr;
    for (const Speed& speed : result.speeds)
      if (speed.pass == Pass::forward && !speed.ms.samples.empty() &&
          (smallest == nullptr || speed.batch < smallest->batch))
        smallest = &speed;
    if (smallest == nullptr) return;
    const std::vector<double>& samples = smallest->ms.samples;
    const auto within = [&](double share) { return number_text(percentile(samples, share)); };
    table.add({short_text(run, result), device_if_several(report, r, result), std::to_string(smallest->batch),
               within(0.5), within(0.9), within(0.99), number_text(*std::ranges::max_element(samples)),
               std::to_string(samples.size())});
  });
  if (table.empty()) return "";
  return table.headed("Latency of the smallest batch, forward, in ms") +
         paragraph(
             "In so many of the timed passes it took no longer. 90 % wants ten passes and 99 % a hundred: where "
             "fewer were timed, there is a dash.");
}

std::string accuracy_table(const Report& report) {
  HtmlTable table("cards", {{"Model"},
                            {"Device"},
                            {"L2", true},
                            {"Largest", true},
                            {"1 - cosine", true},
                            {"99 % within", true},
                            {"Agrees on", true},
                            {"Loss", true},
                            {"fp64 loss", true},
                            {"Worst layer"}});
  for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
    if (!result.accuracy) return;
    const Accuracy& accuracy = *result.accuracy;
    const NamedErrors* worst = worst_of(accuracy.layers);
    table.add({short_text(run, result), device_if_several(report, r, result), error_text(accuracy.logits.l2),
               error_text(accuracy.logits.max), error_text(accuracy.logits.cosine_distance),
               error_text(accuracy.logits.p99), agreement_cell(result.accuracy), fmt::format("{:.6f}", accuracy.loss),
               fmt::format("{:.6f}", accuracy.reference_loss),
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
                            {"Same class on", true},
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
               error_text(pair.logits.max), agreement_text(pair.top1_agreement, std::min(a.top1.size(), b.top1.size())),
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
    const auto listed = [](const std::vector<NamedText>& all, const char* between) {
      std::string text;
      for (const NamedText& one : all) text += (text.empty() ? "" : ", ") + one.name + between + one.text;
      return text;
    };
    // Reports of the first schema do not say.
    const std::string variables = run.commit.empty()        ? ""
                                  : run.environment.empty() ? "none that the program or its libraries listen to"
                                                            : listed(run.environment, "=");
    html +=
        fmt::format("<h3>{}</h3>\n<pre>{}</pre>\n",
                    escaped(report.runs.size() > 1 ? run_name(report, r) : std::string("The run")),
                    escaped(run.command)) +
        facts({{"when", fmt::format("{}, for {:.0f} s", run.date, run.seconds)},
               {"sylvit", fmt::format("{}{}, toolchain {}, {}", run.version,
                                      run.commit.empty() ? "" : ", commit " + run.commit, run.toolchain, run.compiler)},
               {"machine", fmt::format("{}{}, {} core{} usable, {}", run.machine.empty() ? "" : run.machine + ": ",
                                       run.host, run.cores, run.cores == 1 ? "" : "s", run.system)},
               {"packages", listed(run.packages, " ")},
               {"variables", variables}});
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
      for (const YardstickRate& yardstick : device.yardsticks)
        fact("yardstick, " + yardstick.dtype, number_text(yardstick.gflops) + " GFLOP/s (" + yardstick.provider + ")");
      if (std::isfinite(device.bandwidth_gbs)) fact("memory bandwidth", number_text(device.bandwidth_gbs) + " GB/s");
      if (std::isfinite(device.kernels_seconds))
        fact("kernels", fmt::format("{}, {} in {} s", device.kernels,
                                    report.runs[r].cold ? "built" : "built or taken from the cache",
                                    number_text(device.kernels_seconds)));
      fact("tuning table", device.tuning_table);
      fact("note", device.tuning_note);
      fact("error", device.error);
      content += "</dl>\n";
      HtmlTable table("cards names", {{"Kernel"}, {"Case"}, {"Record"}, {"Numbers"}, {"Origin"}});
      for (const TuningUse& use : device.tuning)
        table.add({use.kernel, use.what, fmt::format("{}, {}", use.file, use.record), use.numbers, use.origin});
      if (!table.empty()) content += table.html();
      html += details(device_text(report, r, device), "properties, yardsticks, tuning records", content, true);
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
                            {"Median at 95 %", true},
                            {"Middle half", true},
                            {"Best ms", true},
                            {"90 %", true},
                            {"99 %", true},
                            {"Passes", true},
                            {"Images/s", true},
                            {"Memory", true}});
  for_each_result(report, [&](std::size_t r, const Run& run, const Result& result) {
    for (const Speed& speed : result.speeds)
      table.add({short_text(run, result), device_if_several(report, r, result), pass_text(speed.pass),
                 std::to_string(speed.batch), number_text(speed.ms.median), interval_text(interval_of(speed.ms)),
                 number_text(speed.ms.p25) + " to " + number_text(speed.ms.p75), number_text(speed.ms.best),
                 number_text(percentile(speed.ms.samples, 0.9)), number_text(percentile(speed.ms.samples, 0.99)),
                 std::to_string(speed.ms.count), number_text(speed.images_per_s), bytes_text(speed.peak_bytes)});
  });
  return table.empty() ? "" : details("All times", "every pass and batch size", table.html(), true);
}

std::string layer_details(const Report& report) {
  std::string html;
  for (const Types& types : types_of_models(report)) {
    const HtmlTable times = table_of_types(types, "Layer", time_cells);
    if (!times.empty())
      html += details("Time per layer: " + types.text(report),
                      fmt::format("batch {}, all blocks together", types.results.front()->layers_batch), times.html());
    const HtmlTable errors = table_of_types(types, "Layer", error_cells_of_layers);
    std::string tolerances;
    for (const Result* result : types.results)
      tolerances +=
          fmt::format("{}{} {}", tolerances.empty() ? "" : ", ", result->dtype, number_text(result->tolerance));
    if (!errors.empty())
      html +=
          details("Error per layer: " + types.text(report), "relative, L2; tolerances: " + tolerances, errors.html());
  }
  return html;
}

std::string engine_details(const Report& report) {
  std::string html;
  for (const Types& types : types_of_models(report)) {
    const HtmlTable table = table_of_types(types, "Product or attention", [](const Result& result) {
      std::vector<TypeCell> cells;
      for (const EngineUse& use : result.engines) {
        std::string text = use.engine;
        for (const std::string& kernel : use.kernels)
          if (kernel != use.engine) text += "\n" + kernel;
        cells.push_back({use.layer + ", " + pass_text(use.pass), text});
      }
      return cells;
    });
    if (!table.empty())
      html += details("Who computed what: " + types.text(report), "providers of products, kernels with their numbers",
                      table.html());
  }
  return html;
}

std::string gradient_details(const Report& report) {
  std::string html;
  for (const Types& types : types_of_models(report)) {
    const HtmlTable table = table_of_types(types, "Parameter", [](const Result& result) {
      std::vector<TypeCell> cells;
      if (result.gradients)
        for (const NamedErrors& parameter : result.gradients->parameters)
          cells.push_back({parameter.name, errors_cell(parameter.errors)});
      return cells;
    });
    const auto with = std::ranges::find_if(types.results, [](const Result* one) { return one->gradients.has_value(); });
    if (!table.empty())
      html += details("Gradients: " + types.text(report), with == types.results.end() ? "" : (*with)->gradients->model,
                      table.html());
  }
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
