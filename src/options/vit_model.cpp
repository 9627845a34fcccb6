#include "options/vit_model.hpp"

#include <sylvit/error.hpp>
#include <sylvit/memory.hpp>

#include <fmt/core.h>

#include "io/messages.hpp"
#include "options/numbers.hpp"
#include "runtime/host_cpu.hpp"
#include "terminal/print.hpp"
#include "vit/init.hpp"
#include "vit/weights.hpp"

namespace sylvit::options {

namespace {

std::string text_of(const std::array<float, 3>& values) {
  return values[0] == values[1] && values[1] == values[2] ? fmt::format("{}", values[0])
                                                          : fmt::format("{},{},{}", values[0], values[1], values[2]);
}

}  // namespace

void VitWeightOptions::add_to(CLI::App& command) {
  auto* file =
      command.add_option("--weights", weights, "Parameters: timm's names (safetensors) or an .npz of big_vision");
  command.add_option("--seed", seed, "Random parameters instead")->check(unsigned_number)->excludes(file);
  command.add_flag("--override", override_file, "Options may contradict what was written down with the weights")
      ->needs(file);
}

void TransformOptions::add_to(CLI::App& command) {
  command
      .add_option(
          "--crop-pct", crop_pct,
          "The share of the resized image's shorter side that is kept (default: 0.9, or what config.json beside "
          "the weights says; so are the following)")
      ->check(finite_number)  // NaN is in every range
      ->check(CLI::Range(0.01, 1.0));
  const auto add = [&](const char* name, std::optional<std::array<float, 3>>& value, const char* description) {
    return command
        .add_option_function<std::array<float, 3>>(
            name, [&value](const std::array<float, 3>& given) { value = given; }, description)
        ->delimiter(',');
  };
  add("--mean", mean, "Of red, green and blue, in units of full brightness (default: 0.5,0.5,0.5)")
      ->check(finite_number);
  add("--std", deviation, "Their standard deviation (default: 0.5,0.5,0.5)")->check(positive_number);
}

void print_warnings(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) terminal::print(stderr, "sylvit: {}\n", line);
}

void check_host_memory(const VitConfig& config) {
  const double parameters = vit::parameter_count(config);
  const std::size_t memory = runtime::host_memory_bytes();
  if (memory > 0 && parameters * sizeof(float) > static_cast<double>(memory))
    throw Error(fmt::format("the model has {:.3g} parameters, and this machine's memory of {} cannot hold them",
                            parameters, readable_bytes(memory)));
}

VitModel::VitModel(const VitModelOptions& model, const VitWeightOptions& source)
    : path_(source.weights), seed_(source.seed.value_or(0)), config_(model.config()), options_(model) {
  if (path_.empty() && !source.seed) wrong_command_line("a model needs --weights or --seed");
  if (!path_.empty()) {
    file_ = io::WeightsFile::open(path_);
    told_ = vit::file_config(*file_, path_);
    config_ = vit::adapted_to(model.over(told_.config), *file_);
    if (!model.image_size && file_->find("pos_embed") != nullptr) {
      // As many patches as the file has positions; patches of another size are an error of their own.
      config_.image_height = told_.config.grid_height() * config_.patch;
      config_.image_width = told_.config.grid_width() * config_.patch;
    }
    if (!source.override_file) check_against_file(model);
    if (config_.score == Score::custom)
      throw Error(told_.told_by + " says the custom score " + io::in_quotes(told_.custom_score) +
                      ", and only the application that has its code can run it",
                  "--score with --override takes another");
  }
  name_ = model.name_for(config_);
}

void VitModel::check_against_file(const VitModelOptions& model) const {
  for (const vit::ConfigMember* member : vit::contradictions(told_, config_))
    throw Error(model.given_for(member->name) + " contradicts " + vit::what_is_written(told_, *member),
                "leave it out, or add --override");
}

sylvit::ImageTransform VitModel::transform(const TransformOptions& options) const {
  sylvit::ImageTransform transform;
  const auto choose = [](auto& to, const auto& given, const auto& told) { to = given.value_or(told.value_or(to)); };
  choose(transform.crop_pct, options.crop_pct, told_.images.crop_pct);
  choose(transform.mean, options.mean, told_.images.mean);
  choose(transform.deviation, options.deviation, told_.images.deviation);
  transform.size = config_.image_height;
  return transform;
}

bool VitModel::is_assumed(std::string_view member) const {
  return file_ && told_.origin(member) == vit::Origin::assumed && !options_.is_given(member);
}

std::vector<Assumption> VitModel::assumed(const TransformOptions* images) const {
  std::vector<Assumption> assumptions;
  if (!file_) return assumptions;
  const auto add = [&](bool is_told, std::string_view name, const std::string& value, const std::string& option) {
    if (!is_told) assumptions.push_back({std::string(name), fmt::format("{} {} ({})", name, value, option)});
  };
  for (const vit::ConfigMember& member : vit::config_members()) {
    const bool is_alpha = member.name == "alpha";
    const bool counts =
        member.name == "score" || member.name == "heads" || member.name == "pooling" || member.name == "gelu_tanh" ||
        member.name == "norm_epsilon" ||
        (config_.score != Score::softmax && ((is_alpha && !config_.head_alpha) || member.name == "divisor"));
    if (counts)
      add(!is_assumed(member.name), member.name,
          member.name == "divisor" && config_.divisor == 0 ? "the number of tokens" : member.text(config_),
          VitModelOptions::option_for(member.name));
  }
  if (images == nullptr) return assumptions;
  const sylvit::ImageTransform taken = transform(*images);
  add(!is_assumed("image_height"), "image_size", fmt::format("{}", taken.size), "--image-size");
  add(images->mean || told_.images.mean, "mean", text_of(taken.mean), "--mean");
  add(images->deviation || told_.images.deviation, "std", text_of(taken.deviation), "--std");
  add(images->crop_pct || told_.images.crop_pct, "crop_pct", fmt::format("{}", taken.crop_pct), "--crop-pct");
  return assumptions;
}

std::vector<std::string> VitModel::warnings(const TransformOptions* images) const {
  std::vector<std::string> lines;
  if (!told_.not_read.empty()) lines.push_back(told_.not_read);
  std::string list;
  for (const Assumption& one : assumed(images)) io::add_to_list(list, one.text);
  if (!list.empty()) lines.push_back(fmt::format("{} does not tell all of its model, and assumed is: {}", path_, list));
  if (images == nullptr) return lines;
  const auto differs = [&](const std::string& told, const char* ours, const char* what) {
    if (!told.empty() && told != ours)
      lines.push_back(fmt::format("{} was trained with the {} {}, and images are prepared with {}", path_, what,
                                  io::in_quotes(told), ours));
  };
  differs(told_.images.interpolation, "bicubic", "interpolation");
  differs(told_.images.crop_mode, "center", "crop");
  return lines;
}

void VitModel::warn_of_interpolation(const VitConfig& config) const {
  terminal::print(stderr, "sylvit: warning: the positions of {} were interpolated to {} x {} patches\n", file_->name(),
                  config.grid_height(), config.grid_width());
}

std::vector<std::vector<float>> VitModel::values(const VitConfig& config) const {
  if (!file_) {
    check_host_memory(config);
    return vit::initial_parameters(config, seed_);
  }
  vit::VitWeights weights = vit::read_weights(*file_, config);
  if (weights.interpolated) warn_of_interpolation(config);
  return std::move(weights.values);
}

VitParameters VitModel::parameters(const Device& device, const VitConfig& config, DType dtype) const {
  VitParameters parameters(device, config, dtype);
  if (!file_)
    parameters.initialise(seed_);
  else if (vit::load_weights(*file_, parameters))
    warn_of_interpolation(config);
  return parameters;
}

}  // namespace sylvit::options
