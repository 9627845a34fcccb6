#include "cli/ran.hpp"

#include <sylvit/version.hpp>

#include "vit/config_json.hpp"

namespace sylvit::cli {

using Json = nlohmann::ordered_json;

Json as_json(const std::array<float, 3>& values) {
  return {vit::shortest(values[0]), vit::shortest(values[1]), vit::shortest(values[2])};
}

Json what_ran(const VitModel& model, const VitConfig& config, DType dtype, const Device& device,
              const std::set<std::string>& providers, const TransformOptions* images) {
  Json json{{"sylvit", sylvit::version}, {"model", model.name()}};
  if (model.file().empty())
    json["seed"] = model.seed();
  else
    json["weights"] = model.file();
  json["score"] = name_of(config.score);
  // softmax has none.
  json["alpha"] = config.score == Score::softmax ? Json() : Json(vit::shortest(config.alpha));
  json["dtype"] = name_of(dtype);
  if (images != nullptr) {
    const sylvit::ImageTransform transform = model.transform(*images);
    json["image_size"] = transform.size;
    json["mean"] = as_json(transform.mean);
    json["std"] = as_json(transform.deviation);
    json["crop_pct"] = transform.crop_pct;
    json["interpolation"] = "bicubic";
  }
  json["device"] = device.name();
  json["toolchain"] = name_of(device.info().toolchain);
  json["providers"] = providers;
  json["configuration"] = vit::config_json(config);
  json["assumed"] = Json::array();
  for (const Assumption& one : model.assumed(images)) json["assumed"].push_back(one.name);
  return json;
}

std::string as_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sylvit::cli
