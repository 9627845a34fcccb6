// The model that a command computes with: its configuration and parameters, from a file of weights or from a seed.
#pragma once

#include <sylvit/vit.hpp>

#include "io/weights_file.hpp"
#include "options/vit_options.hpp"

namespace sylvit::options {

struct VitWeightOptions {
  std::string weights;
  std::optional<std::uint64_t> seed;

  void add_to(CLI::App& command);
};

/// Throws Error when this machine's memory cannot hold the model's parameters.
void check_host_memory(const VitConfig& config);

class VitModel {
 public:
  /// Opens the file. Throws Error when there is neither file nor seed.
  VitModel(const VitModelOptions& model, const VitWeightOptions& source);

  /// What the options say, and what they leave to the file: class token, classes, the images' size. Not checked yet.
  const VitConfig& config() const noexcept { return config_; }

  /// In host memory, in the order of vit_parameters(config). Warns as parameters() does.
  std::vector<std::vector<float>> values(const VitConfig& config) const;

  /// On the device, filled. Warns on standard error when positions had to be interpolated. Waits.
  VitParameters parameters(const Device& device, const VitConfig& config, DType dtype) const;

 private:
  void warn_of_interpolation(const VitConfig& config) const;

  std::uint64_t seed_;
  std::optional<io::WeightsFile> file_;
  VitConfig config_;
};

}  // namespace sylvit::options
