// sylvit/weights.hpp over this room's readers.
#include <sylvit/weights.hpp>

#include "vit/weights.hpp"

namespace sylvit {

struct VitWeights::File {
  io::WeightsFile file;
};

VitWeights::VitWeights(const std::filesystem::path& path)
    : file_(std::make_shared<const File>(File{io::WeightsFile::open(path)})) {}

const std::string& VitWeights::name() const noexcept { return file_->file.name(); }
VitConfig VitWeights::guess() const { return vit::guess_config(file_->file); }
VitConfig VitWeights::adapt(const VitConfig& config) const { return vit::adapted_to(config, file_->file); }
bool VitWeights::load(VitParameters& parameters) const { return vit::load_weights(file_->file, parameters); }

}  // namespace sylvit
