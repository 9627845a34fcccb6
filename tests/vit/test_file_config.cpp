// What travels with weights: metadata, timm's config.json, and what is made of both and the tensors.
#include <sylvit/weights.hpp>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "support.hpp"
#include "vit/file_config.hpp"
#include "vit/init.hpp"
#include "vit/tiny.hpp"

using namespace sylvit;
using sylvit::test::check_error;
using sylvit::test::TemporaryDirectory;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// No member is as by default.
VitConfig unusual() {
  return {.width = 48,
          .depth = 2,
          .heads = 2,
          .mlp = 80,
          .patch = 4,
          .image_height = 12,
          .image_width = 8,
          .channels = 1,
          .classes = 7,
          .score = Score::relu,
          .alpha = 0.7F,
          .divisor = 30.5F,
          .qk_norm = true,
          .gate = true,
          .head_scale = true,
          .head_alpha = true,
          .pooling = Pooling::average,
          .class_token = false,
          .norm_after_pooling = true,
          .positions = Positions::sincos,
          .gelu_tanh = true,
          .norm_epsilon = 3e-5F};
}

io::SafetensorsMetadata metadata_with(const std::string& text) { return {{"sylvit.config", text}}; }

/// A square model's weights.
VitConfig square() {
  return test::tiny_vit([](VitConfig& c) { c.image_height = c.image_width = 8; });
}

std::string write_weights(const fs::path& path, const VitConfig& config, const io::SafetensorsMetadata& metadata = {}) {
  const std::vector<VitParameter> parameters = vit_parameters(config);
  const std::vector<std::vector<float>> values = vit::initial_parameters(config, 1);
  std::vector<io::OutputTensor> tensors;
  for (std::size_t i = 0; i < values.size(); ++i)
    tensors.push_back({parameters[i].name, DType::f32, parameters[i].shape, std::as_bytes(std::span(values[i]))});
  io::write_safetensors(path, tensors, metadata);
  return path;
}

void write_text(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

vit::FileConfig told(const fs::path& path) { return vit::file_config(io::WeightsFile::open(path), path); }

/// The configuration's JSON with a member as it is given.
std::string changed(const VitConfig& config, const char* member, const Json& value) {
  Json json = vit::config_json(config);
  json[member] = value;
  return json.dump();
}

const std::string timm_text = R"({"architecture": "vit_tiny_patch4_224", "num_classes": 7, "num_features": 48,
  "model_args": {"embed_dim": 48, "depth": 2, "num_heads": 2, "mlp_ratio": 1.6770833333333333, "patch_size": 4},
  "label_names": [[[["deep"]]]],
  "pretrained_cfg": {"input_size": [3, 8, 8], "interpolation": "bilinear", "crop_pct": 0.95, "crop_mode": "center",
    "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "num_classes": 7}})";

}  // namespace

TEST_SUITE("vit/file_config") {
  TEST_CASE("every member of a configuration comes back from metadata") {
    for (const VitConfig& config : {VitConfig(), unusual(), square()}) {
      const std::optional<vit::ConfigRecord> back =
          vit::config_of_metadata(vit::config_metadata(config), "w.safetensors");
      REQUIRE(back);
      CHECK(back->config == config);
      CHECK(back->told.size() == vit::config_members().size());
    }
    const VitConfig usual;
    for (const vit::ConfigMember& member : vit::config_members()) {
      CAPTURE(member.name);
      CHECK(!member.is_same(usual, unusual()));
    }
    // As short as can be: 0.7 is not 0.699999988079071.
    CHECK(vit::config_metadata(unusual()).at("sylvit.config").find("\"alpha\":0.7,") != std::string::npos);
    CHECK(vit::config_metadata(unusual()).at("format") == "pt");
    CHECK(!vit::config_of_metadata({{"format", "pt"}}, "w.safetensors"));
  }

  TEST_CASE("a custom score travels by name") {
    VitConfig config = square();
    config.score = Score::custom;
    Json json = vit::config_json(config);
    json["custom_score"] = "Squareplus";
#if defined(SYLVIT_TOOLCHAIN_RTC)
    config.custom_score = CustomScore("Squareplus", "struct Squareplus {};");
    CHECK(vit::config_json(config) == json);
#endif
    const TemporaryDirectory directory;
    const std::string path = write_weights(directory.path() / "w.safetensors", square(), metadata_with(json.dump()));
    const VitWeights weights(path);
    CHECK(weights.guess().score == Score::custom);
    CHECK(weights.custom_score() == "Squareplus");
    CHECK(weights.contradiction(square()) ==
          "score softmax contradicts " + path + ", which was written for custom Squareplus");
    check_error([&] { weights.guess().check(); }, {"no custom_score"});
#if defined(SYLVIT_TOOLCHAIN_RTC)
    CHECK(weights.contradiction(config).empty());
    config.custom_score = CustomScore("Cube", "struct Cube {};");
    CHECK(!weights.contradiction(config).empty());
#endif
    json["custom_score"] = "; rm";
    check_error([&] { vit::config_of_json(json, "w"); }, {"custom_score", "identifier"});
    json.erase("custom_score");
    check_error([&] { vit::config_of_json(json, "w"); }, {"the score custom and no custom_score"});
  }

  TEST_CASE("damaged, hostile and strange metadata is one sentence") {
    const TemporaryDirectory directory;
    const auto refused = [&](const std::string& text, std::initializer_list<std::string> parts) {
      CAPTURE(text.substr(0, 200));
      const std::string path = write_weights(directory.path() / "w.safetensors", square(), metadata_with(text));
      check_error([&] { told(path); }, parts);
      check_error([&] { told(path); }, {"w.safetensors"});
      try {
        VitWeights(path).guess();
      } catch (const Error& error) {
        const std::string sentence = error.what();
        CHECK(sentence.size() < 400 + path.size() * 2);
        CHECK(std::ranges::all_of(sentence, [](unsigned char c) { return c >= 0x20; }));
      }
    };
    const VitConfig config = square();
    refused("", {"sylvit.config", "not valid JSON"});
    refused("{", {"not valid JSON near byte 2"});
    refused("[]", {"no JSON object"});
    refused("null", {"no JSON object"});
    refused("{}", {"no version"});
    refused(R"({"version":1} x)", {"not valid JSON"});
    refused(std::string("{\"version\":1}\0", 14), {"near byte 13"});
    refused(std::string(60'000, '['), {"nested deeper"});
    refused("{\"version\":1,\"x\":" + std::string(30'000, '[') + std::string(30'000, ']') + "}", {"nested deeper"});
    refused("{\"version\":1,\"x\":\"" + std::string(100'000, 'x') + "\"}", {"bytes long", "65536"});
    refused(changed(config, "version", 2), {"version 2", "reads version 1", "newer"});
    refused(changed(config, "version", "1"), {"the version \"1\""});
    refused(changed(config, "layer_scale\x1b[2J", true), {"\"layer_scale\\x1b[2J\"", "not known here", "newer"});
    refused(changed(config, "width", -48), {"width -48", "width 48"});
    refused(changed(config, "width", 48.5), {"width 48.5", "whole number"});
    refused(changed(config, "heads", std::uint64_t{1} << 63U), {"heads 9223372036854775808", "whole number"});
    refused(changed(config, "heads", 0), {"heads is 0"});
    refused(changed(config, "patch", 0), {"patch 0", "patch 4"});
    refused(changed(config, "depth", 1 << 20), {"depth 1048576", "depth 2"});
    refused(changed(config, "image_height", 1 << 20), {"1048576 x 8", "pos_embed", "[1, 5, 48]"});
    refused(changed(config, "classes", "many"), {"classes \"many\"", "whole number"});
    refused(changed(config, "alpha", 3), {"alpha is 3"});
    refused(changed(config, "alpha", 1e300), {"alpha 1e+300", "f32"});
    refused(R"({"version":1,"alpha":1e999})", {"out of range"});
    refused(changed(config, "alpha", nullptr), {"alpha null", "number"});
    refused(changed(config, "norm_epsilon", 1e-60), {"epsilon must be positive"});
    refused(changed(config, "gate", 1), {"gate 1", "true or false"});
    refused(changed(config, "gate", Json::array({1})), {"gate an array"});
    refused(changed(config, "score", "rely"), {"no score \"rely\"", "did you mean relu?"});
    refused(changed(config, "score", "custom"), {"no custom_score"});
    refused(changed(config, "score", 7), {"score 7", "a name"});
    refused(changed(config, "pooling", "max"), {"no pooling \"max\"", "tok, gap, map"});
    refused(changed(config, "positions", "rope"), {"no positions \"rope\""});
    // The writer refuses such bytes, so they go past it.
    check_error([] { vit::config_of_metadata(metadata_with("{\"version\":1,\"\xff\":1}"), "w.safetensors"); },
                {"w.safetensors", "not valid JSON near byte 15"});
    // What contradicts the tensors.
    refused(changed(config, "depth", 3), {"depth 3", "depth 2", "another model"});
    refused(changed(config, "width", 96), {"width 96", "width 48"});
    refused(changed(config, "classes", 8), {"classes 8", "classes 7"});
    refused(changed(config, "qk_norm", true), {"qk_norm true", "qk_norm false"});
    refused(changed(config, "gate", true), {"gate true", "gate false"});
    refused(changed(config, "pooling", "map"), {"pooling map"});
    refused(changed(config, "positions", "sincos"), {"positions sincos", "positions learned"});
    refused(changed(config, "image_width", 12), {"8 x 12", "pos_embed"});
    // What an earlier version does not know is as without it.
    const std::string path =
        write_weights(directory.path() / "w.safetensors", config, metadata_with(R"({"version":1,"score":"relu"})"));
    CHECK(told(path).config.score == Score::relu);
    CHECK(told(path).origin("score") == vit::Origin::metadata);
    CHECK(told(path).origin("heads") == vit::Origin::assumed);
    CHECK(told(path).origin("width") == vit::Origin::tensors);
  }

  TEST_CASE("what a file says goes before what tensors say and what is assumed") {
    const TemporaryDirectory directory;
    VitConfig config = square();
    config.score = Score::relu;
    config.alpha = 0.5F;
    config.heads = 2;
    config.gelu_tanh = true;
    const std::string path = write_weights(directory.path() / "w.safetensors", config, vit::config_metadata(config));
    const VitWeights weights(path);
    CHECK(weights.guess() == config);
    CHECK(weights.contradiction(config).empty());
    VitConfig larger = config;
    larger.image_height = larger.image_width = 16;
    CHECK(weights.contradiction(larger).empty());
    VitConfig softmax = config;
    softmax.score = Score::softmax;
    CHECK(weights.contradiction(softmax) == "score softmax contradicts " + path + ", which was written for relu");
    VitConfig other_alpha = config;
    other_alpha.alpha = 1;
    CHECK(weights.contradiction(other_alpha) == "alpha 1.0 contradicts " + path + ", which was written for alpha 0.5");
    VitParameters parameters(test::device(), softmax, DType::f32);
    const std::vector<float> before = parameters.values().read("head.weight");
    check_error([&] { weights.load(parameters); }, {"score softmax contradicts", "Contradictions::allowed"});
    CHECK(parameters.values().read("head.weight") == before);
    CHECK(!weights.load(parameters, Contradictions::allowed));
    CHECK(parameters.values().read("head.weight") != before);

    // Without metadata everything but shapes is as by default, and nothing contradicts.
    const VitWeights bare(write_weights(directory.path() / "bare.safetensors", config));
    VitConfig guessed = square();
    guessed.heads = 1;
    CHECK(bare.guess() == guessed);
    CHECK(bare.contradiction(softmax).empty());
  }

  TEST_CASE("timm's config.json says what its words say") {
    const TemporaryDirectory directory;
    const fs::path path = directory.path() / "model.safetensors";
    write_weights(path, square());
    CHECK(told(path).origin("score") == vit::Origin::assumed);
    write_text(directory.path() / "config.json", timm_text);
    const vit::FileConfig of_timm = told(path);
    CHECK(of_timm.not_read == "");
    CHECK(of_timm.config.heads == 2);
    CHECK(of_timm.origin("heads") == vit::Origin::config_json);
    // No architecture of ours.
    CHECK(of_timm.origin("score") == vit::Origin::assumed);
    CHECK(of_timm.images.mean == std::array{0.485F, 0.456F, 0.406F});
    CHECK(of_timm.images.deviation == std::array{0.229F, 0.224F, 0.225F});
    CHECK(of_timm.images.crop_pct == 0.95);
    CHECK(of_timm.images.interpolation == "bilinear");

    const auto with = [&](const auto& change) {
      Json json = Json::parse(timm_text);
      json["architecture"] = "vit_tiny_patch16_224";
      change(json);
      write_text(directory.path() / "config.json", json.dump());
      return told(path);
    };
    const vit::FileConfig known = with([](Json&) {});
    for (const char* member : {"score", "gelu_tanh", "norm_epsilon", "heads", "mlp"})
      CHECK(known.origin(member) == vit::Origin::config_json);
    CHECK(known.config.mlp == 80);
    CHECK(known.config.score == Score::softmax);
    CHECK(!known.config.gelu_tanh);
    CHECK(known.origin("pooling") == vit::Origin::assumed);
    CHECK(with([](Json& json) { json["model_args"]["act_layer"] = "gelu_tanh"; }).config.gelu_tanh);
    CHECK(with([](Json& json) { json["model_args"]["norm_layer"] = "layernormfp32"; }).origin("norm_epsilon") ==
          vit::Origin::assumed);
    CHECK(with([](Json& json) { json["global_pool"] = "avg"; }).config.pooling == Pooling::average);
    // The older form.
    const vit::FileConfig older = with([](Json& json) {
      const Json inner = json["pretrained_cfg"];
      json.erase("pretrained_cfg");
      json.update(inner);
    });
    CHECK(older.images.crop_pct == 0.95);
    CHECK(with([](Json& json) { json["pretrained_cfg"]["mean"] = {0.5}; }).images.mean == std::nullopt);

    // Of another model: it counts for nothing, and that is said.
    const vit::FileConfig other = with([](Json& json) { json.erase("model_args"); });
    CHECK(other.origin("heads") == vit::Origin::assumed);
    CHECK(!other.images.mean);
    test::check_contains(other.not_read, {"config.json says width 192", "width 48", "does not count"});
    CHECK(with([](Json& json) { json.erase("architecture"); }).not_read.find("no architecture of timm") !=
          std::string::npos);

    const auto refused = [&](const auto& change, std::initializer_list<std::string> parts) {
      check_error([&] { with(change); }, {"config.json"});
      check_error([&] { with(change); }, parts);
    };
    refused([](Json& json) { json["model_args"]["act_layer"] = "quick_gelu"; }, {"quick_gelu", "gelu_tanh"});
    refused([](Json& json) { json["model_args"]["num_heads"] = -1; }, {"num_heads", "-1"});
    refused([](Json& json) { json["model_args"]["num_heads"] = 1.5; }, {"num_heads", "whole number"});
    refused([](Json& json) { json["pretrained_cfg"]["crop_pct"] = 0; }, {"crop_pct", "0.01 to 1"});
    refused([](Json& json) { json["pretrained_cfg"]["std"] = {1, 0, 1}; }, {"std"});
    refused([](Json& json) { json["pretrained_cfg"]["mean"] = "0.5"; }, {"mean", "list of numbers"});
    for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
             {"{\"architecture\": ", "not valid JSON"},
             {std::string(100'000, '['), "nested deeper"},
             {"\x89PNG", "not valid JSON"},
             {R"({"architecture": "vit_tiny_patch16_224", "sylvit": 1})", "no JSON object"},
             {R"({"architecture": "vit_tiny_patch16_224", "sylvit": {"version": 9}})", "version 9"}}) {
      write_text(directory.path() / "config.json", text);
      check_error([&] { told(path); }, {"config.json", part});
    }
    write_text(directory.path() / "config.json", R"({"model_type": "vit", "architectures": ["ViTModel"]})");
    CHECK(told(path).not_read.find("no architecture of timm") != std::string::npos);
    write_text(directory.path() / "config.json", "[1]");
    CHECK(told(path).origin("heads") == vit::Origin::assumed);
  }

  TEST_CASE("config.json of a folder with several weights counts for model.safetensors alone") {
    const TemporaryDirectory directory;
    const fs::path one = directory.path() / "one.safetensors";
    write_weights(one, square());
    write_text(directory.path() / "config.json", timm_text);
    CHECK(told(one).config.heads == 2);
    write_weights(directory.path() / "model.safetensors", square());
    CHECK(told(one).config.heads == 1);
    test::check_contains(told(one).not_read, {"config.json is not read", "one.config.json"});
    CHECK(told(directory.path() / "model.safetensors").config.heads == 2);
    fs::rename(directory.path() / "config.json", directory.path() / "one.config.json");
    CHECK(told(one).config.heads == 2);
    CHECK(told(one).not_read.empty());
    // What is no file is not there.
    REQUIRE(mkfifo((directory.path() / "config.json").c_str(), 0600) == 0);
    CHECK(told(directory.path() / "model.safetensors").config.heads == 1);
  }

  TEST_CASE("a config.json is written in timm's form, and never over another's") {
    const TemporaryDirectory directory;
    CHECK(vit::timm_config_path("a/model.safetensors") == "a/config.json");
    CHECK(vit::timm_config_path("a/w.v1.safetensors") == "a/w.v1.config.json");
    CHECK(vit::timm_config_path("w") == "w.config.json");
    CHECK(vit::timm_config_path("w.npz") == "w.npz.config.json");

    const fs::path path = directory.path() / "model.safetensors";
    const fs::path json_path = directory.path() / "config.json";
    const auto written = [&](const VitConfig& config) {
      vit::write_timm_config(path, config, {.crop_pct = 0.95, .mean = {0.485F, 0.456F, 0.406F}});
      return Json::parse(test::read_file(json_path));
    };
    const Json plain = written(VitConfig());
    CHECK(plain["architecture"] == "vit_small_patch16_224");
    CHECK(!plain.contains("model_args"));
    CHECK(plain["num_features"] == 384);
    CHECK(plain["num_classes"] == 1000);
    CHECK(plain["global_pool"] == "token");
    CHECK(plain["pretrained_cfg"]["mean"] == Json({0.485, 0.456, 0.406}));
    CHECK(plain["pretrained_cfg"]["crop_pct"] == 0.95);
    CHECK(plain["pretrained_cfg"]["input_size"] == Json({3, 224, 224}));
    CHECK(plain["pretrained_cfg"]["interpolation"] == "bicubic");
    VitConfig tiny = test::tiny_vit();
    tiny.pooling = Pooling::average;
    tiny.class_token = false;
    tiny.gelu_tanh = true;
    const Json arguments = written(tiny)["model_args"];
    CHECK(arguments == Json::parse(R"({"patch_size": 4, "embed_dim": 48, "depth": 2, "num_heads": 3,
      "mlp_ratio": 1.6666666666666667, "img_size": [12, 8], "act_layer": "gelu_tanh", "class_token": false,
      "global_pool": "avg", "fc_norm": false})"));
    // timm takes int(width * ratio).
    for (std::int64_t mlp = 1; mlp < 400; ++mlp) {
      tiny.mlp = mlp;
      const Json of_mlp = written(tiny)["model_args"];
      if (of_mlp.contains("mlp_ratio")) CHECK(static_cast<std::int64_t>(48 * of_mlp["mlp_ratio"].get<double>()) == mlp);
    }
    // What timm does not compute, it is not told to.
    for (const auto& change : std::vector<std::function<void(VitConfig&)>>{
             [](VitConfig& c) { c.score = Score::relu; }, [](VitConfig& c) { c.gate = true; },
             [](VitConfig& c) { c.head_scale = true; }, [](VitConfig& c) { c.positions = Positions::sincos; },
             [](VitConfig& c) { c.norm_epsilon = 1e-5F; }}) {
      const VitConfig config = test::tiny_vit(change);
      const Json json = written(config);
      CHECK(json["architecture"] == "sylvit_vit");
      CHECK(vit::config_of_json(json["sylvit"], "it").config == config);
    }

    // Metadata that was lost on the way is made up for.
    VitConfig relu = square();
    relu.score = Score::relu;
    write_weights(path, relu);
    written(relu);
    CHECK(told(path).config == relu);
    CHECK(told(path).origin("score") == vit::Origin::config_json);
    CHECK(VitWeights(path).contradiction(square()) ==
          "score softmax contradicts " + json_path.string() + ", which was written for relu");
    // One that speaks of other weights is damage, not a guess.
    relu.depth = 3;
    written(relu);
    check_error([&] { told(path); }, {"config.json", "depth 3", "depth 2"});

    for (const std::string text : {R"({"architecture": "vit_tiny_patch16_224"})", "no JSON", ""}) {
      write_text(json_path, text);
      check_error([&] { vit::check_timm_config_free(path); }, {"config.json", "not written by sylvit", "move it"});
      check_error([&] { vit::write_timm_config(path, square()); }, {"not written by sylvit"});
      CHECK(test::read_file(json_path) == text);
    }
    fs::remove(json_path);
    fs::create_symlink("nowhere", json_path);
    check_error([&] { vit::check_timm_config_free(path); }, {"not written by sylvit"});
  }
}
