// sylvit tuning show: which record serves a case on a device, and why not another.
#include <sylvit/error.hpp>
#include <sylvit/score.hpp>
#include <sylvit/tuning.hpp>

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/head_sizes.hpp"
#include "catalogue/head_sizes.hpp"
#include "catalogue/records.hpp"
#include "cli/commands.hpp"
#include "options/numbers.hpp"
#include "options/words.hpp"
#include "terminal/print.hpp"
#include "tuning/record_check.hpp"
#include "tuning/table.hpp"

namespace sylvit::cli {

namespace {

struct Options {
  std::string device;
  std::string kernel;
  std::string dtype = "f32";
  std::string score = "relu";
  std::int64_t head_size = 64;
  std::int64_t length = 197;
  std::int64_t m = 1576, n = 1152, k = 384;
  bool json = false;
};

using Json = nlohmann::ordered_json;

/// The case that the options mean for a kernel; what the kernel's records do not ask about stays out.
TuningCase case_of(const Options& options, std::string_view kernel, const DeviceInfo& device) {
  TuningCase wanted{.kernel = kernel, .dtype = parse_dtype(options.dtype)};
  if (tuning::depends_on_head_size(kernel)) {
    wanted.score_class = class_of(parse_score(options.score));
    wanted.head_size = catalogue::compiled_head_size(device.toolchain, options.head_size);
    wanted.length = options.length;
  }
  if (kernel == "gemm" || kernel == "gemm_provider") {
    wanted.n = options.n;
    wanted.k = options.k;
  }
  return wanted;
}

std::string text_of(const TuningCase& wanted) {
  std::string text(name_of(wanted.dtype));
  if (wanted.score_class != ScoreClass::any)
    text += fmt::format(", {}, head size {}, length {}", name_of(wanted.score_class), wanted.head_size, wanted.length);
  if (wanted.n > 0) text += fmt::format(", N {}, K {}", wanted.n, wanted.k);
  return text;
}

std::string text_of(const tuning::Record& record) {
  std::string text;
  for (const auto& [name, value] : record.numbers)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  for (const std::string& provider : record.providers) text += (text.empty() ? "" : ", ") + provider;
  return text;
}

std::vector<std::string_view> kernels_of(const Options& options) {
  std::vector<std::string_view> known;
  for (const catalogue::RecordKind& kind : catalogue::record_kinds()) known.push_back(kind.kernel);
  if (options.kernel.empty()) return known;
  if (std::ranges::find(known, options.kernel) != known.end()) return {options.kernel};
  std::string names;
  for (const std::string_view name : known) names.append(names.empty() ? "" : ", ").append(name);
  wrong_command_line("there is no kernel '" + options.kernel + "'; the kernels are: " + names);
}

Json to_json(const tuning::Record& record) {
  Json json{{"file", record.file}, {"record", record.position}};
  if (record.providers.empty())
    json["numbers"] = record.numbers;
  else
    json["providers"] = record.providers;
  json["origin"] = record.origin;
  json["estimated"] = record.estimated();
  return json;
}

void print_json(const Options& options, const DeviceInfo& device, const tuning::Table& table) {
  Json json{{"device", device.name},
            {"architecture", device.architecture},
            {"overlay_directory", tuning_overlay_directory().string()},
            {"files", Json::array()},
            {"note", table.note()},
            {"kernels", Json::array()}};
  for (const tuning::Link& link : table.links()) json["files"].push_back({{"file", link.file}, {"why", link.why}});
  for (const std::string_view kernel : kernels_of(options)) {
    const TuningCase wanted = case_of(options, kernel, device);
    const tuning::Record* chosen = table.match(wanted);
    Json others = Json::array();
    for (const tuning::Record& record : table.records())
      if (record.kernel == kernel && &record != chosen) {
        Json other = to_json(record);
        other["why_not"] = table.why_not(record, wanted);
        others.push_back(std::move(other));
      }
    json["kernels"].push_back({{"kernel", kernel},
                               {"case", text_of(wanted)},
                               {"chosen", chosen == nullptr ? Json() : to_json(*chosen)},
                               {"others", std::move(others)}});
  }
  terminal::print_json(json);
}

void print_kernel(const tuning::Table& table, const TuningCase& wanted, bool explain) {
  const tuning::Record* chosen = table.match(wanted);
  terminal::print("{} ({})\n", wanted.kernel, text_of(wanted));
  if (chosen == nullptr)
    terminal::print("  none      {}\n",
                    wanted.kernel == "gemm_provider" ? "the first library that serves the product" : "");
  else
    terminal::print("  chosen    {}: {}\n            {}\n", chosen->place(), text_of(*chosen), chosen->origin);
  if (!explain) return;
  for (const tuning::Record& record : table.records())
    if (record.kernel == wanted.kernel && &record != chosen)
      terminal::print("  not       {}: {}\n", record.place(), table.why_not(record, wanted));
}

void show(const Options& options) {
  if (!base::is_head_size(options.head_size))
    wrong_command_line(fmt::format("--head-size is {}, and must be {}", options.head_size, base::head_size_rule()));
  const Device device = Device::open(options.device);
  const DeviceInfo& info = device.info();
  const tuning::Table& table = tuning::table_for(device);
  if (options.json) return print_json(options, info, table);
  const std::vector<std::string_view> kernels = kernels_of(options);
  const std::filesystem::path overlay = tuning_overlay_directory();
  terminal::print("{} ({}:{}, {})\n", info.name, name_of(info.backend), name_of(info.type),
                  info.architecture.empty() ? "unknown architecture" : info.architecture);
  terminal::print("  overlay   {}\n", overlay.empty() ? "none" : overlay.string());
  for (const tuning::Link& link : table.links()) terminal::print("  searched  {} ({})\n", link.file, link.why);
  if (!table.note().empty()) terminal::print("  note      {}\n", table.note());
  for (const std::string_view kernel : kernels)
    print_kernel(table, case_of(options, kernel, info), !options.kernel.empty());
}

}  // namespace

void add_tuning_show(CLI::App& tuning) {
  CLI::App* command = tuning.add_subcommand("show", "Which tuning record serves a case, and why not the others");
  auto options = std::make_shared<Options>();
  command->add_option("--device", options->device, "Index, name part, backend or type");
  command->add_option("--kernel", options->kernel, "Explain the choice for this kernel (default: name each kernel's)");
  command->add_option("--dtype", options->dtype, "Storage type: f32, bf16 or f16")
      ->check(storage_type_word)
      ->capture_default_str();
  command->add_option("--score", options->score, "Attention: the score")->check(score_word)->capture_default_str();
  command->add_option("--head-size", options->head_size, "Attention: the head size")
      ->check(whole_number)
      ->capture_default_str();
  command->add_option("--length", options->length, "Attention: the number of keys")
      ->check(positive_whole_number)
      ->capture_default_str();
  const auto add_extent = [&](const char* name, std::int64_t& value, const char* description) {
    command->add_option(name, value, description)->check(positive_whole_number)->capture_default_str();
  };
  add_extent("--m", options->m, "Product: rows; records may not depend on them");
  add_extent("--n", options->n, "Product: columns");
  add_extent("--k", options->k, "Product: length of the sums");
  command->add_flag("--json", options->json, "Print a JSON object");
  command->callback([options] { show(*options); });
}

}  // namespace sylvit::cli
