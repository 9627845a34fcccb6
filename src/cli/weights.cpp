// sylvit init: a model's initial weights from a seed. sylvit info: what a file with weights holds.
#include "vit/weights.hpp"

#include <sylvit/error.hpp>
#include <sylvit/memory.hpp>

#include "cli/commands.hpp"
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
  const VitConfig config = options.model.config();
  config.check();
  check_host_memory(config);
  const std::vector<VitParameter> parameters = vit_parameters(config);
  Results results;
  std::int64_t count = 0;
  for (const VitParameter& parameter : parameters) {
    std::vector<float> values(static_cast<std::size_t>(parameter.shape.elements()));
    vit::initialise(config, parameter, options.seed, values);
    count += parameter.shape.elements();
    results.add(parameter.name, parameter.shape, std::move(values));
  }
  results.write(options.output);
  terminal::print("{}: {} parameters in {} tensors\n", options.output, count, parameters.size());
}

std::string options_text(const VitConfig& config) {
  std::string text;
  const auto add = [&](bool there, const char* option) {
    if (there) text += (text.empty() ? "" : " ") + std::string(option);
  };
  add(config.qk_norm, "--qk-norm");
  add(config.gate, "--gate");
  add(config.head_scale, "--head-scale");
  add(config.head_alpha, "--head-alpha");
  add(config.pooling == Pooling::average, "--pool gap");
  add(config.pooling == Pooling::map, "--pool map");
  add(config.positions == Positions::sincos, "--sincos");
  return text.empty() ? "none" : text;
}

void info(const std::string& path, bool list) {
  const io::WeightsFile file = io::WeightsFile::open(path);
  std::int64_t parameters = 0;
  std::size_t bytes = 0;
  for (const io::TensorInfo& tensor : file.tensors()) {
    parameters += tensor.shape.elements();
    bytes += static_cast<std::size_t>(tensor.end - tensor.begin);
    if (list) terminal::print("  {:<40} {:<6} {}\n", tensor.name, tensor.dtype_text(), tensor.shape.text());
  }
  terminal::print("tensors      {}\nparameters   {}\nbytes        {} ({})\n", file.tensors().size(), parameters, bytes,
                  readable_bytes(bytes));
  VitConfig config;
  try {
    config = vit::guess_config(file);
  } catch (const Error& error) {
    terminal::print("model        unknown: {}\n", error.what());
    return;
  }
  terminal::print("model        {} (guessed), {} classes, images of {} x {}\n", model_name(config), config.classes,
                  config.image_height, config.image_width);
  terminal::print("options      {}\n", options_text(config));
  terminal::print("FLOPs        {:.2f} GFLOP an image, forward\n", vit_forward_flops(config) / 1e9);
}

}  // namespace

void add_init(CLI::App& program) {
  CLI::App* command = program.add_subcommand("init", "Write a model's initial weights");
  auto options = std::make_shared<InitOptions>();
  options->model.add_to(*command);
  command->add_option("--seed", options->seed, "The same seed gives the same bits everywhere")
      ->check(unsigned_number)
      ->capture_default_str();
  command->add_option("--output", options->output, "A safetensors file with timm's names")->required();
  command->callback([options] { init(*options); });
}

void add_info(CLI::App& program) {
  CLI::App* command = program.add_subcommand("info", "Show what a file with weights holds");
  auto path = std::make_shared<std::string>();
  auto list = std::make_shared<bool>(false);
  command->add_option("file", *path, "A safetensors file, or an .npz of big_vision")->required();
  command->add_flag("--list", *list, "List every tensor");
  command->callback([path, list] { info(*path, *list); });
}

}  // namespace sylvit::cli
