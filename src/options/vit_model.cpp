#include "options/vit_model.hpp"

#include <sylvit/error.hpp>
#include <sylvit/memory.hpp>

#include <fmt/core.h>

#include "options/numbers.hpp"
#include "runtime/host_cpu.hpp"
#include "terminal/print.hpp"
#include "vit/init.hpp"
#include "vit/weights.hpp"

namespace sylvit::options {

void VitWeightOptions::add_to(CLI::App& command) {
  auto* file =
      command.add_option("--weights", weights, "Parameters: timm's names (safetensors) or an .npz of big_vision");
  command.add_option("--seed", seed, "Random parameters instead")->check(unsigned_number)->excludes(file);
}

void check_host_memory(const VitConfig& config) {
  const double parameters = vit::parameter_count(config);
  const std::size_t memory = runtime::host_memory_bytes();
  if (memory > 0 && parameters * sizeof(float) > static_cast<double>(memory))
    throw Error(fmt::format("the model has {:.3g} parameters, and this machine's memory of {} cannot hold them",
                            parameters, readable_bytes(memory)));
}

VitModel::VitModel(const VitModelOptions& model, const VitWeightOptions& source)
    : seed_(source.seed.value_or(0)), config_(model.config()) {
  if (source.weights.empty()) {
    if (!source.seed) throw Error("a model needs --weights or --seed");
    return;
  }
  file_ = io::WeightsFile::open(source.weights);
  config_ = vit::adapted_to(config_, *file_);
  const VitConfig guess = vit::guess_config(*file_);
  if (!model.classes) config_.classes = guess.classes;
  if (!model.image_size && file_->find("pos_embed") != nullptr && guess.patch > 0) {
    // As many patches as the file has positions; patches of another size are an error of their own.
    config_.image_height = guess.grid_height() * config_.patch;
    config_.image_width = guess.grid_width() * config_.patch;
  }
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
