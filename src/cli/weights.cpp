// sylvit init: a model's initial weights from a seed. sylvit info: what a file with weights holds.
#include <sylvit/error.hpp>
#include <sylvit/memory.hpp>

#include "cli/commands.hpp"
#include "cli/ran.hpp"
#include "cli/results.hpp"
#include "options/numbers.hpp"
#include "options/vit_model.hpp"
#include "terminal/print.hpp"
#include "vit/init.hpp"

namespace sylvit::cli {

namespace {

struct InitOptions {
  VitModelOptions model;
  std::uint64_t seed = 0;
  std::string output;
};

void init(const InitOptions& options) {
  const VitConfig config = options.model.checked();
  check_host_memory(config);
  vit::check_timm_config_free(options.output);
  const std::vector<VitParameter> parameters = vit_parameters(config);
  Results results;
  std::int64_t count = 0;
  for (const VitParameter& parameter : parameters) {
    std::vector<float> values(static_cast<std::size_t>(parameter.shape.elements()));
    vit::initialise(config, parameter, options.seed, values);
    count += parameter.shape.elements();
    results.add(parameter.name, parameter.shape, std::move(values));
  }
  results.write(options.output, vit::config_metadata(config));
  vit::write_timm_config(options.output, config);
  terminal::print("{}: {} parameters in {} tensors\n", options.output, count, parameters.size());
}

using Json = nlohmann::ordered_json;

/// Everything that says how the weights are run, with where it comes from.
Json configuration_of(const vit::FileConfig& told) {
  Json rows = Json::object();
  const Json values = vit::config_json(told.config);
  for (const vit::ConfigMember& member : vit::config_members()) {
    const std::string name(member.name);
    rows[name] = {{"value", values.at(name)}, {"from", name_of(told.origin(name))}};
    if (name == "score" && !told.custom_score.empty())
      rows["custom_score"] = {{"value", told.custom_score}, {"from", name_of(told.origin(name))}};
  }
  const auto add = [&](const char* name, const auto& value, const auto& otherwise) {
    const vit::Origin origin = value ? vit::Origin::config_json : vit::Origin::assumed;
    rows[name] = {{"value", value.value_or(otherwise)}, {"from", name_of(origin)}};
  };
  const auto colours = [](const std::optional<std::array<float, 3>>& values_of) {
    return values_of ? std::optional(as_json(*values_of)) : std::nullopt;
  };
  const auto word = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  const sylvit::ImageTransform otherwise;
  add("mean", colours(told.images.mean), as_json(otherwise.mean));
  add("std", colours(told.images.deviation), as_json(otherwise.deviation));
  add("crop_pct", told.images.crop_pct, otherwise.crop_pct);
  add("interpolation", word(told.images.interpolation), "bicubic");
  add("crop_mode", word(told.images.crop_mode), "center");
  return rows;
}

/// All that there is to say of a file but its tensors.
Json description_of(const io::WeightsFile& file, const std::string& path) {
  std::int64_t parameters = 0;
  std::size_t bytes = 0;
  for (const io::TensorInfo& tensor : file.tensors()) {
    parameters += tensor.shape.elements();
    bytes += static_cast<std::size_t>(tensor.end - tensor.begin);
  }
  Json json{{"file", path}, {"tensors", file.tensors().size()}, {"parameters", parameters}, {"bytes", bytes}};
  const auto ran = file.metadata().find(run_key);
  if (ran != file.metadata().end()) json["ran"] = ran->second;
  try {
    const vit::FileConfig told = vit::file_config(file, path);
    json["model"] = model_name(told.config);
    json["forward_flops"] = vit_forward_flops(told.config);
    json["configuration"] = configuration_of(told);
    if (!told.not_read.empty()) json["not_read"] = told.not_read;
  } catch (const Error& error) {
    json["unknown"] = error.what();
  }
  return json;
}

void print(const Json& json) {
  const auto bytes = json["bytes"].get<std::size_t>();
  terminal::print("tensors      {}\nparameters   {}\nbytes        {} ({})\n", json["tensors"].get<std::size_t>(),
                  json["parameters"].get<std::int64_t>(), bytes, readable_bytes(bytes));
  if (json.contains("ran")) terminal::print("ran          {}\n", json["ran"].get<std::string>());
  if (json.contains("unknown")) terminal::print("model        unknown: {}\n", json["unknown"].get<std::string>());
  if (!json.contains("model")) return;
  const Json& configuration = json["configuration"];
  terminal::print("model        {}, {} classes, images of {} x {}\n", json["model"].get<std::string>(),
                  configuration["classes"]["value"].get<std::int64_t>(),
                  configuration["image_height"]["value"].get<std::int64_t>(),
                  configuration["image_width"]["value"].get<std::int64_t>());
  terminal::print("FLOPs        {:.2f} GFLOP an image, forward\n", json["forward_flops"].get<double>() / 1e9);
  for (const auto& [name, row] : configuration.items()) {
    const Json& value = row["value"];
    terminal::print("  {:<20} {:<16} {}\n", name, value.is_string() ? value.get<std::string>() : value.dump(),
                    row["from"].get<std::string>());
  }
  if (json.contains("not_read")) terminal::print("note         {}\n", json["not_read"].get<std::string>());
}

void info(const std::string& path, bool list, bool as_json) {
  const io::WeightsFile file = io::WeightsFile::open(path);
  Json json = description_of(file, path);
  if (list && as_json) {
    json["list"] = Json::array();
    for (const io::TensorInfo& tensor : file.tensors()) {
      const std::span<const std::int64_t> extents = tensor.shape.extents();
      json["list"].push_back({{"name", tensor.name},
                              {"dtype", tensor.dtype_text()},
                              {"shape", std::vector<std::int64_t>(extents.begin(), extents.end())}});
    }
  } else if (list) {
    for (const io::TensorInfo& tensor : file.tensors())
      terminal::print("  {:<40} {:<6} {}\n", tensor.name, tensor.dtype_text(), tensor.shape.text());
  }
  if (as_json)
    terminal::print_json(json);
  else
    print(json);
}

}  // namespace

void add_init(CLI::App& program) {
  CLI::App* command = program.add_subcommand("init", "Write a model's initial weights");
  auto options = std::make_shared<InitOptions>();
  options->model.add_to(*command);
  command->add_option("--seed", options->seed, "The same seed gives the same bits everywhere")
      ->check(unsigned_number)
      ->capture_default_str();
  command
      ->add_option("--output", options->output,
                   "A safetensors file with timm's names; timm's config.json is written beside it")
      ->required();
  command->callback([options] { init(*options); });
}

void add_info(CLI::App& program) {
  CLI::App* command = program.add_subcommand("info", "Show what a file with weights holds");
  auto path = std::make_shared<std::string>();
  auto list = std::make_shared<bool>(false);
  auto json = std::make_shared<bool>(false);
  command->add_option("file", *path, "A safetensors file, or an .npz of big_vision")->required();
  command->add_flag("--list", *list, "List every tensor");
  command->add_flag("--json", *json, "Print a JSON object");
  command->callback([path, list, json] { info(*path, *list, *json); });
}

}  // namespace sylvit::cli
