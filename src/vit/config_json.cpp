#include "vit/config_json.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "io/messages.hpp"

namespace sylvit::vit {

namespace {

using Json = nlohmann::ordered_json;

constexpr int version = 1;
constexpr const char* metadata_key = "sylvit.config";
constexpr const char* custom_key = "custom_score";

constexpr std::array members{ConfigMember{"width", &VitConfig::width},
                             ConfigMember{"depth", &VitConfig::depth},
                             ConfigMember{"heads", &VitConfig::heads},
                             ConfigMember{"mlp", &VitConfig::mlp},
                             ConfigMember{"patch", &VitConfig::patch},
                             ConfigMember{"image_height", &VitConfig::image_height},
                             ConfigMember{"image_width", &VitConfig::image_width},
                             ConfigMember{"channels", &VitConfig::channels},
                             ConfigMember{"classes", &VitConfig::classes},
                             ConfigMember{"score", &VitConfig::score},
                             ConfigMember{"alpha", &VitConfig::alpha},
                             ConfigMember{"divisor", &VitConfig::divisor},
                             ConfigMember{"qk_norm", &VitConfig::qk_norm},
                             ConfigMember{"gate", &VitConfig::gate},
                             ConfigMember{"head_scale", &VitConfig::head_scale},
                             ConfigMember{"head_alpha", &VitConfig::head_alpha},
                             ConfigMember{"pooling", &VitConfig::pooling},
                             ConfigMember{"class_token", &VitConfig::class_token},
                             ConfigMember{"norm_after_pooling", &VitConfig::norm_after_pooling},
                             ConfigMember{"positions", &VitConfig::positions},
                             ConfigMember{"gelu_tanh", &VitConfig::gelu_tanh},
                             ConfigMember{"norm_epsilon", &VitConfig::norm_epsilon}};

/// Does not compile when a VitConfig has a member that the list lacks.
[[maybe_unused]] void check_that_all_are_listed(const VitConfig& config) {
  [[maybe_unused]] const auto& [width, depth, heads, mlp, patch, height, image_width, channels, classes, score, custom,
                                alpha, divisor, qk_norm, gate, head_scale, head_alpha, pooling, class_token, norm_after,
                                positions, gelu_tanh, norm_epsilon] = config;
  static_assert(members.size() + 1 == 23);  // one name above is a member; custom_score is in no list
}

Json json_of(std::int64_t value) { return value; }
Json json_of(bool value) { return value; }
Json json_of(Score value) { return name_of(value); }
Json json_of(Pooling value) { return name_of(value); }
Json json_of(Positions value) { return name_of(value); }

Json json_of(float value) { return shortest(value); }

/// A value as a message shows it.
std::string shown(const Json& value) {
  if (value.is_string()) return io::in_quotes(value.get_ref<const std::string&>());
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  return value.dump();
}

[[noreturn]] void fail(const std::string& where, const std::string& member, const Json& value,
                       const std::string& wanted) {
  throw Error(where + " has the " + member + " " + shown(value) + ", which must be " + wanted);
}

void read(const Json& value, std::int64_t& to, const std::string& where, const std::string& member) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() ||
                     value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
  if (!fits) fail(where, member, value, "a whole number");
  to = value.get<std::int64_t>();
}

void read(const Json& value, float& to, const std::string& where, const std::string& member) {
  if (!value.is_number() || !std::isfinite(static_cast<float>(value.get<double>())))
    fail(where, member, value, "a number within the range of f32");
  to = static_cast<float>(value.get<double>());
}

void read(const Json& value, bool& to, const std::string& where, const std::string& member) {
  if (!value.is_boolean()) fail(where, member, value, "true or false");
  to = value.get<bool>();
}

template <class Parse, class Enum>
void read_name(const Json& value, Enum& to, const std::string& where, const std::string& member, const Parse& parse) {
  if (!value.is_string()) fail(where, member, value, "a name");
  try {
    to = parse(base::printable(value.get_ref<const std::string&>()));
  } catch (const Error& error) {
    throw Error(where + ": " + error.failure(), error.advice());
  }
}

void read(const Json& value, Score& to, const std::string& where, const std::string& member) {
  read_name(value, to, where, member,
            [](const std::string& name) { return name == name_of(Score::custom) ? Score::custom : parse_score(name); });
}

void read(const Json& value, Pooling& to, const std::string& where, const std::string& member) {
  read_name(value, to, where, member, parse_pooling);
}

void read(const Json& value, Positions& to, const std::string& where, const std::string& member) {
  read_name(value, to, where, member, parse_positions);
}

/// As a CustomScore's name is.
std::string identifier(const Json& value, const std::string& where, const std::string& member) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  if (!value.is_string() || !std::ranges::all_of(value.get_ref<const std::string&>(), fits))
    fail(where, member, value, "a C++ identifier");
  return value.get<std::string>();
}

void check_version(const Json& json, const std::string& where) {
  const auto found = json.find("version");
  if (found == json.end()) throw Error(where + " has no version");
  if (!found->is_number_integer() || *found != version)
    throw Error(
        where + " has the version " + shown(*found) + ", and this sylvit reads version " + std::to_string(version),
        "a newer sylvit may read it");
}

}  // namespace

bool ConfigMember::is_same(const VitConfig& a, const VitConfig& b) const {
  return std::visit([&](auto member) { return a.*member == b.*member; }, place);
}

void ConfigMember::copy(const VitConfig& from, VitConfig& to) const {
  std::visit([&](auto member) { to.*member = from.*member; }, place);
}

std::string ConfigMember::text(const VitConfig& config) const {
  const Json value = std::visit([&](auto member) { return json_of(config.*member); }, place);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

double shortest(float value) {
  std::array<char, 32> text{};
  const char* end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double result = value;
  std::from_chars(text.data(), end, result);
  return result;
}

std::span<const ConfigMember> config_members() { return members; }

Json config_json(const VitConfig& config) {
  Json json{{"version", version}};
  for (const ConfigMember& member : members) {
    json[std::string(member.name)] = std::visit([&](auto place) { return json_of(config.*place); }, member.place);
    if (member.name == "score" && config.score == Score::custom) json[custom_key] = config.custom_score.name();
  }
  return json;
}

ConfigRecord config_of_json(const Json& json, const std::string& where) {
  if (!json.is_object()) throw Error(where + " is no JSON object");
  check_version(json, where);
  ConfigRecord record;
  for (const auto& [key, value] : json.items()) {
    if (key == "version") continue;
    if (key == custom_key) {
      record.custom_score = identifier(value, where, key);
      continue;
    }
    const auto* const member = std::ranges::find(members, std::string_view(key), &ConfigMember::name);
    if (member == members.end())
      throw Error(where + " has the member " + io::in_quotes(key) + ", which is not known here",
                  "a newer sylvit may know it");
    std::visit([&](auto place) { read(value, record.config.*place, where, key); }, member->place);
    record.told.push_back(member->name);
  }
  if ((record.config.score == Score::custom) == record.custom_score.empty())
    throw Error(where + " has the score " + std::string(name_of(record.config.score)) + " and " +
                (record.custom_score.empty() ? "no " : "a ") + custom_key);
  return record;
}

void check_stored(VitConfig config, const std::string& where) {
  // No check looks at what a point-wise score computes.
  if (config.score == Score::custom && !config.custom_score) config.score = Score::relu;
  try {
    config.check();
  } catch (const Error& error) {
    throw Error(where + ": " + error.what());
  }
}

Json parsed_json(std::string_view text, std::size_t most_bytes, const std::string& where,
                 std::span<const std::string_view> wanted) {
  if (text.size() > most_bytes)
    throw Error(where + " is " + std::to_string(text.size()) + " bytes long, and may be " + std::to_string(most_bytes));
  constexpr int deepest = 16;
  const auto keep = [&](int depth, Json::parse_event_t event, const Json& value) {
    if (depth > deepest) throw Error(where + " is nested deeper than " + std::to_string(deepest));
    return depth != 1 || event != Json::parse_event_t::key || wanted.empty() ||
           std::ranges::find(wanted, std::string_view(value.get_ref<const std::string&>())) != wanted.end();
  };
  // The parser would take a zero byte for the end.
  std::size_t wrong = text.find('\0');
  if (wrong == std::string_view::npos) {
    try {
      return Json::parse(text, keep);
    } catch (const Json::parse_error& error) {
      wrong = error.byte;
    } catch (const Json::exception&) {
      throw Error(where + " has a number that is out of range");
    }
  }
  throw Error(where + " is not valid JSON near byte " + std::to_string(wrong));
}

io::SafetensorsMetadata config_metadata(const VitConfig& config) {
  // "format": of whose layout the tensors are; transformers, for one, refuses metadata without it.
  return {{"format", "pt"}, {metadata_key, config_json(config).dump()}};
}

std::optional<ConfigRecord> config_of_metadata(const io::SafetensorsMetadata& metadata, const std::string& file) {
  const auto found = metadata.find(metadata_key);
  if (found == metadata.end()) return {};
  const std::string where = file + ": its " + metadata_key;
  constexpr std::size_t most_bytes = 1U << 16U;
  return config_of_json(parsed_json(found->second, most_bytes, where), where);
}

}  // namespace sylvit::vit
