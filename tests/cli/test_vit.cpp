#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "io/npz_writer.hpp"
#include "io/safetensors.hpp"
#include "reference/vit.hpp"
#include "support.hpp"
#include "vit/headless.hpp"
#include "vit/tiny.hpp"
#include "vit/weights.hpp"

using namespace sylvit;
using sylvit::test::run_sylvit;
using sylvit::test::TemporaryDirectory;

namespace {

const std::string tiny = test::tiny_vit_options;

VitConfig tiny_config() {
  return test::tiny_vit([](VitConfig& c) { c.image_height = c.image_width = 8; });
}

std::vector<float> normal_numbers(std::size_t count) {
  std::mt19937 generator(3);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

/// Images [3, 3, side, side] and labels.
std::string write_input(const TemporaryDirectory& directory, std::int64_t side, std::vector<std::int64_t> labels) {
  const std::string path = directory.path() / ("in" + std::to_string(side) + ".safetensors");
  const std::vector<float> images = normal_numbers(static_cast<std::size_t>(3 * 3 * side * side));
  const std::vector<io::OutputTensor> tensors{
      {"images", DType::f32, Shape{3, 3, side, side}, std::as_bytes(std::span(images))},
      {"labels", DType::i64, Shape{static_cast<std::int64_t>(labels.size())}, std::as_bytes(std::span(labels))}};
  io::write_safetensors(path, tensors);
  return path;
}

double difference(const std::vector<float>& got, const std::vector<double>& expected) {
  double error = 0;
  double size = 1e-6;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error = std::max(error, std::abs(static_cast<double>(got[i]) - expected[i]));
    size = std::max(size, std::abs(expected[i]));
  }
  return got.size() == expected.size() ? error / size : HUGE_VAL;
}

/// The program fails with one sentence that has these parts, and writes nothing.
void check_refused(const std::string& arguments, const std::string& output, std::initializer_list<std::string> parts,
                   int exit_code = 1) {
  const auto result = run_sylvit(arguments);
  CAPTURE(arguments);
  CAPTURE(result.errors);
  CHECK(result.exit_code == exit_code);
  CHECK(std::count(result.errors.begin(), result.errors.end(), '\n') == 1);
  for (const std::string& part : parts) CHECK(result.errors.find(part) != std::string::npos);
  CHECK(!std::filesystem::exists(output));
}

/// The weights of a file, as big_vision would have saved them: [out, in] becomes [in, out], heads get an axis.
std::string as_npz(const std::string& weights, const VitConfig& config) {
  const io::SafetensorsFile file = io::SafetensorsFile::open(weights);
  const std::int64_t w = config.width;
  const std::int64_t h = config.heads;
  std::vector<std::pair<std::string, std::string>> members;
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape,
                       const std::vector<float>& values) {
    members.emplace_back("params/" + name, test::npy_f32(shape, values));
  };
  const auto same = [&](const std::string& name, const std::string& from, const std::vector<std::int64_t>& shape) {
    add(name, shape, file.read_f32(from, Shape(shape)));
  };
  /// So many rows of a weight, transposed, and of its bias.
  const auto linear = [&](const std::string& name, const std::string& from, std::int64_t first, std::int64_t out,
                          const std::vector<std::int64_t>& kernel, const std::vector<std::int64_t>& bias) {
    const std::vector<float> values = file.read_f32(from + ".weight");
    const std::vector<float> biases = file.read_f32(from + ".bias");
    const std::int64_t in = file.at(from + ".weight").shape[1];
    std::vector<float> transposed;
    for (std::int64_t i = 0; i < in; ++i)
      for (std::int64_t o = first; o < first + out; ++o)
        transposed.push_back(values[static_cast<std::size_t>(o * in + i)]);
    add(name + "/kernel", kernel, transposed);
    add(name + "/bias", bias, {biases.begin() + first, biases.begin() + first + out});
  };
  const auto norm = [&](const std::string& name, const std::string& from) {
    same(name + "/scale", from + ".weight", {w});
    same(name + "/bias", from + ".bias", {w});
  };
  same("cls", "cls_token", {1, 1, w});
  same("pos_embedding", "pos_embed", {1, config.tokens(), w});
  const std::vector<float> patches = file.read_f32("patch_embed.proj.weight");
  std::vector<float> kernel;
  for (std::int64_t position = 0; position < config.patch * config.patch; ++position)
    for (std::int64_t channel = 0; channel < 3; ++channel)
      for (std::int64_t out = 0; out < w; ++out)
        kernel.push_back(
            patches[static_cast<std::size_t>((out * 3 + channel) * config.patch * config.patch + position)]);
  add("embedding/kernel", {config.patch, config.patch, 3, w}, kernel);
  same("embedding/bias", "patch_embed.proj.bias", {w});
  for (std::int64_t block = 0; block < config.depth; ++block) {
    const std::string name = "Transformer/encoderblock_" + std::to_string(block) + "/";
    const std::string from = "blocks." + std::to_string(block) + ".";
    const std::string attention = name + "MultiHeadDotProductAttention_0/";
    norm(name + "LayerNorm_0", from + "norm1");
    norm(name + "LayerNorm_1", from + "norm2");
    std::int64_t first = 0;
    for (const char* part : {"query", "key", "value"}) {
      linear(attention + part, from + "attn.qkv", first, w, {w, h, w / h}, {h, w / h});
      first += w;
    }
    linear(attention + "out", from + "attn.proj", 0, w, {h, w / h, w}, {w});
    linear(name + "MlpBlock_0/Dense_0", from + "mlp.fc1", 0, config.mlp, {w, config.mlp}, {config.mlp});
    linear(name + "MlpBlock_0/Dense_1", from + "mlp.fc2", 0, w, {config.mlp, w}, {w});
  }
  norm("Transformer/encoder_norm", "norm");
  linear("head", "head", 0, config.classes, {w, config.classes}, {config.classes});
  return test::npz_of(members, true);
}

}  // namespace

TEST_SUITE("cli/vit") {
  TEST_CASE("init, info and run agree with each other and with the reference") {
    const TemporaryDirectory directory;
    const std::string weights = directory.path() / "w.safetensors";
    const std::string out = directory.path() / "out.safetensors";
    const std::string in = write_input(directory, 8, {4, 0, 2});
    REQUIRE(run_sylvit("init " + tiny + " --image-size 8 --seed 5 --output " + weights).exit_code == 0);
    const auto info = run_sylvit("info " + weights + " --list");
    CHECK(info.exit_code == 0);
    CHECK(info.output.find("width 48, depth 2") != std::string::npos);
    CHECK(info.output.find("blocks.1.attn.qkv.weight") != std::string::npos);

    const auto run =
        run_sylvit("run vit " + tiny + " --weights " + weights + " --input " + in + " --output " + out + " --backward");
    CAPTURE(run.errors);
    REQUIRE(run.exit_code == 0);
    const io::SafetensorsFile file = io::SafetensorsFile::open(weights);
    const io::SafetensorsFile result = io::SafetensorsFile::open(out);
    const VitConfig config = tiny_config();
    reference::VitTensors parameters;
    for (const VitParameter& parameter : vit_parameters(config)) {
      const std::vector<float> values = file.read_f32(parameter.name, parameter.shape);
      parameters[parameter.name] = {values.begin(), values.end()};
    }
    const std::vector<float> images = io::SafetensorsFile::open(in).read_f32("images");
    reference::VitLoss loss;
    loss.labels = {4, 0, 2};
    const auto expected = reference::vit_backward(config, parameters, {images.begin(), images.end()}, loss);
    CHECK(difference(result.read_f32("logits", Shape{3, 7}), expected.logits) < 1e-4);
    CHECK(std::abs(static_cast<double>(result.read_f32("loss").front()) - expected.loss) < 1e-4);
    for (const VitParameter& parameter : vit_parameters(config)) {
      CAPTURE(parameter.name);
      const std::vector<float> got = result.read_f32("grad." + parameter.name, parameter.shape);
      // The gradient of the keys' bias is zero but for rounding.
      if (parameter.name.find("qkv.bias") == std::string::npos)
        CHECK(difference(got, expected.gradients.at(parameter.name)) < 1e-3);
    }
    // The seed alone gives the same model.
    const std::string again = directory.path() / "again.safetensors";
    REQUIRE(run_sylvit("run vit " + tiny + " --seed 5 --input " + in + " --output " + again).exit_code == 0);
    CHECK(io::SafetensorsFile::open(again).read_f32("logits") == result.read_f32("logits"));
  }

  TEST_CASE("weights of another image size are interpolated, those of another model refused") {
    const TemporaryDirectory directory;
    const std::string weights = directory.path() / "w.safetensors";
    const std::string out = directory.path() / "out.safetensors";
    const std::string in = write_input(directory, 12, {0, 1, 2});
    REQUIRE(run_sylvit("init " + tiny + " --image-size 8 --output " + weights).exit_code == 0);
    const std::string rest = " --weights " + weights + " --input " + in + " --output " + out;
    const std::string any = rest + " --override";
    check_refused("run vit " + tiny + " --gate" + any, out, {"blocks.0.attn.gate.weight"});
    const std::string other = "--width 48 --heads 3 --patch 4 ";
    check_refused("run vit " + other + "--depth 2 --mlp 96" + any, out,
                  {"blocks.0.mlp.fc1.weight", "[80, 48]", "[96, 48]"});
    check_refused("run vit " + other + "--depth 1 --mlp 80" + any, out, {"blocks.1."});
    check_refused("run vit " + tiny + " --image-size 16" + rest, out, {"12 x 12", "16"});
    check_refused("run vit " + tiny + " --channels 1" + any, out, {"3 channels", "takes 1"});
    check_refused("run vit " + other + "--depth 2 --mlp 80 --classes 5" + any, out,
                  {"head.weight", "[7, 48]", "[5, 48]"});
    check_refused("run vit " + tiny + " --weights " + in + " --input " + in + " --output " + out, out,
                  {"in12.safetensors", "no Vision Transformer"});
    const std::string empty = directory.path() / "empty.safetensors";
    const float one = 1;
    const std::span<const std::byte> number = std::as_bytes(std::span(&one, 1));
    io::write_safetensors(empty,
                          std::vector<io::OutputTensor>{{"patch_embed.proj.weight", DType::f32, Shape{0, 3, 0, 0}, {}},
                                                        {"blocks.0.attn.qkv.weight", DType::f32, Shape{1, 1}, number},
                                                        {"blocks.0.mlp.fc1.weight", DType::f32, Shape{1, 1}, number}});
    check_refused("run vit " + tiny + " --weights " + empty + " --input " + in + " --output " + out, out,
                  {"empty.safetensors", "patch_embed.proj.weight", "it is empty"});
    CHECK(run_sylvit("info " + empty).exit_code == 0);
    check_refused("run vit --model S/61" + rest, out, {"S/61", "known models"}, 2);
    check_refused("run vit --model vit_smal_patch16_224" + rest, out, {"did you mean vit_small_patch16_224?"}, 2);
    const auto run = run_sylvit("run vit " + tiny + rest);
    CHECK(run.exit_code == 0);
    CHECK(run.errors.find("interpolated to 3 x 3") != std::string::npos);
  }

  TEST_CASE("the file says which model it is, run vit writes what ran, info says where it comes from") {
    const TemporaryDirectory directory;
    const std::string weights = directory.path() / "w.safetensors";
    const std::string out = directory.path() / "out.safetensors";
    const std::string none = directory.path() / "none.safetensors";
    const std::string in = write_input(directory, 8, {0, 1, 2});
    const std::string model = tiny + " --image-size 8 --score relu --alpha 0.5";
    REQUIRE(run_sylvit("init " + model + " --seed 5 --output " + weights).exit_code == 0);
    const std::string files = " --input " + in + " --output ";
    const auto alone = run_sylvit("run vit --weights " + weights + files + out);
    CAPTURE(alone.errors);
    REQUIRE(alone.exit_code == 0);
    CHECK(alone.errors.empty());
    const std::vector<float> logits = io::SafetensorsFile::open(out).read_f32("logits");
    const auto ran = nlohmann::json::parse(io::SafetensorsFile::open(out).metadata().at("sylvit.run"));
    CHECK(ran["weights"] == weights);
    CHECK(ran["score"] == "relu");
    CHECK(ran["alpha"] == 0.5);
    CHECK(ran["dtype"] == "f32");
    CHECK(ran["device"].is_string());
    CHECK(!ran["providers"].empty());
    CHECK(ran["configuration"]["width"] == 48);
    CHECK(!ran.contains("mean"));
    CHECK(run_sylvit("info " + out).output.find("\"score\":\"relu\"") != std::string::npos);
    REQUIRE(run_sylvit("run vit " + model + " --seed 5 --backward" + files + out).exit_code == 0);
    CHECK(io::SafetensorsFile::open(out).read_f32("logits") == logits);
    const auto backward = nlohmann::json::parse(io::SafetensorsFile::open(out).metadata().at("sylvit.run"));
    CHECK(backward["seed"] == 5);
    CHECK(!backward["providers"].empty());
    check_refused("run vit --score softmax --weights " + weights + files + none, none,
                  {"--score softmax contradicts", "w.safetensors, which was written for relu", "--override"});
    const auto bench = run_sylvit("bench vit --seconds 0 --weights " + weights);
    CHECK(bench.output.find("width 48, depth 2, MLP 80, patch 4, 3 heads relu with alpha 0.5 forward") == 0);
    check_refused("bench vit --score softmax --weights " + weights, none, {"--score softmax contradicts"});

    const auto json = nlohmann::json::parse(run_sylvit("info --json --list " + weights).output);
    const auto& configuration = json.at("configuration");
    CHECK(configuration["score"] == nlohmann::json({{"value", "relu"}, {"from", "metadata"}}));
    CHECK(configuration["mean"]["from"] == "config.json");
    CHECK(json["list"].size() == json["tensors"]);
    const auto text = run_sylvit("info " + weights).output;
    CHECK(text.find("  score                relu             metadata\n") != std::string::npos);

    // A model with damage in its metadata is refused, and info says why.
    std::string bytes = test::read_file(weights);
    bytes.replace(bytes.find("relu"), 4, "rely");
    std::ofstream(weights, std::ios::binary) << bytes;
    check_refused("run vit --weights " + weights + files + none, none, {"w.safetensors", "no score \"rely\""});
    const auto info = run_sylvit("info " + weights);
    CHECK(info.exit_code == 0);
    CHECK(info.output.find("unknown: ") != std::string::npos);

    // Another's config.json stays, and then no weights are written either.
    const std::string folder = directory.path() / "model.safetensors";
    std::ofstream(directory.path() / "config.json") << "{}";
    check_refused("init " + tiny + " --output " + folder, folder, {"config.json", "not written by sylvit"});
    CHECK(test::read_file(directory.path() / "config.json") == "{}");
  }

  TEST_CASE("the same weights as an .npz of big_vision give the same logits") {
    const TemporaryDirectory directory;
    const std::string weights = directory.path() / "w.safetensors";
    const std::string npz = directory.path() / "w.npz";
    const std::string out = directory.path() / "out.safetensors";
    const std::string out_npz = directory.path() / "out-npz.safetensors";
    const std::string in = write_input(directory, 8, {0, 1, 2});
    REQUIRE(run_sylvit("init " + tiny + " --image-size 8 --seed 5 --output " + weights).exit_code == 0);
    std::ofstream(npz, std::ios::binary) << as_npz(weights, tiny_config());
    const auto info = run_sylvit("info " + npz + " --list");
    const std::string sizes = "width 48, depth 2, MLP 80, patch 4, 7 classes, images of 8 x 8";
    const std::string from_file = run_sylvit("info " + weights + " --list").output;
    CHECK(info.output.find(sizes) != std::string::npos);
    // The same tensors; where the configuration comes from is another matter.
    CHECK(info.output.substr(0, info.output.find("  width ")) == from_file.substr(0, from_file.find("  width ")));
    CHECK(vit::config_of_tensors(io::WeightsFile::open(npz)).config.heads == 3);

    REQUIRE(run_sylvit("run vit " + tiny + " --weights " + weights + " --input " + in + " --output " + out).exit_code ==
            0);
    const auto run = run_sylvit("run vit " + tiny + " --weights " + npz + " --input " + in + " --output " + out_npz);
    CAPTURE(run.errors);
    REQUIRE(run.exit_code == 0);
    CHECK(io::SafetensorsFile::open(out_npz).read_f32("logits", Shape{3, 7}) ==
          io::SafetensorsFile::open(out).read_f32("logits", Shape{3, 7}));

    const std::string none = directory.path() / "none.safetensors";
    const std::string two_heads = "--width 48 --depth 2 --heads 2 --mlp 80 --patch 4 --classes 7";
    check_refused("run vit " + two_heads + " --weights " + npz + " --input " + in + " --output " + none, none,
                  {"w.npz", "3 heads", "2"});
    std::filesystem::resize_file(npz, 1000);
    check_refused("run vit " + tiny + " --weights " + npz + " --input " + in + " --output " + none, none,
                  {"w.npz", "1000 bytes", "zip"});
  }

  TEST_CASE("a model without a head is refused by one sentence, whoever asks for it") {
    const TemporaryDirectory directory;
    const std::string out = directory.path() / "out.safetensors";
    const std::string input = " --input " + write_input(directory, 8, {0, 1, 2}) + " --output " + out;
    const std::string headless = test::write_headless(directory);
    const std::initializer_list<std::string> said{"0 classes", "num_classes=1", "features"};
    const std::string without = "--width 48 --depth 2 --heads 3 --mlp 80 --patch 4 --classes 0";
    check_refused("init " + without + " --image-size 8 --seed 1 --output " + out, out, said, 2);
    check_refused("run vit " + without + " --seed 1" + input, out, said);
    check_refused("bench vit " + without + " --image-size 8 --seconds 0.01", out, said, 2);
    const std::string sizes = "run vit --width 48 --depth 2 --heads 3 --mlp 80 --patch 4 --weights ";
    check_refused(sizes + headless + input, out, said);
    const auto info = run_sylvit("info " + headless);
    CHECK(info.exit_code == 0);
    CHECK(info.output.find(" 0 classes") != std::string::npos);
    // A head that is asked for must be in the file.
    check_refused("run vit " + tiny + " --weights " + headless + input, out, {"head.weight"});
  }

  TEST_CASE("bad images and labels get one sentence") {
    const TemporaryDirectory directory;
    const std::string out = directory.path() / "out.safetensors";
    const std::string start = "run vit " + tiny + " --seed 1 --output " + out + " --input ";
    check_refused(start + write_input(directory, 8, {0, 7, 1}) + " --backward", out, {"image 1", "7"});
    check_refused(start + write_input(directory, 8, {0, 1}) + " --backward", out, {"labels", "[2]", "[3]"});
    check_refused(start + write_input(directory, 2, {0, 1, 2}), out, {"2 x 2", "patch"});
    check_refused(start + write_input(directory, 10, {0, 1, 2}), out, {"10 x 10", "whole patches"});
    check_refused(start + write_input(directory, 8, {0, -1, 1}) + " --backward", out, {"image 1", "-1"});
    const std::string none = directory.path() / "none.safetensors";
    io::write_safetensors(none, std::vector<io::OutputTensor>{{"images", DType::f32, Shape{0, 3, 8, 8}, {}}});
    check_refused(start + none, out, {"none.safetensors", "[0, 3, 8, 8]", "no image"});
    check_refused(start + "/nonexistent.safetensors", out, {"nonexistent"});
    check_refused("run vit " + tiny + " --output " + out + " --input " + write_input(directory, 8, {0, 1, 2}), out,
                  {"--weights", "--seed"}, 2);
  }

  TEST_CASE("sizes that cannot be are one sentence, numbers that are none leave with 2") {
    const TemporaryDirectory directory;
    const std::string none = directory.path() / "none.safetensors";
    const std::string in = write_input(directory, 8, {0, 1, 2});
    for (const char* divisor : {"0", "-1", "1e-60", "1e60", "nan"})
      check_refused(
          "run vit " + tiny + " --seed 1 --score relu --input " + in + " --output " + none + " --divisor " + divisor,
          none, {"--divisor", "positive"}, 2);
    check_refused("init --width 1048576 --heads 4096 --depth 4096 --output " + none, none,
                  {"parameters", "this machine's memory"});
    check_refused("bench vit --width 1048576 --heads 4096 --depth 4096", none, {"cannot allocate", "the device has"});
    check_refused("init --depth 4097 --output " + none, none, {"depth is 4097", "1 to 4096"}, 2);
    check_refused("bench vit " + tiny + " --image-size 8 --batch 1000000000000", none,
                  {"cannot allocate", "the images", "the device has"});
    check_refused("bench vit " + tiny + " --image-size 8 --batch 9223372036854775807", none,
                  {"cannot allocate", "the images", "the device has"});
    for (const char* shape : {"1000000,1000000,1000000", "9223372036854775807,1,1", "60000000,60000000,1"})
      check_refused(std::string("bench gemm --shape ") + shape, none, {"cannot allocate", "the device has"});
    check_refused("bench gemm --shape 3037000500,3037000500,1", none, {"sylvit: "});
    for (const std::string wrong :
         {"init --seed -1 --output x", "init --seed 99999999999999999999 --output x",
          "init --width 9223372036854775808 --output x", "bench vit --seconds inf", "bench vit --batch 1e3",
          "bench gemm --seconds -1", "bench gemm --shape 1,2,99999999999999999999"})
      CHECK_MESSAGE(run_sylvit(wrong).exit_code == 2, wrong);
  }

  TEST_CASE("bench prints every key") {
    const auto result = run_sylvit("bench vit " + tiny + " --image-size 8 --batch 2 --pass train --seconds 0.1 --json");
    CAPTURE(result.errors);
    REQUIRE(result.exit_code == 0);
    for (const char* key : {"ms_best", "ms_median", "images_per_s", "gflops", "ceiling_gflops", "peak_bytes"})
      CHECK(result.output.find('"' + std::string(key) + '"') != std::string::npos);
    for (const char* word : {"backward", "forward_backward"}) {
      const auto both = run_sylvit("bench vit " + tiny + " --image-size 8 --seconds 0 --pass " + word);
      CHECK(both.output.find("softmax forward_backward, batch 8") != std::string::npos);
    }
    CHECK(run_sylvit("bench vit --pass sideways").exit_code == 2);
    const auto profile = run_sylvit("bench vit " + tiny + " --image-size 8 --seconds 0.1 --profile");
    CHECK(profile.output.find("blocks.*.mlp.fc1") != std::string::npos);
    CHECK(profile.output.find("width 48, depth 2, MLP 80, patch 4, 3 heads softmax forward") == 0);
    const auto both = run_sylvit("bench vit " + tiny + " --image-size 8 --seconds 0.1 --profile --json");
    const auto layers = nlohmann::json::parse(both.output).at("layers");
    double share = 0;
    for (const auto& layer : layers) share += layer.at("share").get<double>();
    CHECK(share == doctest::Approx(1));
    CHECK(std::ranges::any_of(layers, [](const auto& layer) { return layer.at("name") == "blocks.*.mlp.fc1"; }));
    const auto gemm = run_sylvit("bench gemm --shape 64,64,64 --seconds 0.1");
    CHECK(gemm.output.find("builtin") != std::string::npos);
    const auto alone = run_sylvit("bench gemm --shape 64,64,64 --seconds 0.1 --json --provider builtin");
    const auto rows = nlohmann::json::parse(alone.output);
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].at("provider") == "builtin");
    const auto nobody = run_sylvit("bench gemm --shape 64,64,64 --provider nobody");
    CHECK(nobody.exit_code == 2);
    CHECK(nobody.errors.find("\"nobody\"") != std::string::npos);
  }
}
