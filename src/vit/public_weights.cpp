// sylvit/weights.hpp over this room's readers.
#include <sylvit/error.hpp>
#include <sylvit/weights.hpp>

#include "vit/file_config.hpp"
#include "vit/weights.hpp"

namespace sylvit {

struct VitWeights::File {
  io::WeightsFile file;
  std::filesystem::path path;

  vit::FileConfig config() const { return vit::file_config(file, path); }
};

VitWeights::VitWeights(const std::filesystem::path& path)
    : file_(std::make_shared<const File>(File{io::WeightsFile::open(path), path})) {}

const std::string& VitWeights::name() const noexcept { return file_->file.name(); }
VitConfig VitWeights::guess() const { return file_->config().config; }
std::string VitWeights::custom_score() const { return file_->config().custom_score; }
VitConfig VitWeights::adapt(const VitConfig& config) const { return vit::adapted_to(config, file_->file); }

std::string VitWeights::contradiction(const VitConfig& config) const {
  const vit::FileConfig file = file_->config();
  const std::vector<const vit::ConfigMember*> found = vit::contradictions(file, config);
  if (found.empty()) return {};
  const vit::ConfigMember& first = *found.front();
  return std::string(first.name) + " " + first.text(config) + " contradicts " + vit::what_is_written(file, first);
}

bool VitWeights::load(VitParameters& parameters, Contradictions contradictions) const {
  if (contradictions == Contradictions::refused)
    if (const std::string sentence = contradiction(parameters.config()); !sentence.empty())
      throw Error(sentence, "take guess() as it is, or load with Contradictions::allowed");
  return vit::load_weights(file_->file, parameters);
}

}  // namespace sylvit
