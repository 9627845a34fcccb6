// `sylvit run attention` and `sylvit bench attention`, from file to file, as a user runs them.
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "io/safetensors.hpp"
#include "reference/attention.hpp"
#include "support.hpp"

using namespace sylvit;
using sylvit::test::CommandResult;
using sylvit::test::run_sylvit;
namespace fs = std::filesystem;

namespace {

/// A file of tensors to write, and the paths around it.
class Files {
 public:
  std::string in() const { return (directory_.path() / "in.safetensors").string(); }
  std::string out() const { return (directory_.path() / "out.safetensors").string(); }
  std::string arguments(const std::string& rest) const {
    return "run attention --input " + in() + " --output " + out() + " " + rest;
  }

  void add(const std::string& name, const Shape& shape, float centre = 0, float size = 1) {
    std::normal_distribution<float> normal;
    std::vector<float>& values = floats[name];
    values.resize(static_cast<std::size_t>(shape.elements()));
    for (float& value : values) value = centre + size * normal(random_);
    shapes_.insert_or_assign(name, shape);
  }
  void write() const {
    std::vector<io::OutputTensor> tensors;
    for (const auto& [name, values] : floats)
      tensors.push_back({name, DType::f32, shapes_.at(name), std::as_bytes(std::span(values))});
    if (!lengths.empty())
      tensors.push_back(
          {"lengths", DType::i64, Shape{static_cast<std::int64_t>(lengths.size())}, std::as_bytes(std::span(lengths))});
    io::write_safetensors(in(), tensors);
  }
  std::vector<double> wide(const std::string& name) const {
    const auto found = floats.find(name);
    return found == floats.end() ? std::vector<double>()
                                 : std::vector<double>(found->second.begin(), found->second.end());
  }

  std::map<std::string, std::vector<float>> floats;
  std::vector<std::int64_t> lengths;

 private:
  test::TemporaryDirectory directory_;
  std::map<std::string, Shape> shapes_;
  std::mt19937 random_{3};
};

/// Files that hold q, k, v and grad_o.
struct SmallFiles : Files {
  SmallFiles() {
    add("q", {2, 4, 9, 32});
    add("k", {2, 2, 11, 32});
    add("v", {2, 2, 11, 32});
    add("grad_o", {2, 4, 9, 32});
  }
};

reference::AttentionProblem problem_of(const Files& files, Score score) {
  reference::AttentionProblem problem;
  problem.shape = {2, 4, 2, 9, 11, 32};
  problem.score = score;
  problem.q = files.wide("q");
  problem.k = files.wide("k");
  problem.v = files.wide("v");
  problem.lengths = files.lengths;
  problem.head_scale = files.wide("head_scale");
  problem.head_alpha = files.wide("head_alpha");
  problem.q_norm = {files.wide("q_norm.weight"), files.wide("q_norm.bias")};
  problem.k_norm = {files.wide("k_norm.weight"), files.wide("k_norm.bias")};
  return problem;
}

void check_close(const io::SafetensorsFile& out, const std::string& name, const std::vector<double>& expected) {
  const std::vector<float> got = out.read_f32(name);
  REQUIRE(got.size() == expected.size());
  double largest = 0;
  double error = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    error = std::max(error, std::abs(static_cast<double>(got[i]) - expected[i]));
  }
  CAPTURE(name);
  CHECK(largest > 1e-3);
  CHECK(error <= 1e-5 * largest);
}

/// Fails with one sentence that has these parts, and writes nothing.
void check_refused(const Files& files, const std::string& options, std::initializer_list<std::string> parts,
                   int exit_code = 1) {
  fs::remove(files.out());
  const CommandResult result = run_sylvit(files.arguments(options));
  CAPTURE(result.errors);
  CHECK(result.exit_code == exit_code);
  for (const std::string& part : parts) CHECK(result.errors.find(part) != std::string::npos);
  CHECK(std::ranges::count(result.errors, '\n') <= 2);
  CHECK_FALSE(fs::exists(files.out()));
}

}  // namespace

TEST_SUITE("cli/attention") {
  TEST_CASE("a file goes in, the output and every gradient come out") {
    SmallFiles files;
    files.lengths = {11, 4};
    files.add("head_scale", {4}, 1, 0.2F);
    files.add("head_alpha", {4}, 1, 0.2F);
    files.add("q_norm.weight", {32}, 1, 0.2F);
    files.add("q_norm.bias", {32}, 0, 0.2F);
    files.add("k_norm.weight", {32}, 1, 0.2F);
    files.add("k_norm.bias", {32}, 0, 0.2F);
    files.write();
    const CommandResult result =
        run_sylvit(files.arguments("--score gelu --divisor 20 --scale 0.25 --causal --qk-norm --backward"));
    CAPTURE(result.errors);
    REQUIRE(result.exit_code == 0);
    CHECK(result.errors.empty());
    reference::AttentionProblem problem = problem_of(files, Score::gelu);
    problem.divisor = 20;
    problem.scale = 0.25;
    problem.causal = true;
    problem.qk_norm = true;
    const reference::AttentionGradients gradients = reference::attention_backward(problem, files.wide("grad_o"));
    const io::SafetensorsFile out = io::SafetensorsFile::open(files.out());
    CHECK(out.tensors().size() == 10);
    CHECK(out.at("o").shape == Shape{2, 4, 9, 32});
    CHECK(out.at("dk").shape == Shape{2, 2, 11, 32});
    check_close(out, "o", reference::attention_forward(problem).o);
    check_close(out, "dq", gradients.q);
    check_close(out, "dk", gradients.k);
    check_close(out, "dv", gradients.v);
    check_close(out, "dhead_scale", gradients.head_scale);
    check_close(out, "dhead_alpha", gradients.head_alpha);
    check_close(out, "dq_norm.weight", gradients.q_norm.weight);
    check_close(out, "dq_norm.bias", gradients.q_norm.bias);
    check_close(out, "dk_norm.weight", gradients.k_norm.weight);
    check_close(out, "dk_norm.bias", gradients.k_norm.bias);
  }

  TEST_CASE("softmax and relu, forward alone, and what is not used is said") {
    SmallFiles files;
    files.add("q_norm.weight", {32});
    files.add("surplus\x1b[2J", {3});
    files.write();
    const CommandResult result = run_sylvit(files.arguments("--score softmax"));
    REQUIRE(result.exit_code == 0);
    CHECK(result.errors.find("q_norm.weight") != std::string::npos);
    CHECK(result.errors.find(R"("surplus\x1b[2J")") != std::string::npos);
    {
      const io::SafetensorsFile out = io::SafetensorsFile::open(files.out());
      CHECK(out.tensors().size() == 1);
      check_close(out, "o", reference::attention_forward(problem_of(files, Score::softmax)).o);
    }
    REQUIRE(run_sylvit(files.arguments("--score relu --alpha 0.5")).exit_code == 0);
    reference::AttentionProblem problem = problem_of(files, Score::relu);
    problem.alpha = 0.5;
    check_close(io::SafetensorsFile::open(files.out()), "o", reference::attention_forward(problem).o);
    CHECK(run_sylvit(files.arguments("--score relu --dtype bf16 --backward")).exit_code == 0);
    CHECK(run_sylvit(files.arguments("--score relu --dtype f16 --device 0")).exit_code == 0);
  }

  TEST_CASE("bad input is one sentence, and nothing is written") {
    SmallFiles files;
    check_refused(files, "--score relu", {"in.safetensors"});  // not there yet
    files.write();
    check_refused(files, "--score rleu", {"rleu", "relu"}, 2);
    check_refused(files, "--score relu --dtype f8", {"f8", "bf16"}, 2);
    check_refused(files, "--score relu --alpha nan", {"alpha"}, 2);
    check_refused(files, "--score relu --alpha 3", {"alpha", "0 to 2"}, 2);
    check_refused(files, "--score relu --divisor 0", {"divisor", "positive"}, 2);
    check_refused(files, "--score relu --divisor -4", {"divisor", "positive"}, 2);
    check_refused(files, "--score relu --divisor 1e-60", {"divisor", "positive"}, 2);
    check_refused(files, "--score relu --divisor 1e60", {"divisor", "finite"}, 2);
    check_refused(files, "--score relu --scale inf", {"scale", "finite"}, 2);
    check_refused(files, "--score relu --device nonsense", {"nonsense", "the devices are"});
    check_refused(files, "--score relu --alpha x", {"alpha"}, 2);

    const auto check_changed = [](auto change, const std::string& options, std::initializer_list<std::string> parts) {
      SmallFiles changed;
      change(changed);
      changed.write();
      check_refused(changed, options, parts);
    };
    check_changed([](Files& f) { f.floats.erase("v"); }, "", {"v", "in.safetensors"});
    check_changed([](Files& f) { f.floats.erase("grad_o"); }, "--backward", {"grad_o"});
    check_changed(
        [](Files& f) {
          f.add("k", {2, 3, 11, 32});
          f.add("v", {2, 3, 11, 32});
        },
        "", {"4 heads", "3 heads"});
    check_changed([](Files& f) { f.add("v", {2, 2, 12, 32}); }, "", {"v is f32 [2, 2, 12, 32]", "[2, 2, 11, 32]"});
    check_changed([](Files& f) { f.add("q", {4, 9, 32}); }, "", {"q is f32 [4, 9, 32]"});
    check_changed([](Files& f) { f.add("k", {2, 11, 32}); }, "", {"k is f32 [2, 11, 32]"});
    check_changed([](Files& f) { f.add("grad_o", {2, 4, 9, 16}); }, "--backward", {"grad_o", "[2, 4, 9, 16]"});
    check_changed([](Files& f) { f.lengths = {12, 3}; }, "", {"lengths[0]", "12", "11"});
    check_changed([](Files& f) { f.lengths = {1, -3}; }, "", {"lengths[1]", "-3"});
    check_changed([](Files& f) { f.lengths = {1, 2, 3}; }, "", {"lengths", "[3]", "[2]"});
    check_changed([](Files& f) { f.add("lengths", {2}); }, "", {"lengths", "f32", "i32 or i64"});
    for (const float bad : {std::nanf(""), HUGE_VALF})
      check_changed(
          [&](Files& f) {
            f.add("head_alpha", {4});
            f.floats["head_alpha"][2] = bad;
          },
          "--score relu", {"head_alpha[2]", "finite"});
    check_changed([](Files& f) { f.add("head_scale", {3}); }, "", {"head_scale", "[3]", "[4]"});
    check_changed(
        [](Files& f) {
          f.add("q", {2, 4, 9, 20});
          f.add("k", {2, 2, 11, 20});
          f.add("v", {2, 2, 11, 20});
        },
        "", {"head size 20", "multiple of 8"});

    // A truncated and a hostile file.
    fs::resize_file(files.in(), fs::file_size(files.in()) - 5);
    check_refused(files, "--score relu", {"in.safetensors"});
    std::ofstream(files.in(), std::ios::binary | std::ios::trunc) << "\xff\xff\xff\xff\xff\xff\xff\x7f{}";
    check_refused(files, "--score relu", {"in.safetensors"});
  }

  TEST_CASE("an output that cannot be written leaves what was there") {
    SmallFiles files;
    files.write();
    const CommandResult result =
        run_sylvit("run attention --score relu --input " + files.in() + " --output /no/such/place/out.safetensors");
    CHECK(result.exit_code == 1);
    CHECK(result.errors.find("/no/such/place") != std::string::npos);
  }

  TEST_CASE("bench prints every documented key and sensible numbers") {
    std::string sources;  // of forward and backward
    for (const std::string pass : {"forward", "backward", "both"}) {
      const CommandResult result =
          run_sylvit("bench attention --shape 2,2,64,32 --score relu --json --seconds 0.05 --pass " + pass);
      CAPTURE(result.errors);
      REQUIRE(result.exit_code == 0);
      const auto json = nlohmann::json::parse(result.output);
      CHECK(json.at("ms_best").get<double>() > 0);
      CHECK(json.at("ms_median").get<double>() >= json.at("ms_best").get<double>());
      const double factor = pass == "forward" ? 1 : pass == "backward" ? 2.5 : 3.5;
      const double flops = 4.0 * 2 * 2 * 64 * 64 * 32 * factor;
      CHECK(json.at("gflops").get<double>() == doctest::Approx(flops / json.at("ms_best").get<double>() / 1e6));
      CHECK(json.contains("ceiling_gflops"));
      CHECK(json.at("config").get<std::string>().find("Attention") == 0);
      const auto source = json.at("config_source").get<std::string>();
      CHECK(!source.empty());
      if (pass != "both") sources += (sources.empty() ? "" : "; ") + source;
      if (pass == "both") CHECK((source == sources || source + "; " + source == sources));
      CHECK(json.at("extra_bytes").is_number_integer());
      CHECK(!json.at("device").get<std::string>().empty());
      CHECK(!json.at("toolchain").get<std::string>().empty());
    }
    CHECK(
        run_sylvit("bench attention --shape 1,1,8,16 --score softmax --causal --dtype bf16 --seconds 0.01").exit_code ==
        0);
    CHECK(run_sylvit("bench attention --shape 1,2,3 --score relu").exit_code == 2);
    CHECK(run_sylvit("bench attention --shape 1,2,0,64 --score relu").exit_code == 2);
    CHECK(run_sylvit("bench attention --pass sideways").exit_code == 2);
    for (const char* wrong : {"--shape 9999999999999999999999,1,1,64", "--shape 1,1,010,64", "--seconds inf",
                              "--seconds nan", "--seconds -1"})
      CHECK(run_sylvit(std::string("bench attention ") + wrong).exit_code == 2);
    const CommandResult huge = run_sylvit("bench attention --shape 2147483648,1,1,16");
    CHECK(huge.exit_code == 1);
    CHECK(huge.errors.find("cannot allocate 128.0 GB") != std::string::npos);
    CHECK(huge.errors.find("the device has") != std::string::npos);
  }
}
