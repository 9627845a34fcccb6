// The model that a command computes with: its configuration and parameters, from a file of weights or from a seed.
#pragma once

#include <sylvit/images.hpp>
#include <sylvit/vit.hpp>

#include "io/weights_file.hpp"
#include "options/vit_options.hpp"
#include "options/words.hpp"
#include "vit/file_config.hpp"

namespace sylvit::options {

struct VitWeightOptions {
  std::string weights;
  std::optional<std::uint64_t> seed;
  bool override_file = false;

  void add_to(CLI::App& command);
};

/// How image files are prepared, as far as the command line says it.
struct TransformOptions {
  std::optional<double> crop_pct;
  std::optional<std::array<float, 3>> mean, deviation;

  void add_to(CLI::App& command);
};

/// What nothing tells: a name, and how it is said with what is taken and the option that sets it: "score softmax
/// (--score)".
struct Assumption {
  std::string name, text;
};

/// Each line on standard error.
void print_warnings(const std::vector<std::string>& lines);

/// Throws Error when this machine's memory cannot hold the model's parameters.
void check_host_memory(const VitConfig& config);

class VitModel {
 public:
  /// Opens the file. Throws Error when an option speaks against the file. Neither file nor seed is a wrong command
  /// line.
  VitModel(const VitModelOptions& model, const VitWeightOptions& source);

  /// What the options say over what the file tells. Not checked yet.
  const VitConfig& config() const noexcept { return config_; }
  /// As people call it.
  const std::string& name() const noexcept { return name_; }
  /// Of the weights; empty with a seed.
  const std::string& file() const noexcept { return path_; }
  std::uint64_t seed() const noexcept { return seed_; }
  /// Whether the file or the options tell what the score is.
  bool score_is_told() const { return !is_assumed("score"); }

  /// How its images are prepared: as the options say, else as config.json beside the file says, else as by default.
  sylvit::ImageTransform transform(const TransformOptions& options = {}) const;

  /// What of the model neither options nor file tell, though it changes what the weights compute; with `images` also of
  /// how images are prepared. Empty with a seed.
  std::vector<Assumption> assumed(const TransformOptions* images = nullptr) const;
  /// The lines that say so, and what a config.json says that does not count.
  std::vector<std::string> warnings(const TransformOptions* images = nullptr) const;

  /// Runs a check of the configuration, which throws Error. Where options alone made it, the command line is wrong.
  template <class Check>
  void check(const Check& check) const {
    file_ ? check() : by_command_line(check);
  }

  /// In host memory, in the order of vit_parameters(config). Warns as parameters() does.
  std::vector<std::vector<float>> values(const VitConfig& config) const;

  /// On the device, filled. Warns on standard error when positions had to be interpolated. Waits.
  VitParameters parameters(const Device& device, const VitConfig& config, DType dtype) const;

 private:
  bool is_assumed(std::string_view member) const;
  void check_against_file(const VitModelOptions& model) const;
  void warn_of_interpolation(const VitConfig& config) const;

  std::string path_;
  std::uint64_t seed_;
  std::optional<io::WeightsFile> file_;
  vit::FileConfig told_;
  VitConfig config_;
  std::string name_;
  VitModelOptions options_;
};

}  // namespace sylvit::options
