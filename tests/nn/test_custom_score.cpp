#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "support.hpp"
#include "vit/tiny.hpp"

using sylvit::AttentionDescription;
using sylvit::AttentionGradients;
using sylvit::AttentionInputs;
using sylvit::CustomScore;
using sylvit::DType;
using sylvit::Score;
using sylvit::Shape;
using sylvit::test::check_error;
using sylvit::test::device;
using sylvit::test::OnDevice;
using sylvit::test::tiny_vit;

namespace {

/// The library's own silu, word for word, under another name.
const char* const silu_source = R"(
  struct MySilu {
    [[gnu::always_inline]] static float value(float s) { return s * fast_sigmoid(s); }
    [[gnu::always_inline]] static float slope(float s) {
      const float y = fast_sigmoid(s);
      return y * sycl::fma(s, 1.0F - y, 1.0F);
    }
  };)";

AttentionDescription described(const CustomScore& score) { return {.score = Score::custom, .custom_score = score}; }

template <class T>
struct Results {
  std::vector<T> o, dq, dk, dv;

  static bool same(const std::vector<T>& a, const std::vector<T>& b) {
    return std::ranges::equal(a, b, [](T x, T y) { return static_cast<float>(x) == static_cast<float>(y); });
  }
  bool operator==(const Results& other) const {
    return same(o, other.o) && same(dq, other.dq) && same(dk, other.dk) && same(dv, other.dv);
  }
};

/// Forward and backward over random numbers, always the same.
template <class T>
Results<T> run(const AttentionDescription& description) {
  const Shape shape{2, 2, 60, 64};
  const auto random = [&](unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<T> values(static_cast<std::size_t>(shape.elements()));
    std::ranges::generate(values, [&] { return static_cast<T>(normal(generator)); });
    return OnDevice<T>(std::span<const T>(values), shape);
  };
  const auto q = random(1), k = random(2), v = random(3), grad_o = random(4);
  const auto count = static_cast<std::size_t>(shape.elements());
  const OnDevice<T> o(count, shape), dq(count, shape), dk(count, shape), dv(count, shape);
  const AttentionInputs inputs{.q = q.view(), .k = k.view(), .v = v.view()};
  const AttentionGradients gradients{.q = dq.view(), .k = dk.view(), .v = dv.view()};
  attention_prepare(device(), description, inputs, true);
  const sylvit::Memory workspace(device(),
                                 std::max(attention_forward_workspace(device(), description, inputs),
                                          attention_backward_workspace(device(), description, inputs, gradients)),
                                 "a test");
  const sycl::event done = attention_forward(device(), description, inputs, o.view(), {}, workspace.data());
  attention_backward(device(), description, inputs, {}, {}, grad_o.view(), gradients, workspace.data(), {&done, 1});
  return {o.read(), dq.read(), dk.read(), dv.read()};
}

}  // namespace

TEST_SUITE("nn/custom_score") {
  TEST_CASE("a score from outside gives the bits of the same score from inside") {
    const CustomScore custom("MySilu", silu_source);
    CHECK(run<float>(described(custom)) == run<float>({.score = Score::silu}));
    CHECK(run<sylvit::bf16>(described(custom)) == run<sylvit::bf16>({.score = Score::silu}));
    CHECK(run<sylvit::f16>(described(custom)) == run<sylvit::f16>({.score = Score::silu}));
  }

  TEST_CASE("scores of one name and different text are different scores") {
    const auto scaled = [](const std::string& factor) {
      return CustomScore("Scaled", "struct Scaled { static float value(float s) { return " + factor +
                                       " * s; } static float slope(float) { return " + factor + "; } };");
    };
    CHECK(scaled("1.0F") == scaled("1.0F"));
    CHECK(!(scaled("1.0F") == scaled("2.0F")));
    const Results<float> once = run<float>(described(scaled("1.0F")));
    const Results<float> twice = run<float>(described(scaled("2.0F")));
    REQUIRE(once.o.size() == twice.o.size());
    bool doubled = true;
    for (std::size_t i = 0; i < once.o.size(); ++i) doubled = doubled && twice.o[i] == 2 * once.o[i];
    CHECK(doubled);
    CHECK(std::ranges::any_of(once.o, [](float value) { return value != 0; }));
  }

  TEST_CASE("a Vision Transformer takes one") {
    sylvit::VitConfig config = tiny_vit([](sylvit::VitConfig& c) { c.score = Score::silu; });
    std::vector<float> pixels(static_cast<std::size_t>(2 * 3 * 12 * 8));
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = std::sin(static_cast<float>(i) / 7);
    const OnDevice<float> images(std::span<const float>(pixels), {2, 3, 12, 8});
    const auto logits_of = [&](const sylvit::VitConfig& model) {
      sylvit::VitParameters parameters(device(), model, DType::f32);
      parameters.initialise(3);
      sylvit::Vit vit(device(), model, {.batch = 2});
      const OnDevice<float> logits(14, {2, 7});
      vit.forward(parameters, images.view(), logits.view());
      return logits.read();
    };
    const std::vector<float> own = logits_of(config);
    config.score = Score::custom;
    check_error([&] { config.check(); }, {"no custom_score"});
    config.custom_score = CustomScore("MySilu", silu_source);
    CHECK(logits_of(config) == own);
    sylvit::VitConfig other = config;
    other.custom_score = CustomScore("MySilu", std::string(silu_source) + "\n");
    CHECK(!(other == config));
  }

  TEST_CASE("the features of a model are what its head sees") {
    const sylvit::VitConfig config = tiny_vit();
    sylvit::VitParameters parameters(device(), config, DType::f32);
    parameters.initialise(3);
    sylvit::Vit vit(device(), config, {.batch = 4});
    check_error([&] { vit.features(); }, {"before its first forward pass"});
    std::vector<float> pixels(static_cast<std::size_t>(2 * 3 * 12 * 8));
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = std::cos(static_cast<float>(i) / 5);
    const OnDevice<float> images(std::span<const float>(pixels), {2, 3, 12, 8});
    const OnDevice<float> logits(14, {2, 7});
    vit.forward(parameters, images.view(), logits.view());
    const std::vector<float> seen = logits.read();
    const sylvit::TensorView view = vit.features();
    REQUIRE(view.shape() == Shape{2, 48});
    std::vector<float> features(96);
    device().queue().memcpy(features.data(), view.data(), view.span_bytes());
    device().wait();
    const std::vector<float> weight = parameters.values().read("head.weight");
    const std::vector<float> bias = parameters.values().read("head.bias");
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const auto feature = features.begin() + static_cast<std::ptrdiff_t>(i / 7 * 48);
      const double expected =
          std::inner_product(feature, feature + 48, weight.begin() + static_cast<std::ptrdiff_t>(i % 7 * 48),
                             static_cast<double>(bias[i % 7]));
      CHECK(seen[i] == doctest::Approx(expected).epsilon(1e-5));
    }
  }

  TEST_CASE("exp and its relatives are as exact as docs/numerics.md says") {
    // One key, k = v = e_0, scale 1 and N = 1: the output is the score of the query's first number.
    const auto on_device = [](const char* expression, const std::vector<float>& at) {
      const auto rows = static_cast<std::int64_t>(at.size());
      std::vector<float> queries(at.size() * 16), key(16);
      for (std::size_t i = 0; i < at.size(); ++i) queries[i * 16] = at[i];
      key[0] = 1;
      const OnDevice<float> q(std::span<const float>(queries), {1, 1, rows, 16});
      const OnDevice<float> k(std::span<const float>(key), {1, 1, 1, 16});
      const OnDevice<float> o(queries.size(), {1, 1, rows, 16});
      const CustomScore score("Probed", std::string("struct Probed { static float value(float s) { return ") +
                                            expression + "; } static float slope(float) { return 0.0F; } };");
      const AttentionDescription description{.score = Score::custom, .custom_score = score, .scale = 1.0F};
      const AttentionInputs inputs{.q = q.view(), .k = k.view(), .v = k.view()};
      attention_forward(device(), description, inputs, o.view(), {}, nullptr);
      std::vector<float> result;
      const std::vector<float> all = o.read();
      for (std::size_t i = 0; i < at.size(); ++i) result.push_back(all[i * 16]);
      return result;
    };
    const auto points = [](float from, float to) {
      std::vector<float> at(20001);
      for (std::size_t i = 0; i < at.size(); ++i) at[i] = from + (to - from) * static_cast<float>(i) / 20000.0F;
      return at;
    };
    /// The largest error in units of the last place of the result, and relative to it.
    const auto measure = [&](const char* expression, float from, float to, const auto& exact) {
      const std::vector<float> at = points(from, to);
      const std::vector<float> got = on_device(expression, at);
      double units = 0, relative = 0;
      for (std::size_t i = 0; i < at.size(); ++i) {
        const double expected = exact(static_cast<double>(at[i]));
        const double error = std::abs(got[i] - expected);
        units = std::max(units, error / std::ldexp(1.0, std::ilogb(expected) - 23));
        relative = std::max(relative, error / std::abs(expected));
      }
      MESSAGE(std::string(expression) << ": " << units << " units in the last place, " << relative << " of the value");
      return std::pair(units, relative);
    };
    CHECK(measure("fast_exp(s)", -87.0F, 88.0F, [](double x) { return std::exp(x); }).first < 1);
    CHECK(measure("fast_exp2(s)", -126.0F, 127.0F, [](double x) { return std::exp2(x); }).first < 3);
    CHECK(measure("fast_sigmoid(s)", -80.0F, 80.0F, [](double x) { return 1 / (1 + std::exp(-x)); }).first < 2);
    const auto phi = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
    CHECK(measure("fast_normal(s).distribution", -4.0F, 6.0F, phi).second < 1e-6);
    CHECK(measure("fast_normal(s).distribution", -12.0F, -4.0F, phi).second < 5e-6);
  }

  TEST_CASE("bad scores are one sentence") {
    check_error([] { CustomScore("not a name", silu_source); }, {"not a name", "the name of its struct"});
    check_error([] { CustomScore("1st", silu_source); }, {"1st"});
    check_error([] { CustomScore("", silu_source); }, {"cannot be called"});
    check_error([] { CustomScore("MySilu", " \n"); }, {"MySilu has no source"});
    check_error([] { run<float>({.score = Score::custom}); }, {"no custom_score is given"});
    check_error([] { run<float>({.score = Score::relu, .custom_score = CustomScore("MySilu", silu_source)}); },
                {"MySilu", "relu", "Score::custom"});
    check_error([] { sylvit::parse_score("custom"); }, {"there is no score"});
  }

  TEST_CASE("a source that does not compile is one sentence with the compiler's message") {
    const auto fails = [](const char* name, const std::string& source, std::initializer_list<std::string> parts) {
      std::string sentence;
      try {
        const OnDevice<float> tensor(16 * 8, {1, 1, 8, 16});
        const AttentionInputs inputs{.q = tensor.view(), .k = tensor.view(), .v = tensor.view()};
        attention_prepare(device(), described(CustomScore(name, source)), inputs, false);
      } catch (const sylvit::Error& error) {
        sentence = error.what();
      }
      CAPTURE(sentence);
      CHECK(sentence.starts_with("the custom score " + std::string(name) + " does not compile: "));
      CHECK(sentence.find('\n') == std::string::npos);
      for (const std::string& part : parts) CHECK(sentence.find(part) != std::string::npos);
    };
    fails("Broken", "\nstruct Broken { static float value(float s) { return s + unknown_thing; }\n};",
          {"Broken:2:", "unknown_thing"});
    fails("Half", "struct Half { static float value(float s) { return s; } };", {"slope", "Half"});
    fails("Wide",
          "struct Wide { static double value(float s) { return s; } static float slope(float) { return 1.0F; } };",
          {"Wide::value must take and give a float"});
    fails("Open", "struct Open { static float value(float s) { return s; }", {"Open"});
    // The device is none the worse for it.
    CHECK(!run<float>({.score = Score::silu}).o.empty());
  }
}
