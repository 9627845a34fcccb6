#include "vit/timm_config.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/temporary_file.hpp"
#include "io/files.hpp"
#include "io/messages.hpp"

namespace sylvit::vit {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* extension = ".safetensors";
constexpr const char* own_key = "sylvit";
/// Of a model that timm does not have. timm has no architecture of that name and says so.
constexpr const char* foreign_architecture = "sylvit_vit";
/// With the labels of 22,000 classes and their descriptions it is some MB long.
constexpr std::size_t most_bytes = 1U << 24U;
constexpr std::array<std::string_view, 13> wanted{
    "architecture", "num_features", "global_pool", "model_args", "pretrained_cfg", own_key,
    // The older form, without pretrained_cfg.
    "mean", "std", "crop_pct", "interpolation", "crop_mode", "input_size", "num_classes"};

const Json* find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string text_of(const Json* value) {
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

/// The document; nothing if it is not of timm's form.
std::optional<Json> read_document(const std::filesystem::path& path) {
  const std::string text = io::read_text(path, "a config.json", most_bytes);
  Json json = parsed_json(text, most_bytes, path.string(), wanted);
  if (text_of(find(json, "architecture")).empty()) return {};
  return json;
}

bool is_file(const std::filesystem::path& path) {
  std::error_code code;
  return std::filesystem::is_regular_file(path, code);
}

bool has_other_weights(const std::filesystem::path& weights) {
  std::error_code code;
  const std::filesystem::path folder = weights.has_parent_path() ? weights.parent_path() : ".";
  for (std::filesystem::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    const std::filesystem::path name = entry->path().filename();
    if (name != weights.filename() && (name.extension() == extension || name.extension() == ".npz")) return true;
  }
  return false;
}

// ---- reading

/// Numbers and names of a document, which must be what they should be.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  double number(const Json& value, const char* name, double least, double most) const {
    const double result = value.is_number() ? value.get<double>() : std::nan("");
    if (!(result >= least && result <= most))
      throw Error(file_ + ": its " + name + " is " + io::in_quotes(value.dump(-1, ' ', true)) +
                  ", and must be a number from " + shortest(least) + " to " + shortest(most));
    return result;
  }

  std::int64_t whole(const Json& value, const char* name) const {
    if (!value.is_number_integer())
      throw Error(file_ + ": its " + name + " is " + io::in_quotes(value.dump(-1, ' ', true)) +
                  ", and must be a whole number");
    return static_cast<std::int64_t>(number(value, name, 1, 1 << 20));
  }

  /// Of red, green and blue; nothing for images of other channels.
  std::optional<std::array<float, 3>> colours(const Json* value, const char* name, double least) const {
    if (value == nullptr) return {};
    if (!value->is_array()) throw Error(file_ + ": its " + name + " is no list of numbers");
    if (value->size() != 3) return {};
    std::array<float, 3> result{};
    for (std::size_t i = 0; i < 3; ++i) result[i] = static_cast<float>(number((*value)[i], name, least, 1e6));
    return result;
  }

  const std::string& file() const { return file_; }

 private:
  static std::string shortest(double value) { return Json(value).dump(); }

  std::string file_;
};

ToldImages images_of(const Json& json, const Reader& reader) {
  const Json* pretrained = find(json, "pretrained_cfg");
  const Json& source = pretrained == nullptr ? json : *pretrained;
  ToldImages images;
  if (const Json* crop = find(source, "crop_pct")) images.crop_pct = reader.number(*crop, "crop_pct", 0.01, 1);
  images.mean = reader.colours(find(source, "mean"), "mean", -1e6);
  images.deviation = reader.colours(find(source, "std"), "std", 1e-6);
  images.interpolation = text_of(find(source, "interpolation"));
  images.crop_mode = text_of(find(source, "crop_mode"));
  return images;
}

/// The sizes of timm's "vit_small_patch16_384" and the like; nothing for another architecture.
std::optional<VitConfig> sizes_of(const std::string& architecture) {
  const std::size_t end = architecture.rfind('_');
  const std::string resolution = end == std::string::npos ? "" : architecture.substr(end + 1);
  if (resolution.empty() || resolution.find_first_not_of("0123456789") != std::string::npos) return {};
  try {
    return vit_preset(architecture.substr(0, end) + "_224");
  } catch (const Error&) {
    return {};
  }
}

/// What timm's own words say. Of an architecture that is not known here, only what model_args say.
ConfigRecord record_of(const Json& json, const Reader& reader) {
  ConfigRecord record;
  const auto tell = [&](std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names)
      if (std::ranges::find(record.told, name) == record.told.end()) record.told.push_back(name);
  };
  VitConfig& config = record.config;
  const std::optional<VitConfig> sizes = sizes_of(text_of(find(json, "architecture")));
  if (sizes) {
    config = *sizes;
    tell({"width", "depth", "heads", "mlp", "patch", "score", "gelu_tanh", "norm_epsilon"});
  }
  const Json none = Json::object();
  const Json* given = find(json, "model_args");
  const Json& arguments = given == nullptr ? none : *given;
  const auto whole = [&](const char* key, std::int64_t& to, std::string_view name) {
    const Json* value = find(arguments, key);
    if (value == nullptr) return;
    to = reader.whole(*value, key);
    tell({name});
  };
  whole("num_heads", config.heads, "heads");
  whole("embed_dim", config.width, "width");
  whole("depth", config.depth, "depth");
  whole("patch_size", config.patch, "patch");
  if (const Json* ratio = find(arguments, "mlp_ratio"); ratio != nullptr && sizes)
    config.mlp =
        static_cast<std::int64_t>(static_cast<double>(config.width) * reader.number(*ratio, "mlp_ratio", 1e-3, 1e3));
  else if (sizes && config.width != sizes->width)
    config.mlp = 4 * config.width;
  if (const Json* activation = find(arguments, "act_layer")) {
    const std::string name = text_of(activation);
    if (name != "gelu" && name != "gelu_tanh")
      throw Error(reader.file() + ": its model has the activation " + io::in_quotes(activation->dump(-1, ' ', true)) +
                      ", and only gelu and gelu_tanh are known here",
                  "move the file away to run the weights as if they had one of these");
    config.gelu_tanh = name == "gelu_tanh";
    tell({"gelu_tanh"});
  }
  if (find(arguments, "norm_layer") != nullptr) std::erase(record.told, "norm_epsilon");
  const std::string pool = text_of(find(find(arguments, "global_pool") != nullptr ? arguments : json, "global_pool"));
  if (pool == "token" || pool == "avg" || pool == "map") {
    config.pooling = pool == "token" ? Pooling::token : pool == "avg" ? Pooling::average : Pooling::map;
    tell({"pooling"});
  }
  return record;
}

// ---- writing

/// Does timm compute the same? What is asked here leaves no other way to say it than model_args below.
bool timm_computes(const VitConfig& config) {
  return config.score == Score::softmax && !config.gate && !config.head_scale && !config.head_alpha &&
         config.positions == Positions::learned && config.norm_epsilon == VitConfig().norm_epsilon;
}

/// timm takes int(width · ratio).
double mlp_ratio(const VitConfig& config) {
  const auto width = static_cast<double>(config.width);
  const double ratio = static_cast<double>(config.mlp) / width;
  return static_cast<std::int64_t>(width * ratio) == config.mlp ? ratio
                                                                : (static_cast<double>(config.mlp) + 0.5) / width;
}

std::string timm_pooling(Pooling pooling) {
  return pooling == Pooling::token ? "token" : pooling == Pooling::average ? "avg" : "map";
}

/// Sets architecture and model_args.
void describe_for_timm(const VitConfig& config, Json& json) {
  VitConfig base;
  json["architecture"] = "vit_small_patch16_224";
  for (const char* name :
       {"vit_tiny_patch16_224", "vit_small_patch16_224", "vit_base_patch16_224", "vit_large_patch16_224"})
    if (const VitConfig preset = vit_preset(name); preset.width == config.width) {
      base = preset;
      json["architecture"] = name;
    }
  Json arguments = Json::object();
  if (config.patch != base.patch) arguments["patch_size"] = config.patch;
  if (config.width != base.width) arguments["embed_dim"] = config.width;
  if (config.depth != base.depth) arguments["depth"] = config.depth;
  if (config.heads != base.heads) arguments["num_heads"] = config.heads;
  if (config.mlp != 4 * config.width) arguments["mlp_ratio"] = mlp_ratio(config);
  if (config.channels != base.channels) arguments["in_chans"] = config.channels;
  if (config.image_height != base.image_height || config.image_width != base.image_width)
    arguments["img_size"] = {config.image_height, config.image_width};
  if (config.qk_norm) arguments["qk_norm"] = true;
  if (config.gelu_tanh) arguments["act_layer"] = "gelu_tanh";
  if (!config.class_token) arguments["class_token"] = false;
  if (config.pooling != Pooling::token) arguments["global_pool"] = timm_pooling(config.pooling);
  if (config.pooling == Pooling::average && !config.norm_after_pooling) arguments["fc_norm"] = false;
  if (!arguments.empty()) json["model_args"] = std::move(arguments);
}

Json timm_json(const VitConfig& config, const ImageTransform& images) {
  const auto colours = [](const std::array<float, 3>& values) {
    Json list = Json::array();
    for (const float value : values) list.push_back(shortest(value));
    return list;
  };
  Json json;
  if (timm_computes(config))
    describe_for_timm(config, json);
  else
    json["architecture"] = foreign_architecture;
  json["num_classes"] = config.classes;
  json["num_features"] = config.width;
  json["global_pool"] = timm_pooling(config.pooling);
  json["pretrained_cfg"] = {{"custom_load", false},
                            {"input_size", {config.channels, config.image_height, config.image_width}},
                            {"fixed_input_size", true},
                            {"interpolation", "bicubic"},
                            {"crop_pct", images.crop_pct},
                            {"crop_mode", "center"},
                            {"mean", colours(images.mean)},
                            {"std", colours(images.deviation)},
                            {"num_classes", config.classes},
                            {"pool_size", nullptr},
                            {"first_conv", "patch_embed.proj"},
                            {"classifier", "head"}};
  json[own_key] = config_json(config);
  return json;
}

}  // namespace

std::filesystem::path timm_config_path(const std::filesystem::path& weights) {
  std::filesystem::path name = weights.filename();
  if (name == std::string("model") + extension) return weights.parent_path() / "config.json";
  if (name.extension() == extension) name.replace_extension();
  return weights.parent_path() / (name += ".config.json");
}

std::optional<TimmConfig> timm_config_beside(const std::filesystem::path& weights, std::string& not_read) {
  std::filesystem::path path = timm_config_path(weights);
  if (!is_file(path)) {
    const std::filesystem::path own = path.filename();
    path.replace_filename("config.json");
    if (!is_file(path)) return {};
    if (has_other_weights(weights)) {
      not_read = path.string() + " is not read, as other files with weights lie beside it; as " + own.string() +
                 " it would be that of " + weights.filename().string();
      return {};
    }
  }
  const std::optional<Json> json = read_document(path);
  if (!json) {
    not_read = path.string() + " is not read, as it names no architecture of timm";
    return {};
  }
  const Reader reader(path.string());
  const Json* own = find(*json, own_key);
  return TimmConfig{
      path, own != nullptr,
      own == nullptr ? record_of(*json, reader) : config_of_json(*own, path.string() + ": its " + own_key),
      images_of(*json, reader)};
}

void check_timm_config_free(const std::filesystem::path& weights) {
  const std::filesystem::path path = timm_config_path(weights);
  std::error_code code;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, code))) return;
  bool own = false;
  try {
    const std::optional<Json> json = is_file(path) ? read_document(path) : std::nullopt;
    own = json && find(*json, own_key) != nullptr;
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): then it is another's, too
  }
  if (!own)
    throw Error(path.string() + " would be overwritten, and it was not written by sylvit",
                "move it away, or give the weights another name than " + weights.filename().string());
}

void write_timm_config(const std::filesystem::path& weights, const VitConfig& config, const ImageTransform& images) {
  check_timm_config_free(weights);
  const std::string text = timm_json(config, images).dump(2) + "\n";
  base::TemporaryFile file(timm_config_path(weights));
  file.write(std::as_bytes(std::span(text)));
  file.flush();
  file.rename_into_place();
}

}  // namespace sylvit::vit
