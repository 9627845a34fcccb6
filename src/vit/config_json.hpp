// A VitConfig as JSON and back: what travels with weights, in metadata of their file and in config.json beside it.
//
//     {"version": 1, "width": 384, …, "score": "relu", "alpha": 0.5, …}
//
// Its members stand in one list. A later version of sylvit may add some, whose defaults change nothing: what a text
// does not have is as it would be without the text, and a member that is not known here is refused.
#pragma once

#include <sylvit/vit_config.hpp>

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/safetensors.hpp"

namespace sylvit::vit {

struct ConfigMember {
  std::string_view name;
  std::variant<std::int64_t VitConfig::*, float VitConfig::*, bool VitConfig::*, Score VitConfig::*,
               Pooling VitConfig::*, Positions VitConfig::*>
      place;

  bool is_same(const VitConfig& a, const VitConfig& b) const;
  void copy(const VitConfig& from, VitConfig& to) const;
  /// "relu", "0.5", "true".
  std::string text(const VitConfig& config) const;
};

/// All but custom_score, of which only the name can be written.
std::span<const ConfigMember> config_members();

/// What a text says of a model.
struct ConfigRecord {
  VitConfig config;                    ///< what it does not say is as by default
  std::string custom_score;            ///< with Score::custom: the score's name, whose code is in no file
  std::vector<std::string_view> told;  ///< names of the members that it says something of, in no order
};

nlohmann::ordered_json config_json(const VitConfig& config);

/// With the fewest digits that give the float again: 0.1 instead of 0.10000000149011612.
double shortest(float value);

/// `where` begins the sentences: "w.safetensors: its sylvit.config". Throws Error for what cannot be read. Whether the
/// numbers make a model is for check().
ConfigRecord config_of_json(const nlohmann::ordered_json& json, const std::string& where);

/// VitConfig::check() as far as it can be done without a custom score's code. `where` says whose configuration it is.
void check_stored(VitConfig config, const std::string& where);

/// A JSON document that anybody may have written: no longer than that, and not deep. Of the outermost object only these
/// members are kept, or all if there are none. Throws Error that begins with `where`.
nlohmann::ordered_json parsed_json(std::string_view text, std::size_t most_bytes, const std::string& where,
                                   std::span<const std::string_view> members = {});

/// What a safetensors file with a model's weights has as metadata.
io::SafetensorsMetadata config_metadata(const VitConfig& config);
/// What a file's metadata says; nothing where there is none of ours.
std::optional<ConfigRecord> config_of_metadata(const io::SafetensorsMetadata& metadata, const std::string& file);

}  // namespace sylvit::vit
