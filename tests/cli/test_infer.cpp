#include <algorithm>
#include <cmath>
#include <deque>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "cli/progress.hpp"
#include "images/transform.hpp"
#include "io/safetensors.hpp"
#include "support.hpp"

using namespace sylvit;
using sylvit::test::image_directory;
using sylvit::test::read_file;
using sylvit::test::run_sylvit;
using sylvit::test::TemporaryDirectory;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const std::string sizes = " --width 32 --depth 1 --heads 2 --mlp 64 --patch 8 --classes 5";
const std::string tiny = sizes + " --image-size 16 --seed 3";

std::string image(const std::string& name) { return ' ' + (image_directory() / name).string(); }

std::string write_text(const TemporaryDirectory& directory, const std::string& name, const std::string& text) {
  const fs::path path = directory.path() / name;
  std::ofstream(path) << text;
  return path;
}

/// The document's images; the exit code must be this.
Json classified(const std::string& arguments, int exit_code = 0) {
  const auto result = run_sylvit("infer --json" + arguments);
  CAPTURE(arguments);
  CAPTURE(result.errors);
  CHECK(result.exit_code == exit_code);
  const Json document = Json::parse(result.output, nullptr, false);
  REQUIRE(document.is_object());
  CHECK(document["model"] == "width 32, depth 1, MLP 64, patch 8, 2 heads");
  CHECK(document["device"].is_string());
  return document["images"];
}

void check_fails(const std::string& arguments, int exit_code, std::initializer_list<std::string> parts) {
  const auto result = run_sylvit("infer" + arguments);
  CAPTURE(arguments);
  CAPTURE(result.errors);
  CHECK(result.exit_code == exit_code);
  CHECK(result.output.empty());
  for (const std::string& part : parts) CHECK(result.errors.find(part) != std::string::npos);
}

/// The whole document of a run that succeeds, and what it said beside it.
Json document_of(const std::string& arguments, std::string& errors) {
  const auto result = run_sylvit("infer --json" + arguments);
  CAPTURE(arguments);
  CAPTURE(result.errors);
  REQUIRE(result.exit_code == 0);
  errors = result.errors;
  return Json::parse(result.output);
}

/// A safetensors file with the same tensors and no metadata, as any other program writes it.
std::string without_metadata(const std::string& weights, const fs::path& to) {
  const io::SafetensorsFile file = io::SafetensorsFile::open(weights);
  std::deque<std::vector<std::byte>> bytes;
  std::vector<io::OutputTensor> tensors;
  for (const io::TensorInfo& tensor : file.tensors())
    tensors.push_back({tensor.name, tensor.dtype, tensor.shape, bytes.emplace_back(file.read_bytes(tensor))});
  io::write_safetensors(to, tensors);
  return to;
}

/// Logits by class, of an answer that has all of them.
std::vector<double> logits_of(const Json& answer) {
  std::vector<double> logits(answer["top"].size());
  for (const Json& one : answer["top"]) logits.at(one["class"].get<std::size_t>()) = one["logit"].get<double>();
  return logits;
}

void check_near(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-5);
}

}  // namespace

TEST_SUITE("cli/infer") {
  TEST_CASE("logits are those of run vit over the transformed images, probabilities their softmax") {
    const TemporaryDirectory directory;
    std::vector<float> pixels(2 * 3 * 16 * 16);
    const sylvit::ImageTransform transform{.size = 16, .crop_pct = 0.8, .mean = {0.4F, 0.5F, 0.6F}};
    const std::size_t half = pixels.size() / 2;
    const std::span<float> both(pixels);
    sylvit::transform_image(sylvit::read_image(image_directory() / "baseline.jpg"), transform, both.first(half));
    sylvit::transform_image(sylvit::read_image(image_directory() / "rgba8.png"), transform, both.subspan(half));
    const std::string in = directory.path() / "in.safetensors";
    const std::string out = directory.path() / "out.safetensors";
    const std::vector<io::OutputTensor> tensors{
        {"images", DType::f32, Shape{2, 3, 16, 16}, std::as_bytes(std::span(pixels))}};
    io::write_safetensors(in, tensors);
    REQUIRE(run_sylvit("run vit" + tiny + " --input " + in + " --output " + out).exit_code == 0);
    const std::vector<float> expected = io::SafetensorsFile::open(out).read_f32("logits", Shape{2, 5});

    const Json images =
        classified(tiny + " --crop-pct 0.8 --mean 0.4,0.5,0.6" + image("baseline.jpg") + image("rgba8.png"));
    REQUIRE(images.size() == 2);
    CHECK(images[0]["path"] == (image_directory() / "baseline.jpg").string());
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<double> logits = logits_of(images[i]);
      check_near(logits, {expected.begin() + static_cast<std::ptrdiff_t>(i * 5),
                          expected.begin() + static_cast<std::ptrdiff_t>(i * 5 + 5)});
      double sum = 0;
      for (const double logit : logits) sum += std::exp(logit);
      double last = 1;
      for (const Json& one : images[i]["top"]) {
        const double probability = one["probability"];
        CHECK(probability == doctest::Approx(std::exp(one["logit"].get<double>()) / sum).epsilon(1e-9));
        CHECK(probability <= last);
        CHECK(!one.contains("label"));
        last = probability;
      }
    }
    CHECK(classified(tiny + " --top 2" + image("grey.jpg"))[0]["top"].size() == 2);
  }

  TEST_CASE("image size and number of classes come from the weights unless they are given") {
    const TemporaryDirectory directory;
    const std::string weights = directory.path() / "w.safetensors";
    REQUIRE(run_sylvit("init" + sizes + " --image-size 24 --seed 3 --output " + weights).exit_code == 0);
    const std::string rest = sizes + " --weights " + weights + image("cmyk.jpg");
    const std::vector<double> logits = logits_of(classified(rest)[0]);
    check_near(logits, logits_of(classified(rest + " --image-size 24")[0]));
    check_near(logits, logits_of(classified(sizes + " --seed 3 --image-size 24" + image("cmyk.jpg"))[0]));
    const std::string untold = sizes.substr(0, sizes.find(" --classes"));
    check_near(logits, logits_of(classified(untold + " --weights " + weights + image("cmyk.jpg"))[0]));
    const auto other = run_sylvit("infer" + rest + " --image-size 16");
    CHECK(other.exit_code == 0);
    CHECK(other.errors.find("interpolated to 2 x 2") != std::string::npos);
    CHECK(run_sylvit("infer" + rest).errors.empty());
  }

  TEST_CASE("a model's options travel with its weights, and options that contradict them are refused by name") {
    const TemporaryDirectory directory;
    const std::string weights = directory.path() / "w.safetensors";
    const std::string model = sizes + " --image-size 16 --score relu --alpha 0.5 --gelu-tanh";
    REQUIRE(run_sylvit("init" + model + " --seed 3 --output " + weights).exit_code == 0);
    const std::string rest = " --weights " + weights + image("cmyk.jpg");
    std::string errors;
    const Json alone = document_of(rest, errors);
    CHECK(errors.empty());
    CHECK(alone["model"] == "width 32, depth 1, MLP 64, patch 8, 2 heads");
    CHECK(alone["weights"] == weights);
    CHECK(alone["score"] == "relu");
    CHECK(alone["alpha"] == 0.5);
    CHECK(alone["dtype"] == "f32");
    CHECK(alone["interpolation"] == "bicubic");
    CHECK(alone["crop_pct"] == 0.9);
    CHECK(alone["mean"] == Json({0.5, 0.5, 0.5}));
    CHECK(alone["std"] == Json({0.5, 0.5, 0.5}));
    CHECK(alone["image_size"] == 16);
    CHECK(alone["assumed"].empty());
    CHECK(alone["configuration"]["gelu_tanh"] == true);
    REQUIRE(!alone["providers"].empty());
    for (const Json& provider : alone["providers"]) CHECK(find_gemm_provider(provider.get<std::string>()));
    // The seed and every option say the same; nothing else does.
    const std::vector<double> logits = logits_of(alone["images"][0]);
    check_near(logits, logits_of(classified(model + " --seed 3" + image("cmyk.jpg"))[0]));
    const std::vector<double> softmax = logits_of(classified(tiny + image("cmyk.jpg"))[0]);
    double apart = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) apart = std::max(apart, std::abs(logits[i] - softmax[i]));
    CHECK(apart > 1e-4);
    check_near(logits, logits_of(classified(rest + " --score relu --alpha 0.5 --gelu-tanh --heads 2")[0]));

    const auto contradicts = [&](const std::string& option, const std::string& written) {
      check_fails(rest + " " + option, 1,
                  {option + " contradicts " + weights + ", which was written for " + written,
                   "leave it out, or add --override"});
    };
    contradicts("--score softmax", "relu");
    contradicts("--alpha 1.0", "alpha 0.5");
    contradicts("--divisor 9.0", "divisor 0.0");
    contradicts("--heads 1", "heads 2");
    contradicts("--gelu-tanh=false", "gelu_tanh true");
    contradicts("--epsilon 1e-05", "norm_epsilon 1e-06");
    contradicts("--pool gap", "pooling tok");
    contradicts("--sincos", "positions learned");
    contradicts("--qk-norm", "qk_norm false");
    contradicts("--classes 6", "classes 5");
    contradicts("--model S/16", "width 32");
    check_near(softmax, logits_of(classified(rest + " --score softmax --gelu-tanh=false --override")[0]));
    check_fails(tiny + image("cmyk.jpg") + " --override", 2, {"--override", "--weights"});
  }

  TEST_CASE("what nothing tells is named in one line with its option") {
    const TemporaryDirectory directory;
    const std::string weights = directory.path() / "w.safetensors";
    REQUIRE(run_sylvit("init" + sizes + " --image-size 16 --seed 3 --output " + weights).exit_code == 0);
    fs::create_directories(directory.path() / "bare");
    const std::string bare = without_metadata(weights, directory.path() / "bare" / "model.safetensors");
    const std::string rest = " --weights " + bare + image("cmyk.jpg");
    std::string errors;
    const Json untold = document_of(rest, errors);
    test::check_contains(errors.substr(0, errors.find('\n')),
                         {bare, "heads 1 (--heads)", "score softmax (--score)", "gelu_tanh false (--gelu-tanh)",
                          "norm_epsilon 1e-06 (--epsilon)", "pooling tok (--pool)", "mean 0.5 (--mean)",
                          "std 0.5 (--std)", "crop_pct 0.9 (--crop-pct)"});
    CHECK(std::ranges::count(errors, '\n') == 1);
    CHECK(errors.find("alpha") == std::string::npos);  // softmax has none
    CHECK(untold["assumed"].size() == 8);
    const std::string told =
        " --heads 2 --score relu --alpha 1 --divisor 5 --gelu-tanh=false --epsilon 1e-6 --pool tok "
        "--mean 0.5,0.5,0.5 --std 0.5,0.5,0.5";
    CHECK(document_of(rest + told, errors)["assumed"] == Json::array({"crop_pct"}));
    CHECK(document_of(rest + told + " --crop-pct 0.9", errors)["assumed"].empty());
    CHECK(errors.empty());
    CHECK(document_of(rest + " --score relu", errors)["assumed"].size() == 9);
    test::check_contains(errors.substr(0, errors.find('\n')),
                         {"alpha 1.0 (--alpha)", "divisor the number of tokens (--divisor)"});

    // timm's config.json tells how images are prepared, where the command line does not.
    const std::string json = R"({"architecture": "vit_tiny_patch16_224", "model_args": {"num_heads": 2,
      "embed_dim": 32, "depth": 1, "mlp_ratio": 2.0, "patch_size": 8}, "pretrained_cfg": {"mean": [0.4, 0.5, 0.6],
      "std": [0.2, 0.3, 0.4], "crop_pct": 1.0, "interpolation": "bilinear", "crop_mode": "center"}})";
    std::ofstream(directory.path() / "bare" / "config.json") << json;
    const Json of_timm = document_of(rest, errors);
    CHECK(of_timm["mean"] == Json({0.4, 0.5, 0.6}));
    CHECK(of_timm["std"] == Json({0.2, 0.3, 0.4}));
    CHECK(of_timm["crop_pct"] == 1.0);
    CHECK(of_timm["configuration"]["heads"] == 2);
    CHECK(errors.find("bilinear") != std::string::npos);
    const std::string transform = " --mean 0.4,0.5,0.6 --std 0.2,0.3,0.4 --crop-pct 1";
    check_near(logits_of(of_timm["images"][0]), logits_of(classified(tiny + transform + image("cmyk.jpg"))[0]));
    CHECK(document_of(rest + " --mean 0.1,0.1,0.1", errors)["mean"] == Json({0.1, 0.1, 0.1}));
    check_fails(rest + " --score relu", 1, {"--score relu contradicts", "config.json, which was written for softmax"});
  }

  TEST_CASE("labels, and a subset of the classes") {
    const TemporaryDirectory directory;
    const std::string labels = write_text(directory, "labels",
                                          "\xEF\xBB\xBF"
                                          "cat\ndog\r\nred fox\n4\ncat\n");
    const std::string start = tiny + image("rgb8.png") + " --labels " + labels;
    const std::vector<double> all = logits_of(classified(start)[0]);
    const Json top =
        classified(start + " --classes-subset " + write_text(directory, "subset", "red fox\n\n1\n4\n"))[0]["top"];
    REQUIRE(top.size() == 3);
    double sum = 0;
    std::vector<int> seen;
    for (const Json& one : top) {
      sum += one["probability"].get<double>();
      const int number = one["class"];
      seen.push_back(number);
      CHECK(one["label"] == std::vector<std::string>{"cat", "dog", "red fox", "4", "cat"}.at(one["class"]));
      CHECK(one["logit"].get<double>() == doctest::Approx(all.at(one["class"])).epsilon(1e-6));
    }
    CHECK(sum == doctest::Approx(1));
    std::ranges::sort(seen);
    // "4" is the label of class 3, and a label goes before a number.
    CHECK(seen == std::vector<int>{1, 2, 3});

    const auto text = run_sylvit("infer" + start + " --top 5");
    CHECK(text.exit_code == 0);
    CHECK(text.output.find(image("rgb8.png").substr(1) + "\n") == 0);
    CHECK(text.output.find("2  red fox\n") != std::string::npos);
    CHECK(std::ranges::count(text.output, '\n') == 6);
  }

  TEST_CASE("wrong labels and subsets get a sentence with file, line and numbers") {
    const TemporaryDirectory directory;
    const std::string start = tiny + image("rgb8.png");
    check_fails(start + " --labels " + write_text(directory, "three", "a\nb\nc\n"), 1,
                {"three has 3 labels", "5 classes"});
    check_fails(start + " --labels /nonexistent", 1, {"/nonexistent does not exist"});
    const auto refused = [&](const std::string& subset, const std::string& part, const std::string& more = "") {
      check_fails(start + more + " --classes-subset " + write_text(directory, "subset", subset), 1, {"subset", part});
    };
    refused("1\n2\n1\n", "line 3");
    refused("1\n5\n", "line 2");
    refused("1\n5\n", "0 to 4");
    refused("-1\n", "0 to 4");
    refused("99999999999999999999\n", "0 to 4");
    refused("0\ncat\n", "line 2");
    refused("1 2\n", "no class number");
    refused("\n\n", "names no class");
    const std::string labels = " --labels " + write_text(directory, "labels", "cat\ndog\nfox\nowl\ncat\n");
    refused("0\ncow\n", "neither a label nor a class number", labels);
    refused("dog\n1\n", "line 2", labels);
    refused("cat\n", "classes 0 and 4", labels);
    // What has no end, and what waits for somebody who writes.
    REQUIRE(mkfifo((directory.path() / "pipe").c_str(), 0600) == 0);
    const std::string large = write_text(directory, "large", std::string(17 << 20, '\n'));
    for (const char* option : {" --labels ", " --classes-subset "}) {
      for (const std::string& file :
           {std::string("/dev/zero"), std::string("/dev/full"), (directory.path() / "pipe").string()})
        check_fails(start + option + file, 1, {file + " is not a regular file"});
      check_fails(start + option + large, 1, {"large has 17825792 bytes", "may have 16777216"});
      check_fails(start + option + directory.path().string(), 1, {"is a directory, not a file of "});
    }
  }

  TEST_CASE("what cannot be read is named, the rest goes on, the exit code is 1") {
    const TemporaryDirectory directory;
    const std::string cut = write_text(directory, "cut.png", read_file(image_directory() / "rgb8.png").substr(0, 200));
    const std::string list = image("baseline.jpg") + " " + cut + image("rgba8.png") + " /nonexistent.jpg" +
                             image("grey8.png") + image("palette8.png");
    const Json alone = classified(tiny + image("palette8.png"));
    for (const char* batch : {"1", "2", "4", "32"}) {
      CAPTURE(batch);
      const Json images = classified(tiny + " --batch " + batch + list, 1);
      REQUIRE(images.size() == 6);
      CHECK(images[1]["path"] == cut);
      CHECK(images[1]["error"].get<std::string>().find("cut.png is corrupt") != std::string::npos);
      CHECK(!images[1].contains("top"));
      CHECK(images[3]["error"].get<std::string>().find("/nonexistent.jpg: No such file") != std::string::npos);
      for (const std::size_t good : {0U, 2U, 4U, 5U}) CHECK(images[good]["top"].size() == 5);
      check_near(logits_of(images[5]), logits_of(alone[0]));
    }
    const auto text = run_sylvit("infer" + tiny + list);
    CHECK(text.exit_code == 1);
    CHECK(text.errors.find("cut.png is corrupt") != std::string::npos);
    CHECK(text.errors.find("/nonexistent.jpg") != std::string::npos);
    CHECK(text.errors.find("2 of 6 images") != std::string::npos);
    CHECK(std::ranges::count(text.output, '%') == 20);
    check_fails(tiny + " " + cut + " /nonexistent.jpg", 1, {"2 of 2 images"});
  }

  TEST_CASE("a directory stands for its images, in order") {
    const TemporaryDirectory directory;
    for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
             {"rgb8.png", "b.PNG"}, {"grey.jpg", "a.jpeg"}, {"cmyk.jpg", "c.jpg"}, {"grey.jpg.rgb", "d.rgb"}})
      fs::copy_file(image_directory() / from, directory.path() / to);
    fs::create_directories(directory.path() / "inner.png");
    const std::string path = directory.path();
    const Json images = classified(tiny + image("turned.jpg") + " " + path);
    REQUIRE(images.size() == 4);
    CHECK(images[1]["path"] == path + "/a.jpeg");
    CHECK(images[2]["path"] == path + "/b.PNG");
    CHECK(images[3]["path"] == path + "/c.jpg");
    fs::create_symlink("e.jpg", directory.path() / "e.jpg");  // to itself: it cannot be looked at
    const Json with_loop = classified(tiny + image("turned.jpg") + " " + path, 1);
    REQUIRE(with_loop.size() == 5);
    CHECK(with_loop[3]["top"].size() == 5);
    CHECK(with_loop[4]["error"].get<std::string>().find("e.jpg") != std::string::npos);
    REQUIRE(mkfifo((directory.path() / "f.jpg").c_str(), 0600) == 0);
    const Json with_pipe = classified(tiny + " " + path, 1);
    REQUIRE(with_pipe.size() == 5);
    CHECK(with_pipe[4]["error"] == path + "/f.jpg is not a regular file");
    const Json empty = classified(tiny + image("turned.jpg") + " " + path + "/inner.png", 1);
    CHECK(empty[0]["top"].size() == 5);
    CHECK(empty[1]["error"].get<std::string>().find("inner.png has no file") != std::string::npos);
  }

  TEST_CASE("nothing that a file or its name holds steers a terminal") {
    const TemporaryDirectory directory;
    const std::string folder = directory.path() / "\x1b[31m\u202e";
    fs::create_directory(folder);
    const std::string named = folder + "/a\x9b\n.png";
    fs::copy_file(image_directory() / "rgb8.png", named);
    std::ofstream(folder + "/b\x1b.png") << "no image";
    const std::string labels = write_text(directory, "labels", "\x1b]0;x\x07\nb\u009b\nc\u2066\n\x7f\n\xff\n");
    const auto steers = [](const std::string& text) {
      return std::ranges::any_of(text, [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == '\x7f'; }) ||
             text.find("\xc2\x9b") != std::string::npos || text.find("\u202e") != std::string::npos ||
             text.find("\u2066") != std::string::npos || text.find('\xff') != std::string::npos;
    };
    const std::string arguments = tiny + " '" + folder + "' --labels " + labels;
    const auto text = run_sylvit("infer" + arguments);
    CHECK(text.exit_code == 1);
    CHECK(!steers(text.output));
    CHECK(!steers(text.errors));
    CHECK(text.output.find(R"(\x1b[31m\xe2\x80\xae/a\x9b\x0a.png)") != std::string::npos);
    CHECK(text.output.find(R"(  \x1b]0;x\x07)") != std::string::npos);
    CHECK(text.output.find(R"(  \xff)") != std::string::npos);
    CHECK(std::ranges::count(text.output, '\n') == 6);
    CHECK(text.errors.find(R"(/b\x1b.png is neither)") != std::string::npos);
    CHECK(std::ranges::count(text.errors, '\n') == 2);

    // JSON has the texts themselves, and its bytes are ASCII.
    const auto json = run_sylvit("infer --json" + arguments);
    CHECK(json.exit_code == 1);
    CHECK(std::ranges::all_of(json.output, [](char c) { return c == '\n' || (c >= ' ' && c < '\x7f'); }));
    const Json images = Json::parse(json.output)["images"];
    CHECK(images[0]["path"] == folder + "/a\ufffd\n.png");
    std::vector<std::string> found;
    for (const Json& one : images[0]["top"]) found.push_back(one["label"]);
    std::ranges::sort(found);
    CHECK(found == std::vector<std::string>{"\x1b]0;x\x07", "b\u009b", "c\u2066", "\x7f", "\ufffd"});

    // Words of the command line, whichever part refuses them.
    for (const char* words :
         {"infer '\x1b[2J' --top '\x1b[2J'", "info '\x1b[2J'", "infer '\x1b[2J' --seed 1 --model '\x1b[2J'"}) {
      const auto refused = run_sylvit(words);
      CAPTURE(words);
      CHECK(refused.exit_code != 0);
      CHECK(!steers(refused.errors));
      CHECK(refused.errors.find(R"(\x1b[2J)") != std::string::npos);
    }
  }

  TEST_CASE("a wrong command line is 2, a model that cannot be among them") {
    check_fails("", 2, {"images is required"});
    const std::string one = image("grey.jpg");
    for (const char* wrong : {" --top 0", " --batch -1", " --crop-pct 1.5", " --crop-pct 0", " --std 1,0,1",
                              " --std inf,1,1", " --std 1e-60,1,1", " --mean nan,0,0", " --top 99999999999999999999",
                              " --mean 0.5,0.5", " --weights w.safetensors"})
      check_fails(tiny + one + wrong, 2, {"--"});
    check_fails(sizes + one, 2, {"--weights or --seed"});
    check_fails(tiny + one + " --channels 1", 2, {"1 channels", "3"});
    check_fails(one + " --model S/61 --seed 1", 2, {"S/61", "known models"});
    CHECK(run_sylvit("infer --help").output.find("exit code is 1") != std::string::npos);
  }

  TEST_CASE("progress says count, rate, time left and a note, within the terminal's width") {
    using cli::progress_line;
    CHECK(progress_line("images", 50, 200, 10, "", 200) == "[=====               ] 50/200 images, 5.0/s, 0:30 left");
    CHECK(progress_line("runs", 7, 7, 7, "best 3 ms", 200) == "[====================] 7/7 runs, 1.0/s, best 3 ms");
    CHECK(progress_line("images", 0, 9, 1, "", 200) == "[                    ] 0/9 images");
    CHECK(progress_line("images", 1, 7201, 1, "", 200).find("2:00:00 left") != std::string::npos);
    CHECK(progress_line("images", 50, 200, 10, "", 12).size() == 12);
    // Cut between characters, and with a note that cannot steer the terminal.
    CHECK(progress_line("ääää", 1, 2, 0, "", 29) == "[==========          ] 1/2 ä");
    CHECK(progress_line("ääää", 1, 2, 0, "", 30) == "[==========          ] 1/2 ä");
    CHECK(progress_line("runs", 1, 2, 0, "\x1b[2J", 200) == "[==========          ] 1/2 runs, \\x1b[2J");
    // Standard error is no terminal here.
    std::string many;
    for (int i = 0; i < 40; ++i) many += image("grey.jpg");
    CHECK(run_sylvit("infer --batch 1" + tiny + many).errors.empty());
  }
}
