#include "vit/file_config.hpp"

#include <sylvit/error.hpp>

#include <algorithm>

#include "base/enum_names.hpp"
#include "vit/weights.hpp"

namespace sylvit::vit {

namespace {

/// "relu", "alpha 0.5": the score goes without saying.
std::string spoken(const ConfigMember& member, const VitConfig& config) {
  if (member.name == "score") return member.text(config);
  return std::string(member.name).append(" ").append(member.text(config));
}

bool is_image_size(const ConfigMember& member) { return member.name == "image_height" || member.name == "image_width"; }

bool has(const std::vector<std::string_view>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

constexpr const char* other_model = "one of them is of another model";

/// Throws Error where what is written and the tensors cannot both be right.
void check_against_tensors(const FileConfig& told, const TensorConfig& tensors, const io::WeightsFile& file) {
  for (const ConfigMember& member : config_members()) {
    if (member.is_same(told.config, tensors.config) || is_image_size(member)) continue;
    // A class token and a norm for all tokens go with two kinds of pooling, but not with this one.
    const bool lacks_map = member.name == "pooling" && told.config.pooling == Pooling::map;
    if (has(tensors.told, member.name) || lacks_map) {
      const std::string name(member.name);
      throw Error(told.told_by + " says " + name + " " + member.text(told.config) + ", and the tensors of " +
                      file.name() + " are those of " + name + " " + member.text(tensors.config),
                  other_model);
    }
  }
}

/// The same of the images' size, whose numbers must be within bounds.
void check_against_positions(const FileConfig& told, const io::WeightsFile& file) {
  const io::TensorInfo* positions = file.find("pos_embed");
  if (positions == nullptr || !told.is_written("image_height")) return;
  const VitConfig& config = told.config;
  if (positions->shape.elements() != config.tokens() * config.width)
    throw Error(told.told_by + " says images of " + std::to_string(config.image_height) + " x " +
                    std::to_string(config.image_width) + ", and pos_embed of " + file.name() + " is " +
                    positions->shape.text(),
                other_model);
}

}  // namespace

std::string_view name_of(Origin origin) noexcept {
  constexpr std::array<std::string_view, 4> names{"assumed", "tensors", "config.json", "metadata"};
  return base::name_at(names, origin);
}

FileConfig file_config(const io::WeightsFile& file, const std::filesystem::path& path) {
  const TensorConfig tensors = config_of_tensors(file);
  FileConfig untold;
  untold.config = tensors.config;
  for (const ConfigMember& member : config_members()) untold.origins[member.name] = Origin::assumed;
  for (const std::string_view member : tensors.told) untold.origins[member] = Origin::tensors;

  const auto with = [&](const ConfigRecord& record, Origin origin, const std::string& told_by) {
    FileConfig result = untold;
    result.told_by = told_by;
    for (const ConfigMember& member : config_members())
      if (has(record.told, member.name)) {
        member.copy(record.config, result.config);
        result.origins[member.name] = origin;
      }
    check_against_tensors(result, tensors, file);
    check_stored(result.config, told_by);
    check_against_positions(result, file);
    result.custom_score = record.custom_score;
    return result;
  };
  const std::optional<ConfigRecord> metadata = config_of_metadata(file.metadata(), file.name());
  const std::optional<TimmConfig> timm = timm_config_beside(path, untold.not_read);
  if (timm) untold.images = timm->images;
  if (metadata) return with(*metadata, Origin::metadata, file.name());
  if (!timm) return untold;
  try {
    return with(timm->record, Origin::config_json, timm->path.string());
  } catch (const Error& error) {
    if (timm->is_own) throw;
    // timm names an architecture even where its sizes were changed, or the file is that of other weights.
    untold.images = {};
    untold.not_read = error.failure() + "; so it does not count";
    return untold;
  }
}

std::vector<const ConfigMember*> contradictions(const FileConfig& file, const VitConfig& config) {
  std::vector<const ConfigMember*> found;
  for (const ConfigMember& member : config_members()) {
    if (is_image_size(member) || !file.is_written(member.name)) continue;
    const bool other_code =
        member.name == "score" && config.score == Score::custom && config.custom_score.name() != file.custom_score;
    if (other_code || !member.is_same(file.config, config)) found.push_back(&member);
  }
  return found;
}

std::string what_is_written(const FileConfig& file, const ConfigMember& member) {
  std::string text = file.told_by + ", which was written for " + spoken(member, file.config);
  if (member.name == "score" && file.config.score == Score::custom) text.append(" ").append(file.custom_score);
  return text;
}

}  // namespace sylvit::vit
