#include <sylvit/vit.hpp>

#include <cmath>
#include <cstring>

#include "nn/loss.hpp"
#include "reference/vit.hpp"
#include "support.hpp"
#include "vit/model_cases.hpp"

using namespace sylvit;
using namespace sylvit::test;

namespace {

struct Result {
  std::vector<float> logits;
  float loss;
  std::map<std::string, std::vector<float>> gradients;
};

/// Logits, loss and gradients of the first `batch` images.
Result run(const VitConfig& config, DType dtype, std::int64_t batch, bool recompute = false, float loss_scale = 1,
           std::int64_t planned = 3) {
  VitParameters parameters(device(), config, dtype);
  for (const auto& [name, values] : random_parameters(config)) parameters.write(name, values);
  parameters.update_copy();
  const std::vector<float> pixels = random_images(config, static_cast<std::int64_t>(labels.size()));
  const OnDevice<float> images(
      std::span<const float>(pixels).first(static_cast<std::size_t>(batch) * pixels.size() / labels.size()),
      Shape{batch, config.channels, config.image_height, config.image_width});
  const OnDevice<std::int64_t> targets(std::span<const std::int64_t>(labels).first(static_cast<std::size_t>(batch)),
                                       Shape{batch});
  const auto count = static_cast<std::size_t>(batch * config.classes);
  const OnDevice<float> logits(count, Shape{batch, config.classes});
  const OnDevice<float> gradient(count, Shape{batch, config.classes});
  const TensorView logits_gradient(gradient.data(), dtype, Shape{batch, config.classes});
  const OnDevice<float> losses(static_cast<std::size_t>(batch), Shape{batch});
  const OnDevice<float> mean(std::size_t{1}, Shape{1});
  const VitBuffer gradients(device(), config, "a test");
  Vit model(device(), config, {.dtype = dtype, .batch = planned, .use = VitUse::training, .recompute = recompute});
  model.forward(parameters, images.view(), logits.view());
  nn::cross_entropy(device(), logits.view(), targets.view(), losses.view(), mean.view(), logits_gradient,
                    {.smoothing = 0.1F}, loss_scale);
  model.backward(parameters, images.view(), logits_gradient, gradients);
  device().wait();
  Result result{logits.read(), mean.read().front(), {}};
  for (const VitParameter& parameter : gradients.parameters()) {
    std::vector<float> values = gradients.read(parameter.name);
    for (float& value : values) value /= loss_scale;
    result.gradients[parameter.name] = std::move(values);
  }
  return result;
}

reference::VitGradients expected_of(const VitConfig& config, std::int64_t batch) {
  reference::VitTensors parameters;
  for (const auto& [name, values] : random_parameters(config)) parameters[name] = {values.begin(), values.end()};
  const std::vector<float> pixels = random_images(config, static_cast<std::int64_t>(labels.size()));
  const auto used = static_cast<std::size_t>(batch) * pixels.size() / labels.size();
  reference::VitLoss loss;
  loss.label_smoothing = static_cast<double>(0.1F);
  loss.labels.assign(labels.begin(), labels.begin() + batch);
  return reference::vit_backward(config, parameters,
                                 {pixels.begin(), pixels.begin() + static_cast<std::ptrdiff_t>(used)}, loss);
}

void check_close(const VitConfig& config, DType dtype, double bound, float loss_scale = 1) {
  const Result got = run(config, dtype, 3, false, loss_scale);
  const reference::VitGradients expected = expected_of(config, 3);
  CHECK(difference(got.logits, expected.logits, 1e-3) < bound);
  CHECK(std::abs(static_cast<double>(got.loss) - expected.loss) < bound);
  REQUIRE(got.gradients.size() == expected.gradients.size());
  double largest = 0;
  for (const auto& [name, values] : expected.gradients)
    for (const double value : values) largest = std::max(largest, std::abs(value));
  for (const auto& [name, values] : expected.gradients) {
    CAPTURE(name);
    CHECK(difference(got.gradients.at(name), values, 0.01 * largest) < bound);
  }
}

bool same_bits(const Result& a, const Result& b) {
  if (a.logits != b.logits || a.gradients.size() != b.gradients.size()) return false;
  for (const auto& [name, values] : a.gradients)
    if (std::memcmp(values.data(), b.gradients.at(name).data(), values.size() * sizeof(float)) != 0) return false;
  return true;
}

}  // namespace

TEST_SUITE("vit/vit") {
  TEST_CASE("logits, loss and every gradient are those of the reference, with every option") {
    for (const auto& [what, config] : options()) {
      CAPTURE(what);
      check_close(config, DType::f32, 1e-4);
    }
  }

  TEST_CASE("so they are with every GEMM provider") {
    const OnDevice<float> any(std::size_t{4}, Shape{2, 2});
    const OnDevice<float> out(std::size_t{4}, Shape{2, 2});
    for (const GemmProvider provider : gemm_providers(device(), {.a = any.view(), .b = any.view(), .c = out.view()})) {
      const Setting setting("SYLVIT_GEMM", std::string(name_of(provider)));
      CAPTURE(name_of(provider));
      check_close(options()[1].second, DType::f32, 1e-4);
    }
  }

  TEST_CASE("an observer sees every step's output, and it is the reference's") {
    for (const auto& [what, config] : options())
      for (const VitUse use : {VitUse::inference, VitUse::training}) {
        CAPTURE(what);
        const std::vector<float> pixels = random_images(config, 3);
        reference::VitTensors exact;
        VitParameters parameters(device(), config, DType::f32);
        for (const auto& [name, values] : random_parameters(config)) {
          parameters.write(name, values);
          exact[name] = {values.begin(), values.end()};
        }
        std::map<std::string, std::vector<double>> expected;
        reference::vit_forward(config, exact, {pixels.begin(), pixels.end()},
                               [&](const std::string& step, const std::vector<double>& output) {
                                 CHECK_MESSAGE(expected.emplace(step, output).second, step);
                               });
        const OnDevice<float> images(std::span<const float>(pixels),
                                     Shape{3, config.channels, config.image_height, config.image_width});
        const OnDevice<float> logits(static_cast<std::size_t>(3 * config.classes), Shape{3, config.classes});
        Vit model(device(), config, {.batch = 3, .use = use});
        std::vector<std::string> others;
        model.observe([&](const VitStep& step) {
          CAPTURE(step.name);
          CHECK(step.bytes > 0);
          const auto found = expected.find(step.name);
          if (found == expected.end()) {
            others.push_back(step.name);
            return;
          }
          REQUIRE(step.output.is_dense());
          REQUIRE(step.output.shape().elements() == static_cast<std::int64_t>(found->second.size()));
          std::vector<float> got(found->second.size());
          device().wait();
          device().queue().memcpy(got.data(), step.output.data(), step.output.span_bytes()).wait();
          CHECK(difference(got, found->second, 1e-3) < 1e-4);
          expected.erase(found);
        });
        model.forward(parameters, images.view(), logits.view());
        device().wait();
        for (const auto& left : expected) CHECK_MESSAGE(false, left.first << " was not observed");
        const bool kv_apart = config.pooling == Pooling::map && config.class_token;
        CHECK(others == (kv_apart ? std::vector<std::string>{"patch_embed.proj", "attn_pool.kv"}
                                  : std::vector<std::string>{"patch_embed.proj"}));
      }
  }

  TEST_CASE("16-bit models stay within their rounding") {
    check_close(options()[0].second, DType::bf16, 0.08);
    check_close(options()[1].second, DType::bf16, 0.08);
    check_close(options()[0].second, DType::f16, 0.02, 128);
    check_close(options()[4].second, DType::f16, 0.02, 128);
  }

  TEST_CASE("two runs give the same bits, and so does computing activations again") {
    for (const auto& [what, config] : options()) {
      CAPTURE(what);
      const Result first = run(config, DType::f32, 3);
      CHECK(same_bits(first, run(config, DType::f32, 3)));
      CHECK(same_bits(first, run(config, DType::f32, 3, true)));
    }
  }

  TEST_CASE("an image's logits have the same bits in any batch") {
    const Setting setting("SYLVIT_GEMM", "builtin");
    const VitConfig config = options()[1].second;
    const Result three = run(config, DType::f32, 3);
    const Result one = run(config, DType::f32, 1);
    CHECK(std::equal(one.logits.begin(), one.logits.end(), three.logits.begin()));
  }

  TEST_CASE("memory that was planned for more images serves fewer, which are cut otherwise") {
    // With fewer heads than compute units, attention's backward pass is cut by key blocks, of which there are two here.
    const VitConfig config = tiny_vit([](VitConfig& c) {
      c.heads = 1;
      c.width = 32;
      c.mlp = 32;
      c.image_height = c.image_width = 15 * c.patch;
      c.depth = 1;
    });
    std::vector<std::string> providers{"builtin"};
    if (device().info().toolchain == Toolchain::rtc)
      providers.emplace_back("onemkl");  // it wants no scratch memory of its own
    for (const std::string& provider : providers) {
      const Setting setting("SYLVIT_GEMM", provider);
      CAPTURE(provider);
      CHECK(same_bits(run(config, DType::f32, 1), run(config, DType::f32, 1, false, 1, 1)));
    }
  }

  TEST_CASE("weights that are kept packed give the same bits, and are packed anew when they change") {
    const VitConfig config = options()[1].second;
    for (const DType dtype : {DType::f32, DType::bf16}) {
      VitParameters parameters(device(), config, dtype);
      parameters.initialise(1);
      const Shape shape{2, config.channels, config.image_height, config.image_width};
      std::vector<float> pixels(static_cast<std::size_t>(shape.elements()));
      for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i * 37 % 23) / 11.0F - 1.0F;
      const OnDevice<float> images(std::span<const float>(pixels), shape);
      const OnDevice<float> logits(static_cast<std::size_t>(2 * config.classes), Shape{2, config.classes});
      Vit plain(device(), config, {.dtype = dtype, .batch = 2});
      Vit keeping(device(), config, {.dtype = dtype, .batch = 2, .constant = true});
      CHECK(keeping.bytes() == activation_bytes(device(), config, {.dtype = dtype, .batch = 2, .constant = true}));
      const auto run = [&](Vit& model) {
        model.forward(parameters, images.view(), logits.view());
        return logits.read();
      };
      const std::vector<float> first = run(plain);
      CHECK(run(keeping) == first);
      CHECK(run(keeping) == first);
      std::vector<float> weights = parameters.values().read("blocks.0.mlp.fc1.weight");
      for (float& weight : weights) weight = -2 * weight;
      parameters.write("blocks.0.mlp.fc1.weight", weights);
      parameters.update_copy();
      const std::vector<float> second = run(plain);
      CHECK(second != first);
      CHECK(run(keeping) == second);
    }
  }

  TEST_CASE("computing again costs less memory, and inference the least") {
    const VitConfig config = vit_preset("S/16");
    const auto bytes = [&](const VitOptions& options) { return activation_bytes(device(), config, options); };
    const std::size_t training = bytes({.batch = 8, .use = VitUse::training});
    const std::size_t recomputed = bytes({.batch = 8, .use = VitUse::training, .recompute = true});
    const std::size_t inference = bytes({.batch = 8});
    CHECK(recomputed < training / 3);
    CHECK(inference < recomputed / 2);
    const Vit model(device(), config, {.batch = 8});
    CHECK(model.bytes() == inference);
  }

  TEST_CASE("every preset can be planned, with every pooling") {
    for (const char* name :
         {"Ti/32", "Ti/16", "Ti/8", "S/32", "S/16", "S/8", "B/32", "B/16", "B/8", "L/32", "L/16", "L/8"})
      for (const Pooling pooling : {Pooling::token, Pooling::average, Pooling::map})
        for (const VitUse use : {VitUse::inference, VitUse::training}) {
          VitConfig config = vit_preset(name);
          config.pooling = pooling;
          config.gate = config.qk_norm = true;
          CAPTURE(name);
          CHECK(activation_bytes(device(), config, {.batch = 2, .use = use}) > 0);
        }
  }

  TEST_CASE("what does not fit is an error that says so") {
    check_error([] { (void)vit_preset("S-16"); }, {"S-16", "did you mean S/16"});
    check_error([] { (void)vit_preset("vit_smal_patch16_224"); }, {"vit_small_patch16_224"});
    check_error([] { tiny_vit([](VitConfig& c) { c.heads = 5; }).check(); }, {"48", "5"});
    check_error([] { tiny_vit([](VitConfig& c) { c.image_width = 2; }).check(); }, {"12 x 2", "patch"});
    check_error([] { tiny_vit([](VitConfig& c) { c.head_alpha = true; }).check(); }, {"softmax", "alpha"});
    check_error([] { (void)activation_bytes(device(), tiny_vit(), {.batch = std::int64_t{1} << 62}); },
                {"cannot allocate", "the images", "the device has"});
    const auto too_many = static_cast<std::int64_t>(device().info().memory_bytes / 1000);
    check_error([&] { Vit(device(), tiny_vit(), {.batch = too_many}); },
                {"cannot allocate", "the model's activations", "the device has"});
    const VitConfig config = tiny_vit();
    VitParameters parameters(device(), config, DType::f32);
    Vit model(device(), config, {.batch = 2});
    const OnDevice<float> images(std::size_t{3} * 3 * 12 * 8, Shape{3, 3, 12, 8});
    const OnDevice<float> logits(std::size_t{21}, Shape{3, 7});
    check_error([&] { model.forward(parameters, images.view(), logits.view()); }, {"3 images", "1 to 2"});
    const VitBuffer gradients(device(), config, "a test");
    check_error([&] { model.backward(parameters, images.view(), logits.view(), gradients); }, {"inference"});
    check_error([&] { parameters.write("blocks.0.attn.gate.weight", {}); }, {"blocks.0.attn.gate.weight"});
    check_error([&] { parameters.write("norm.bias", {}); }, {"norm.bias", "[48]"});
  }
}
