// Every device is checked against the reference, so it is checked itself: gradients against central finite differences,
// losses, positions and patches against numbers worked out by hand, and whole models against PyTorch's.
#include <sylvit/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "reference/vit.hpp"

TEST_SUITE_BEGIN("reference/vit_reference");

namespace {

using sylvit::Pooling;
using sylvit::Positions;
using sylvit::Score;
using sylvit::VitConfig;
using sylvit::VitParameter;
using sylvit::reference::sincos_positions;
using sylvit::reference::vit_backward;
using sylvit::reference::vit_forward;
using sylvit::reference::vit_loss;
using sylvit::reference::VitGradients;
using sylvit::reference::VitLoss;
using sylvit::reference::VitLossValue;
using sylvit::reference::VitOutput;
using sylvit::reference::VitTensors;

/// Uniform numbers in [-1, 1) by splitmix64, which is easy to write again elsewhere: PyTorch was given the same ones.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  double next() { return static_cast<double>(bits() >> 11) * 0x1p-52 - 1; }
  std::vector<double> take(std::int64_t size) {
    std::vector<double> values(static_cast<std::size_t>(size));
    for (double& value : values) value = next();
    return values;
  }

 private:
  std::uint64_t state_;
};

constexpr std::int64_t batch = 2;

/// Not test::tiny_vit: what PyTorch says belongs to these sizes.
VitConfig tiny() {
  return {
      .width = 32, .depth = 2, .heads = 2, .mlp = 48, .patch = 4, .image_height = 8, .image_width = 12, .classes = 5};
}

bool ends_with_one_of(const std::string& name, std::initializer_list<const char*> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](const char* end) { return name.ends_with(end); });
}

/// Linear weights that keep the size of what they multiply, factors around 1, all else around 0.
VitTensors random_parameters(const VitConfig& config, Numbers& numbers) {
  VitTensors parameters;
  for (const VitParameter& parameter : sylvit::vit_parameters(config)) {
    std::vector<double> values = numbers.take(parameter.shape.elements());
    const bool weight = ends_with_one_of(parameter.name, {".weight"});
    const bool linear = weight && parameter.shape.rank() > 1;
    const bool factor = !linear && (weight || ends_with_one_of(parameter.name, {".head_scale", ".alpha"}));
    const auto inputs = static_cast<double>(parameter.shape.elements() / parameter.shape[0]);
    for (double& value : values) value = linear ? 1.75 / std::sqrt(inputs) * value : (factor ? 1 : 0) + 0.5 * value;
    parameters[parameter.name] = std::move(values);
  }
  return parameters;
}

std::vector<double> random_images(const VitConfig& config, Numbers& numbers) {
  return numbers.take(batch * config.channels * config.image_height * config.image_width);
}

/// Model and loss, and what PyTorch 2.15 says in fp64 to them: its conv2d, layer_norm, gelu, softmax, cross_entropy and
/// binary_cross_entropy_with_logits put together as timm does, and its own gradients.
struct Case {
  std::string name;
  std::function<void(VitConfig&, VitLoss&)> apply;
  double loss;
  double logits;    // the sum of all logits, each times a number of the stream
  double gradient;  // the sum of the gradients of all parameters in their order, each times a number of the stream
};

const std::vector<double> soft_targets{0.25, 0.5, 0, 0.25, 0, 0.125, 0, 0, 0, 0.75};  // the second image's sum to 0.875

const std::vector<Case> cases{
    {"softmax", [](VitConfig&, VitLoss&) {}, 0.812266039759191, -2.90039044406044, -5.04844773425896},
    {"relu, qk-norm, average, smoothing",
     [](VitConfig& config, VitLoss& loss) {
       config.score = Score::relu;
       config.qk_norm = true;
       config.pooling = Pooling::average;
       loss.label_smoothing = 0.125;
     },
     1.11305839001689, -0.0395641325800292, 1.19146255095178},
    {"relu2, gate, average without class token before the norm, sigmoid loss",
     [](VitConfig& config, VitLoss& loss) {
       config.score = Score::relu2;
       config.gate = true;
       config.pooling = Pooling::average;
       config.class_token = false;
       config.norm_after_pooling = true;
       loss.kind = VitLoss::Kind::sigmoid;
     },
     4.50500324229073, -2.880437933117, 8.47181626626863},
    {"gelu, head scale, map, soft targets",
     [](VitConfig& config, VitLoss& loss) {
       config.score = Score::gelu;
       config.head_scale = true;
       config.pooling = Pooling::map;
       loss.labels.clear();
       loss.targets = soft_targets;
     },
     1.41585638909695, -2.67316761380788, 4.08291150771406},
    {"gelu_tanh, head alpha, approximate GELU, sigmoid loss with soft targets and smoothing",
     [](VitConfig& config, VitLoss& loss) {
       config.score = Score::gelu_tanh;
       config.head_alpha = true;
       config.gelu_tanh = true;
       loss.kind = VitLoss::Kind::sigmoid;
       loss.label_smoothing = 0.25;
       loss.labels.clear();
       loss.targets = soft_targets;
     },
     4.34405814468827, -1.04445633938145, -5.32870795444428},
    {"softplus, alpha 1/2, sin-cos positions with class token, large epsilon",
     [](VitConfig& config, VitLoss&) {
       config.score = Score::softplus;
       config.alpha = 0.5F;
       config.positions = Positions::sincos;
       config.norm_epsilon = 0.125F;
     },
     2.8130487778451, -2.93539124103618, -1.50956736078347},
    {"identity, divisor, sin-cos positions without class token, map, approximate GELU",
     [](VitConfig& config, VitLoss&) {
       config.score = Score::identity;
       config.divisor = 3.5F;
       config.positions = Positions::sincos;
       config.pooling = Pooling::map;
       config.class_token = false;
       config.gelu_tanh = true;
     },
     2.44371256601504, 2.45344296369127, -10.7921683095095},
    {"relu6, all options of the attention, average with class token before the norm",
     [](VitConfig& config, VitLoss& loss) {
       config.score = Score::relu6;
       config.qk_norm = config.gate = config.head_scale = config.head_alpha = true;
       config.divisor = 2.5F;
       config.pooling = Pooling::average;
       config.norm_after_pooling = true;
       config.norm_epsilon = 0.125F;
       loss.kind = VitLoss::Kind::sigmoid;
       loss.label_smoothing = 0.125;
     },
     5.14784762550472, -1.18402133633333, -9.93689781275444},
    {"sigmoid, qk-norm, average without class token",
     [](VitConfig& config, VitLoss&) {
       config.score = Score::sigmoid;
       config.qk_norm = true;
       config.pooling = Pooling::average;
       config.class_token = false;
     },
     1.45311781276608, -1.00801861031541, -3.76500642723442},
    {"silu, all options of the attention, map without class token",
     [](VitConfig& config, VitLoss&) {
       config.score = Score::silu;
       config.qk_norm = config.gate = config.head_scale = config.head_alpha = true;
       config.pooling = Pooling::map;
       config.class_token = false;
     },
     1.05158021482005, -0.552226819344086, -0.154184657901982},
    {"softmax, qk-norm, gate, head scale, map, soft targets and smoothing",
     [](VitConfig& config, VitLoss& loss) {
       config.qk_norm = config.gate = config.head_scale = true;
       config.pooling = Pooling::map;
       config.norm_epsilon = 0.125F;
       loss.label_smoothing = 0.125;
       loss.labels.clear();
       loss.targets = soft_targets;
     },
     2.27296768776929, -7.14159080702603, -0.456856526995872},
};

/// All that a case needs, drawn from one stream of numbers.
struct Problem {
  VitConfig config = tiny();
  VitLoss loss;
  VitTensors parameters;
  std::vector<double> images;
  Numbers numbers;

  Problem(const Case& of, std::uint64_t seed) : numbers(seed) {
    loss.labels = {3, 0};
    of.apply(config, loss);
    parameters = random_parameters(config, numbers);
    images = random_images(config, numbers);
  }
};

Problem plain_problem() { return {cases[0], 1}; }

void check_close(const std::vector<double>& values, const std::vector<double>& expected, double tolerance = 1e-12) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(values[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i])));
  }
}

double weighted_sum(const std::vector<double>& values, Numbers& numbers) {
  double sum = 0;
  for (const double value : values) sum += value * numbers.next();
  return sum;
}

double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

/// Some entries of the gradient of one parameter, among them the largest, against central differences.
void check_gradient(Problem& problem, std::vector<double>& parameter, const std::vector<double>& gradient) {
  constexpr double step = 1e-5;
  REQUIRE(gradient.size() == parameter.size());
  const auto steepest =
      std::max_element(gradient.begin(), gradient.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  std::vector<std::size_t> entries{static_cast<std::size_t>(steepest - gradient.begin())};
  while (entries.size() < 4) entries.push_back(problem.numbers.bits() % parameter.size());
  const auto loss = [&] {
    const VitOutput output = vit_forward(problem.config, problem.parameters, problem.images);
    return vit_loss(problem.loss, output.logits, problem.config.classes).loss;
  };
  for (const std::size_t i : entries) {
    CAPTURE(i);
    const double kept = parameter[i];
    parameter[i] = kept + step;
    const double above = loss();
    parameter[i] = kept - step;
    const double below = loss();
    parameter[i] = kept;
    const double numeric = (above - below) / (2 * step);
    CHECK(std::abs(gradient[i] - numeric) <= 1e-6 * largest(gradient) + 1e-9);
  }
}

}  // namespace

TEST_CASE("reference model: gradients agree with finite differences") {
  std::uint64_t seed = 0;
  for (const Case& one : cases) {
    CAPTURE(one.name);
    Problem problem(one, ++seed);
    const VitGradients result = vit_backward(problem.config, problem.parameters, problem.images, problem.loss);
    CHECK(result.gradients.size() == problem.parameters.size());
    for (const VitParameter& parameter : sylvit::vit_parameters(problem.config)) {
      CAPTURE(parameter.name);
      const std::vector<double>& gradient = result.gradients.at(parameter.name);
      check_gradient(problem, problem.parameters.at(parameter.name), gradient);
      // Gradients that are zero would agree by luck. A bias of the keys adds the same to all scores of a query, which
      // softmax does not see.
      if (problem.config.score == Score::softmax && parameter.name.ends_with(".k_norm.bias")) {
        CHECK(largest(gradient) < 1e-12);
      } else {
        CHECK(largest(gradient) > 1e-4);
      }
    }
  }
}

TEST_CASE("reference model: outputs, losses and gradients are PyTorch's") {
  std::uint64_t seed = 0;
  for (const Case& one : cases) {
    CAPTURE(one.name);
    Problem problem(one, ++seed);
    const VitGradients result = vit_backward(problem.config, problem.parameters, problem.images, problem.loss);
    const double logits = weighted_sum(result.logits, problem.numbers);
    double gradient = 0;
    for (const VitParameter& parameter : sylvit::vit_parameters(problem.config))
      gradient += weighted_sum(result.gradients.at(parameter.name), problem.numbers);
    check_close({result.loss, logits, gradient}, {one.loss, one.logits, one.gradient}, 1e-10);
  }
}

TEST_CASE("reference model: layers by name") {
  for (const Case& one : cases) {
    CAPTURE(one.name);
    const Problem problem(one, 5);
    const VitConfig& config = problem.config;
    const VitOutput output = vit_forward(config, problem.parameters, problem.images);
    CHECK(output.logits == vit_backward(config, problem.parameters, problem.images, problem.loss).logits);
    std::vector<std::string> names{"embedding", "blocks.0.heads", "blocks.0.attention",
                                   "blocks.0",  "blocks.1.heads", "blocks.1.attention",
                                   "blocks.1"};
    if (!config.norm_after_pooling) names.emplace_back("norm");
    names.emplace_back("pooled");
    REQUIRE(output.layers.size() == names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      CHECK(output.layers[i].first == names[i]);
      CHECK(&output.layer(names[i]) == &output.layers[i].second);
      const std::int64_t tokens = names[i] == "pooled" ? 1 : config.tokens();
      CHECK(output.layers[i].second.size() == static_cast<std::size_t>(batch * tokens * config.width));
    }
    CHECK_THROWS_AS(output.layer("blocks.2"), sylvit::Error);
  }
}

TEST_CASE("reference model: images do not see each other") {
  for (const Case& one : cases) {
    CAPTURE(one.name);
    const Problem problem(one, 6);
    const auto half = problem.images.begin() + static_cast<std::ptrdiff_t>(problem.images.size() / 2);
    std::vector<double> apart = vit_forward(problem.config, problem.parameters, {problem.images.begin(), half}).logits;
    const VitOutput second = vit_forward(problem.config, problem.parameters, {half, problem.images.end()});
    apart.insert(apart.end(), second.logits.begin(), second.logits.end());
    CHECK(vit_forward(problem.config, problem.parameters, problem.images).logits == apart);
  }
}

TEST_CASE("reference model: branches that project to zero leave the tokens alone") {
  Problem problem = plain_problem();
  for (auto& parameter : problem.parameters)
    if (ends_with_one_of(parameter.first, {".proj.weight", ".proj.bias", ".fc2.weight", ".fc2.bias"}) &&
        parameter.first.starts_with("blocks."))
      std::fill(parameter.second.begin(), parameter.second.end(), 0.0);
  const VitOutput output = vit_forward(problem.config, problem.parameters, problem.images);
  CHECK(output.layer("blocks.0") == output.layer("embedding"));
  CHECK(output.layer("blocks.1") == output.layer("embedding"));
  CHECK(largest(output.layer("blocks.1.heads")) > 0.1);
  CHECK(largest(output.layer("blocks.1.attention")) == 0);
}

TEST_CASE("reference model: sin-cos positions by hand") {
  VitConfig config = tiny();
  config.width = 16;
  config.heads = 1;
  config.positions = Positions::sincos;
  const auto join = [](std::initializer_list<std::vector<double>> quarters) {
    std::vector<double> all;
    for (const std::vector<double>& quarter : quarters) all.insert(all.end(), quarter.begin(), quarter.end());
    return all;
  };
  // w is 1, 10000^(-1/3), 10000^(-2/3) and 10000^-1; the rest was worked out with 40 digits.
  const std::vector<double> sin_0{0, 0, 0, 0};
  const std::vector<double> cos_0{1, 1, 1, 1};
  const std::vector<double> sin_w{0.84147098480789651, 0.046399223464731272, 0.0021544330233656039,
                                  9.9999999833333333e-5};
  const std::vector<double> cos_w{0.54030230586813972, 0.99892297604063044, 0.99999767920648087, 0.999999995};
  const std::vector<double> sin_2w{0.9092974268256817, 0.092698500778727227, 0.0043088560467428117,
                                   0.00019999999866666667};
  const std::vector<double> cos_2w{-0.41614683654714239, 0.99569422412373986, 0.99999071683669566, 0.99999998000000007};
  for (const bool class_token : {true, false}) {
    CAPTURE(class_token);
    config.class_token = class_token;
    const std::vector<double> positions = sincos_positions(config);
    REQUIRE(positions.size() == static_cast<std::size_t>(config.tokens() * config.width));
    const auto token = [&](std::ptrdiff_t index) {
      const auto begin = positions.begin() + index * 16;
      return std::vector<double>(begin, begin + 16);
    };
    const std::ptrdiff_t first = class_token ? 1 : 0;
    if (class_token) CHECK(token(0) == std::vector<double>(16, 0.0));
    check_close(token(first), join({sin_0, cos_0, sin_0, cos_0}), 1e-14);
    check_close(token(first + 2), join({sin_2w, cos_2w, sin_0, cos_0}), 1e-14);
    check_close(token(first + 3), join({sin_0, cos_0, sin_w, cos_w}), 1e-14);  // the grid is 2 x 3
  }
}

TEST_CASE("reference model: the order of tokens and of the numbers in a patch") {
  const VitConfig config = tiny();
  Numbers numbers(7);
  VitTensors parameters = random_parameters(config, numbers);
  // Output o picks number o + 16 of the patch's 3 x 4 x 4: the second and third channel.
  std::vector<double>& weight = parameters.at("patch_embed.proj.weight");
  std::fill(weight.begin(), weight.end(), 0.0);
  for (std::size_t o = 0; o < 32; ++o) weight[o * 48 + o + 16] = 1;
  std::vector<double>& bias = parameters.at("patch_embed.proj.bias");
  for (std::size_t o = 0; o < 32; ++o) bias[o] = 0.001 * static_cast<double>(o);
  std::vector<double>& positions = parameters.at("pos_embed");
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = 10000 * static_cast<double>(i / 32);
  parameters.at("cls_token").assign(32, 0.5);
  std::vector<double> images(std::size_t{2} * 3 * 8 * 12);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<double>(i);

  std::vector<double> expected;
  for (std::size_t b = 0; b < 2; ++b) {
    expected.insert(expected.end(), 32, 0.5);
    for (std::size_t patch = 0; patch < 6; ++patch)
      for (std::size_t o = 0; o < 32; ++o) {
        const std::size_t channel = 1 + o / 16;
        const std::size_t y = patch / 3 * 4 + o / 4 % 4;
        const std::size_t x = patch % 3 * 4 + o % 4;
        expected.push_back(static_cast<double>(b * 288 + channel * 96 + y * 12 + x) + 0.001 * static_cast<double>(o) +
                           10000 * static_cast<double>(patch + 1));
      }
  }
  check_close(vit_forward(config, parameters, images).layer("embedding"), expected);
}

TEST_CASE("reference model: the loss of uniform logits") {
  Problem problem = plain_problem();
  problem.parameters.at("head.weight").assign(32 * 5, 0);
  problem.parameters.at("head.bias").assign(5, 0);
  for (const double smoothing : {0.0, 0.3}) {
    problem.loss.label_smoothing = smoothing;
    problem.loss.kind = VitLoss::Kind::softmax;
    check_close({vit_backward(problem.config, problem.parameters, problem.images, problem.loss).loss}, {std::log(5.0)});
    problem.loss.kind = VitLoss::Kind::sigmoid;
    check_close({vit_backward(problem.config, problem.parameters, problem.images, problem.loss).loss},
                {5 * std::log(2.0)});
  }
}

TEST_CASE("reference model: losses by hand") {
  VitLoss loss;
  loss.labels = {0, 1};
  const std::vector<double> logits{0, std::log(3.0), 7, 7};  // softmax: 1/4 3/4 1/2 1/2; sigmoid of the first: 1/2 3/4
  const double ln2 = std::log(2.0);
  const double ln3 = std::log(3.0);
  const auto check = [&](double value, const std::vector<double>& gradient) {
    const VitLossValue result = vit_loss(loss, logits, 2);
    check_close({result.loss}, {value});
    check_close(result.grad_logits, gradient);
  };
  check((2 * ln2 + ln2) / 2, {-0.375, 0.375, 0.25, -0.25});
  loss.label_smoothing = 0.5;  // the targets are 3/4 1/4 and 1/4 3/4
  check((2 * ln2 - 0.25 * ln3 + ln2) / 2, {-0.25, 0.25, 0.125, -0.125});
  loss.kind = VitLoss::Kind::sigmoid;
  const double at_seven = std::log1p(std::exp(-7.0));  // -log sigmoid(7); -log sigmoid(-7) is 7 more
  const double sigmoid_seven = 1 / (1 + std::exp(-7.0));
  check((ln2 + 2 * ln2 - 0.25 * ln3 + 2 * at_seven + 7) / 2,
        {-0.125, 0.25, sigmoid_seven / 2 - 0.125, sigmoid_seven / 2 - 0.375});

  for (const VitLoss::Kind kind : {VitLoss::Kind::softmax, VitLoss::Kind::sigmoid}) {
    VitLoss soft{kind, 0.25, {}, {1, 0, 0, 1}};
    VitLoss hard{kind, 0.25, {0, 1}, {}};
    CHECK(vit_loss(soft, logits, 2).loss == vit_loss(hard, logits, 2).loss);
    CHECK(vit_loss(soft, logits, 2).grad_logits == vit_loss(hard, logits, 2).grad_logits);
    // Large logits cost what they should and no more.
    check_close({vit_loss(VitLoss{kind, 0, {0}, {}}, {1e4, -1e4}, 2).loss}, {0});
    check_close({vit_loss(VitLoss{kind, 0, {1}, {}}, {1e4, -1e4}, 2).loss}, {2e4});
  }
  // Targets need not sum to 1: here the loss is 3 log 4 + 2 (log 4 - log 3).
  const VitLossValue many = vit_loss(VitLoss{VitLoss::Kind::softmax, 0, {}, {3, 2}}, {0, ln3}, 2);
  check_close({many.loss}, {10 * ln2 - 2 * ln3});
  check_close(many.grad_logits, {5 * 0.25 - 3, 5 * 0.75 - 2});
}

TEST_CASE("reference model: what does not fit is refused") {
  const auto refused = [](const std::function<void(Problem&)>& spoil) {
    Problem problem = plain_problem();
    spoil(problem);
    try {
      vit_backward(problem.config, problem.parameters, problem.images, problem.loss);
    } catch (const sylvit::Error&) {
      return true;
    }
    return false;
  };
  CHECK(!refused([](Problem&) {}));
  CHECK(refused([](Problem& problem) { problem.config.heads = 3; }));
  CHECK(refused([](Problem& problem) { problem.config.qk_norm = true; }));
  CHECK(refused([](Problem& problem) { problem.parameters.erase("norm.bias"); }));
  CHECK(refused([](Problem& problem) { problem.parameters["fc_norm.bias"].resize(32); }));
  CHECK(refused([](Problem& problem) { problem.parameters.at("head.weight").pop_back(); }));
  CHECK(refused([](Problem& problem) { problem.images.pop_back(); }));
  CHECK(refused([](Problem& problem) { problem.images.clear(); }));
  CHECK(refused([](Problem& problem) { problem.loss.labels = {1}; }));
  CHECK(refused([](Problem& problem) { problem.loss.labels = {1, 5}; }));
  CHECK(refused([](Problem& problem) { problem.loss.labels = {-1, 2}; }));
  CHECK(refused([](Problem& problem) { problem.loss.labels.clear(); }));
  CHECK(refused([](Problem& problem) { problem.loss.targets = soft_targets; }));
  CHECK(refused([](Problem& problem) { problem.loss = {VitLoss::Kind::softmax, 0, {}, {1, 2, 3}}; }));
  CHECK(refused([](Problem& problem) { problem.loss.label_smoothing = 1.5; }));
  CHECK(refused([](Problem& problem) { problem.loss.label_smoothing = std::nan(""); }));
  CHECK_THROWS_AS(vit_loss(VitLoss{VitLoss::Kind::softmax, 0, {0}, {}}, {1, 2, 3}, 2), sylvit::Error);
  CHECK_THROWS_AS(vit_loss(VitLoss{VitLoss::Kind::softmax, 0, {0}, {}}, {}, 2), sylvit::Error);
  CHECK_THROWS_AS(vit_loss(VitLoss{VitLoss::Kind::softmax, 0, {0}, {}}, {1}, 0), sylvit::Error);
}

TEST_SUITE_END();
