// timm's config.json, which lies beside weights: which model they are of, and how images are prepared for it.
//
// timm's form (save_for_hf): architecture, num_classes, num_features, global_pool, model_args, pretrained_cfg. What is
// written here has one member more, "sylvit", with the whole configuration (config_json.hpp), and where timm does not
// compute this model (another score, say) an architecture that timm refuses.
//
// model.safetensors, the name that timm and the hub use, has config.json in its folder; NAME.safetensors has
// NAME.config.json, so that several files can lie in one folder.
#pragma once

#include <sylvit/images.hpp>

#include <filesystem>
#include <optional>
#include <string>

#include "vit/config_json.hpp"

namespace sylvit::vit {

/// How images are prepared, as far as a config.json says it.
struct ToldImages {
  std::optional<double> crop_pct;
  std::optional<std::array<float, 3>> mean, deviation;
  std::string interpolation, crop_mode;  ///< empty: not said
};

struct TimmConfig {
  std::filesystem::path path;
  bool is_own = false;  ///< with the whole configuration; else the record is what timm's words say
  ConfigRecord record;
  ToldImages images;
};

/// Where the config.json of a file with weights is written.
std::filesystem::path timm_config_path(const std::filesystem::path& weights);

/// The config.json of a file with weights: at timm_config_path(), else config.json in the folder, if no other file with
/// weights lies there. Nothing where there is none, or where it is not of timm's form; `not_read` then says why, if
/// there is something to say. Throws Error for one that is damaged.
std::optional<TimmConfig> timm_config_beside(const std::filesystem::path& weights, std::string& not_read);

/// Throws Error when a file lies where the config.json would be written, and sylvit has not written it.
void check_timm_config_free(const std::filesystem::path& weights);
/// Checks that, and writes it, whole or not at all.
void write_timm_config(const std::filesystem::path& weights, const VitConfig& config,
                       const ImageTransform& images = {});

}  // namespace sylvit::vit
