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

/// Throws Error where what is written and the tensors cannot both be right.
void check_against_tensors(const FileConfig& told, const TensorConfig& tensors, const io::WeightsFile& file) {
  const char* advice = "one of them is of another model";
  const VitConfig& written = told.config;
  for (const ConfigMember& member : config_members()) {
    if (member.is_same(written, tensors.config) || is_image_size(member)) continue;
    // A class token and a norm for all tokens go with two kinds of pooling, but not with this one.
    const bool lacks_map = member.name == "pooling" && written.pooling == Pooling::map;
    if (has(tensors.told, member.name) || lacks_map) {
      const std::string name(member.name);
      throw Error(told.told_by + " says " + name + " " + member.text(written) + ", and the tensors of " + file.name() +
                      " are those of " + name + " " + member.text(tensors.config),
                  advice);
    }
  }
  const io::TensorInfo* positions = file.find("pos_embed");
  if (positions != nullptr && told.is_written("image_height") &&
      positions->shape.elements() != written.tokens() * written.width)
    throw Error(told.told_by + " says images of " + std::to_string(written.image_height) + " x " +
                    std::to_string(written.image_width) + ", and pos_embed of " + file.name() + " is " +
                    positions->shape.text(),
                advice);
}

}  // namespace

std::string_view name_of(Origin origin) noexcept {
  constexpr std::array<std::string_view, 4> names{"assumed", "tensors", "config.json", "metadata"};
  return base::name_at(names, origin);
}

FileConfig file_config(const io::WeightsFile& file, const std::filesystem::path& path) {
  const TensorConfig tensors = config_of_tensors(file);
  FileConfig result;
  result.config = tensors.config;
  for (const ConfigMember& member : config_members()) result.origins[member.name] = Origin::assumed;
  for (const std::string_view member : tensors.told) result.origins[member] = Origin::tensors;

  const std::optional<ConfigRecord> metadata = config_of_metadata(file.metadata(), file.name());
  const std::optional<TimmConfig> timm = timm_config_beside(path, result.not_read);
  if (timm) result.images = timm->images;
  if (!metadata && !timm) return result;
  const ConfigRecord& record = metadata ? *metadata : timm->record;
  result.told_by = metadata ? file.name() : timm->path.string();
  for (const ConfigMember& member : config_members())
    if (has(record.told, member.name)) {
      member.copy(record.config, result.config);
      result.origins[member.name] = metadata ? Origin::metadata : Origin::config_json;
    }
  check_stored(result.config, result.told_by);  // bounds first: what follows computes with the numbers
  check_against_tensors(result, tensors, file);
  result.custom_score = record.custom_score;
  return result;
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
