// What a file with weights says of the model that it belongs to, and where it says so.
#pragma once

#include <filesystem>
#include <map>

#include "io/weights_file.hpp"
#include "vit/timm_config.hpp"

namespace sylvit::vit {

/// Where a member of a configuration comes from. The later goes before the earlier.
enum class Origin : std::uint8_t {
  assumed,      ///< nothing tells
  tensors,      ///< their shapes, or that they are there; for .npz the format
  config_json,  ///< timm's config.json beside the file
  metadata      ///< of the file: sylvit wrote it
};

/// "assumed", "tensors", "config.json", "metadata".
std::string_view name_of(Origin origin) noexcept;

struct FileConfig {
  VitConfig config;
  std::string custom_score;  ///< with Score::custom: the score's name. The configuration lacks the score itself
  std::map<std::string_view, Origin> origins;  ///< of each of config_members()
  std::string told_by;                         ///< the file that has what comes from config.json or metadata
  ToldImages images;
  std::string not_read;  ///< why a config.json that lies there does not count

  Origin origin(std::string_view member) const { return origins.at(member); }
  /// Whether somebody wrote down what the member is, rather than that it follows from the tensors.
  bool is_written(std::string_view member) const { return origin(member) >= Origin::config_json; }
};

/// `path` is where the file lies. Throws Error when it holds no Vision Transformer, or when its metadata or config.json
/// is damaged or speaks of another model than its tensors. Nothing is allocated for the model.
FileConfig file_config(const io::WeightsFile& file, const std::filesystem::path& path);

/// The members that are written down otherwise. The images' size is none of them: positions are interpolated.
std::vector<const ConfigMember*> contradictions(const FileConfig& file, const VitConfig& config);

/// "w.safetensors, which was written for relu".
std::string what_is_written(const FileConfig& file, const ConfigMember& member);

}  // namespace sylvit::vit
