#include <sylvit/training.hpp>

#include <bit>
#include <cstring>
#include <thread>

#include "base/counts.hpp"
#include "nn/loss.hpp"
#include "nn/optimizer.hpp"
#include "reference/optimizer.hpp"
#include "reference/vit.hpp"
#include "runtime/rehearsal.hpp"
#include "support.hpp"
#include "vit/model_cases.hpp"

using namespace sylvit;
using namespace sylvit::test;

namespace {

Shape image_shape(const VitConfig& config, std::int64_t batch) {
  return {batch, config.channels, config.image_height, config.image_width};
}

/// Three images and their labels on the device.
struct Batch {
  explicit Batch(const VitConfig& config)
      : images(std::span<const float>(random_images(config, 3)), image_shape(config, 3)),
        targets(std::span<const std::int64_t>(labels), Shape{3}) {}

  TensorView first_images(std::int64_t count) const { return images.view().slice(0, 0, count); }
  TensorView first_targets(std::int64_t count) const { return targets.view().slice(0, 0, count); }

  OnDevice<float> images;
  OnDevice<std::int64_t> targets;
};

VitParameters parameters_of(const Device& on, const VitConfig& config, DType dtype) {
  VitParameters parameters(on, config, dtype);
  for (const auto& [name, values] : random_parameters(config)) parameters.write(name, values);
  parameters.update_copy();
  return parameters;
}

std::vector<std::byte> bytes_of(const TensorView& view) {
  std::vector<std::byte> bytes(view.span_bytes());
  device().wait();
  if (!bytes.empty()) device().queue().memcpy(bytes.data(), view.data(), bytes.size()).wait();
  return bytes;
}

std::vector<float> numbers_of(const TensorView& view) {
  const std::vector<std::byte> bytes = bytes_of(view);
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

/// The sum of a window's micro-batches: each half by itself, the first half as large as a power of two.
std::vector<float> tree_sum(std::span<const std::vector<float>> leaves) {
  if (leaves.size() == 1) return leaves[0];
  const std::size_t half = std::bit_ceil(leaves.size()) / 2;
  std::vector<float> sum = tree_sum(leaves.first(half));
  const std::vector<float> rest = tree_sum(leaves.subspan(half));
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += rest[i];
  return sum;
}

/// With which no gradient is finite.
constexpr float too_large = 3e38F;

const AdamWOptions adamw{.weight_decay = 0.5F};
const SgdOptions sgd{.momentum = 0.9F, .weight_decay = 0.5F, .nesterov = true};

bool is_bias(const VitParameter& parameter) { return parameter.name.find("bias") != std::string::npos; }
bool is_no_vector(const VitParameter& parameter) { return parameter.shape.rank() > 1; }

/// The defaults, or nothing as it is by default.
TrainingOptions optioned(DType dtype, const OptimizerOptions& optimizer, bool changed) {
  TrainingOptions made{.dtype = dtype, .batch = 3, .optimizer = optimizer};
  if (changed) {
    made.recompute = true;
    made.loss = {.loss = Loss::sigmoid, .smoothing = 0.1F};
    made.loss_scale = 8.0F;
    made.decays = is_bias;
  }
  return made;
}

/// Of three updates, the second without clipping, the learning rates different.
UpdateOptions update_of(int i) {
  return {.learning_rate = 0.01F * static_cast<float>(i + 1), .max_norm = i == 1 ? 0.0F : 0.5F};
}

/// As many as parameters, each with what lies after it.
std::vector<nn::Segment> segments_of(const VitConfig& config, const TrainingOptions& wanted) {
  std::vector<nn::Segment> parts;
  for (const VitParameter& parameter : vit_parameters(config))
    parts.push_back(
        {(parameter.shape.elements() + 63) / 64 * 64, wanted.decays ? is_bias(parameter) : is_no_vector(parameter)});
  return parts;
}

/// All that a step changes.
using Bits = std::vector<std::vector<std::byte>>;

/// A model in training, by the library's operations one after the other.
struct ByHand {
  ByHand(const VitConfig& config, const TrainingOptions& wanted)
      : options(wanted),
        parameters(parameters_of(device(), config, wanted.dtype)),
        model(device(), config,
              {.dtype = wanted.dtype, .batch = 3, .use = VitUse::training, .recompute = wanted.recompute}),
        gradients(device(), config, "a test"),
        first(device(), config, "a test"),
        second(device(), config, "a test"),
        segments(device(), segments_of(config, wanted)),
        state(device(), segments.total()),
        logits(static_cast<std::size_t>(3 * config.classes), Shape{3, config.classes}),
        logits_gradient(static_cast<std::size_t>(3 * config.classes), Shape{3, config.classes}),
        losses(std::size_t{3}, Shape{3}),
        mean(std::size_t{1}, Shape{1}) {}

  Bits train(const Batch& batch, float learning_rate, float max_norm) {
    const TensorView gradient(logits_gradient.data(), options.dtype, logits.view().shape());
    const float scale = options.loss_scale.value_or(default_loss_scale(options.dtype));
    model.forward(parameters, batch.images.view(), logits.view());
    nn::cross_entropy(device(), logits.view(), batch.targets.view(), losses.view(), mean.view(), gradient, options.loss,
                      scale);
    model.backward(parameters, batch.images.view(), gradient, gradients);
    nn::write_step_control(device(), gradients.flat(), state, {.gradient_scale = 1 / scale, .max_norm = max_norm});
    if (const auto* chosen = std::get_if<AdamWOptions>(&options.optimizer)) {
      AdamWOptions now = *chosen;
      now.learning_rate = learning_rate;
      nn::adamw(device(), parameters.values().flat(), gradients.flat(), first.flat(), second.flat(), parameters.copy(),
                segments, state, now);
    } else {
      SgdOptions now = std::get<SgdOptions>(options.optimizer);
      now.learning_rate = learning_rate;
      nn::sgd(device(), parameters.values().flat(), gradients.flat(), first.flat(), parameters.copy(), segments, state,
              now);
    }
    return {bytes_of(logits.view()),
            bytes_of(losses.view()),
            bytes_of(mean.view()),
            bytes_of(gradients.flat()),
            bytes_of(parameters.values().flat()),
            bytes_of(parameters.copy())};
  }

  TrainingOptions options;
  VitParameters parameters;
  Vit model;
  VitBuffer gradients, first, second;
  nn::Segments segments;
  nn::StepState state;
  OnDevice<float> logits, logits_gradient, losses, mean;
};

Bits bits_of(const TrainingStep& step, const VitParameters& parameters) {
  return {bytes_of(step.logits()),
          bytes_of(step.losses()),
          bytes_of(step.mean_loss()),
          bytes_of(step.gradients().flat()),
          bytes_of(parameters.values().flat()),
          bytes_of(parameters.copy())};
}

std::size_t files_in(const std::filesystem::path& directory) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) ++count;
  return count;
}

}  // namespace

TEST_SUITE("vit/training") {
  TEST_CASE("passes have names") {
    for (const Pass pass : all_passes) CHECK(parse_pass(name_of(pass)) == pass);
    CHECK(name_of(Pass::forward_backward) == "forward_backward");
    CHECK(parse_pass("backward") == Pass::forward_backward);
    check_error([] { (void)parse_pass("forwards"); }, {"forwards", "did you mean forward?", "forward_backward, train"});
  }

  TEST_CASE("a step has the bits of its operations one by one") {
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const OptimizerOptions& optimizer : {OptimizerOptions(adamw), OptimizerOptions(sgd)}) {
        // Half of the cases with every option that there is, each with both types and both optimisers.
        const bool changed = (dtype == DType::bf16) == (optimizer.index() == 1);
        const VitConfig config = options()[changed ? 1 : 0].second;
        TrainingOptions wanted = optioned(dtype, optimizer, changed);
        CAPTURE(name_of(dtype));
        CAPTURE(optimizer.index());
        const Batch batch(config);
        VitParameters parameters = parameters_of(device(), config, dtype);
        TrainingStep step(device(), config, wanted);
        ByHand expected(config, wanted);
        for (int i = 0; i < 3; ++i) {
          const UpdateOptions update = update_of(i);
          step.train(parameters, batch.images.view(), batch.targets.view(), update);
          CHECK(bits_of(step, parameters) == expected.train(batch, *update.learning_rate, update.max_norm));
        }
        const StepReport report = step.wait_and_read_report();
        CHECK(report.norm == expected.state.wait_and_read(device()).norm);
        CHECK(report.norm > 0.5F);  // so that clipping has something to do
        CHECK(report.applied);
        CHECK(report.taken == 3);
        CHECK(report.skipped == 0);
      }
  }

  TEST_CASE("loss and gradients are those of the reference") {
    for (const std::size_t i : {0, 3, 5}) {
      const VitConfig config = options()[i].second;
      const Loss loss = i == 3 ? Loss::sigmoid : Loss::softmax;
      CAPTURE(options()[i].first);
      const Batch batch(config);
      const VitParameters parameters = parameters_of(device(), config, DType::f32);
      TrainingStep step(device(), config, {.batch = 3, .loss = {.loss = loss, .smoothing = 0.1F}, .loss_scale = 4.0F});
      step.forward_backward(parameters, batch.images.view(), batch.targets.view());
      reference::VitTensors exact_parameters;
      for (const auto& [name, values] : random_parameters(config)) exact_parameters[name] = exact(values);
      reference::VitLoss wanted;
      wanted.kind = loss == Loss::softmax ? reference::VitLoss::Kind::softmax : reference::VitLoss::Kind::sigmoid;
      wanted.label_smoothing = static_cast<double>(0.1F);
      wanted.labels = labels;
      const reference::VitGradients expected =
          reference::vit_backward(config, exact_parameters, exact(random_images(config, 3)), wanted);
      float mean = 0;
      std::memcpy(&mean, bytes_of(step.mean_loss()).data(), sizeof(mean));
      CHECK(std::abs(static_cast<double>(mean) - expected.loss) < 1e-4 * std::max(1.0, expected.loss));
      double largest = 0;
      for (const auto& [name, values] : expected.gradients)
        for (const double value : values) largest = std::max(largest, std::abs(value));
      for (const auto& [name, values] : expected.gradients) {
        CAPTURE(name);
        CHECK(difference(step.wait_and_read_gradient(name), values, 0.01 * largest) < 1e-4);
      }
    }
  }

  TEST_CASE("a step made asks for no kernel when it runs") {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const runtime::Rehearsal rehearsal(device());
      const Device& on = rehearsal.device();
      const VitConfig config = tiny_vit();
      VitParameters parameters(on, config, dtype);
      TrainingStep step(on, config, {.dtype = dtype, .batch = 3, .optimizer = adamw, .average = true, .window = 4});
      const std::size_t made = rehearsal.kernels().size();
      CHECK(made > 20);
      const Memory images(on, 1 << 20, "a test");
      const Memory targets(on, 1 << 10, "a test");
      for (const DType target : {DType::i64, DType::i32, DType::f32})
        step.train(parameters, {images.data(), DType::f32, image_shape(config, 3)},
                   {targets.data(), target, target == DType::f32 ? Shape{3, config.classes} : Shape{3}},
                   {.max_norm = 1});
      for (int i = 0; i < 4; ++i)
        step.accumulate(parameters, {images.data(), DType::f32, image_shape(config, 3)},
                        {targets.data(), DType::i64, {3}});
      step.update(parameters);
      CHECK(rehearsal.kernels().size() == made);
      for (const runtime::KernelName& more : std::span(rehearsal.kernels()).subspan(made)) FAIL_CHECK(more.type);
    }
  }

  TEST_CASE("its kernels are built in one batch") {
    if (device().info().toolchain != Toolchain::rtc) return;
    const TemporaryDirectory directory;
    const Setting cache("SYLVIT_CACHE_DIR", directory.path().string());
    VitConfig config = tiny_vit();
    config.depth = 1;
    // A context of its own, or kernels that other tests have built would be there.
    const sycl::device hardware = device().queue().get_device();
    const Device on(sycl::queue(sycl::context(hardware), hardware, sycl::property::queue::in_order{}));
    const std::size_t before = files_in(directory.path());
    TrainingStep step(on, config, {.optimizer = sgd});
    // A file for each part of the batch, of which there are no more than threads.
    const std::size_t made = files_in(directory.path());
    CHECK(made > before);
    CHECK(made - before <= std::max(1U, std::thread::hardware_concurrency()));
    VitParameters parameters(on, config, DType::f32);
    const Memory images(on, 1 << 14, "a test");
    const Memory targets(on, sizeof(std::int64_t), "a test");
    on.queue().memset(images.data(), 0, images.bytes());
    on.queue().memset(targets.data(), 0, targets.bytes());
    step.train(parameters, {images.data(), DType::f32, image_shape(config, 1)}, {targets.data(), DType::i64, {1}});
    CHECK(step.wait_and_read_report().taken == 1);
    CHECK(files_in(directory.path()) == made);
  }

  TEST_CASE("training twice gives the same bits, and so does a queue out of order") {
    const VitConfig config = options()[1].second;
    const TrainingOptions wanted = optioned(DType::bf16, adamw, true);
    const Batch batch(config);
    const auto trained = [&](const Device& on) {
      VitParameters parameters = parameters_of(on, config, wanted.dtype);
      TrainingStep step(on, config, wanted);
      sycl::event last;
      for (int i = 0; i < 3; ++i)
        last = step.train(parameters, batch.images.view(), batch.targets.view(), update_of(i), {&last, 1});
      on.wait();
      return bits_of(step, parameters);
    };
    const Bits first = trained(device());
    CHECK(trained(device()) == first);
    CHECK(trained(Device(sycl::queue(device().queue().get_context(), device().queue().get_device()))) == first);
  }

  TEST_CASE("a smaller batch uses the front of the memory") {
    const Setting setting("SYLVIT_GEMM", "builtin");
    const VitConfig config = options()[1].second;
    const Batch batch(config);
    const auto run = [&](std::int64_t planned) {
      const VitParameters parameters = parameters_of(device(), config, DType::f32);
      TrainingStep step(device(), config, {.batch = planned});
      step.forward_backward(parameters, batch.first_images(2), batch.first_targets(2));
      CHECK(step.logits().shape() == Shape{2, config.classes});
      CHECK(step.losses().shape() == Shape{2});
      return bits_of(step, parameters);
    };
    CHECK(run(3) == run(2));
  }

  TEST_CASE("rates, decay and its factor act on the parameters that they are for") {
    const VitConfig config = options()[0].second;
    const Batch batch(config);
    for (const OptimizerOptions& optimizer : {OptimizerOptions(adamw), OptimizerOptions(sgd)}) {
      VitParameters parameters = parameters_of(device(), config, DType::f32);
      const auto rate = [&](const VitParameter& parameter) { return layer_rate(config, parameter, 0.5F); };
      TrainingStep step(device(), config,
                        {.batch = 3, .optimizer = optimizer, .decays = decays_by_weight, .rate = rate});
      step.forward_backward(parameters, batch.images.view(), batch.targets.view());
      const UpdateOptions update{.learning_rate = 0.01F, .decay_factor = 0.25F};
      step.update(parameters, update);
      for (const VitParameter& parameter : vit_parameters(config)) {
        CAPTURE(parameter.name);
        const auto count = static_cast<std::size_t>(parameter.shape.elements());
        std::vector<double> expected = exact(random_parameters(config).at(parameter.name));
        const bool decays = parameter.name.ends_with(".weight") && parameter.name.find("norm") == std::string::npos;
        const reference::PerParameter each{std::vector<double>(count, decays ? 1 : 0),
                                           std::vector<double>(count, static_cast<double>(rate(parameter)))};
        const std::vector<double> gradient = exact(step.wait_and_read_gradient(parameter.name));
        std::vector<double> first(count);
        std::vector<double> second(count);
        if (optimizer.index() == 1)
          reference::adamw(expected, gradient, first, second, each, {0.01, 0.9, 0.999, 1e-8, 0.5, false, 0.25}, 1);
        else
          reference::sgd(expected, gradient, first, each, {0.01, 0.9, 0, 0, 0.5, true, 0.25});
        CHECK(difference(parameters.values().read(parameter.name), expected, 1e-3) < 2e-5);
      }
    }
    // What timm's param_groups_layer_decay gives for a depth of 2.
    const auto rate_of = [&](const char* name) { return layer_rate(config, {name, {1}}, 0.5F); };
    for (const char* name : {"cls_token", "pos_embed", "patch_embed.proj.bias"}) CHECK(rate_of(name) == 0.125F);
    CHECK(rate_of("blocks.0.mlp.fc1.weight") == 0.25F);
    for (const char* name : {"blocks.1.attn.qkv.bias", "norm.weight"}) CHECK(rate_of(name) == 0.5F);
    for (const char* name : {"head.weight", "fc_norm.bias", "attn_pool.latent"}) CHECK(rate_of(name) == 1.0F);
    CHECK(layer_rate(config, {"blocks.11.norm1.bias", {1}}, 2.0F) == 0.001953125F);
    CHECK(!decays_by_weight({"pos_embed", {1, 7, 48}}));
    CHECK(!decays_by_weight({"norm.weight", {48}}));
    CHECK(decays_by_weight({"patch_embed.proj.weight", {48, 3, 4, 4}}));
  }

  TEST_CASE("the average begins with the first parameters, follows them, and runs in a model") {
    const VitConfig config = options()[1].second;
    const Batch batch(config);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      VitParameters parameters = parameters_of(device(), config, dtype);
      TrainingStep step(device(), config, {.dtype = dtype, .batch = 3, .optimizer = adamw, .average = true});
      check_error([&] { (void)step.average(); }, {"no average", "before the first update"});
      std::vector<double> expected = exact(numbers_of(parameters.values().flat()));
      for (int i = 0; i < 3; ++i) {
        UpdateOptions update = update_of(i);
        update.average_decay = i == 2 ? 0.9F : 0.5F;
        step.train(parameters, batch.images.view(), batch.targets.view(), update);
        reference::average(expected, exact(numbers_of(parameters.values().flat())), update.average_decay);
      }
      const std::vector<float> average = numbers_of(step.average().flat());
      CHECK(difference(average, expected, 1e-3) < 1e-6);
      CHECK(difference(average, exact(numbers_of(parameters.values().flat())), 1e-3) > 1e-4);
      VitParameters averaged(device(), config, dtype);
      averaged.assign(step.average());
      CHECK(numbers_of(averaged.values().flat()) == average);
      VitParameters written(device(), config, dtype);
      for (const VitParameter& parameter : vit_parameters(config))
        written.write(parameter.name, step.average().read(parameter.name));
      written.update_copy();
      CHECK(bytes_of(averaged.copy()) == bytes_of(written.copy()));
      const auto version = averaged.version();
      averaged.assign(step.average());
      CHECK(averaged.version() != version);
      VitParameters others(device(), tiny_vit(), dtype);
      check_error([&] { others.assign(step.average()); }, {"another model"});
    }
    const TrainingStep without(device(), config, {.optimizer = adamw});
    check_error([&] { (void)without.average(); }, {"no average", "TrainingOptions::average"});
    CHECK(training_bytes(device(), config, {.optimizer = sgd, .average = true}) ==
          training_bytes(device(), config, {.optimizer = adamw}));
  }

  TEST_CASE("metrics are those of each update, and reading them waits for nothing that comes later") {
    const VitConfig config = options()[0].second;
    const Batch batch(config);
    VitParameters parameters = parameters_of(device(), config, DType::f32);
    TrainingStep step(device(), config, {.batch = 2, .optimizer = sgd, .window = 2, .history = 4});
    CHECK(step.read_metrics().wait().empty());
    CHECK(step.read_metrics().ready());
    std::vector<StepMetrics> expected;
    const auto train = [&](int i) {
      if (i == 2) step.set_loss_scale(4);
      if (i == 3) step.set_loss_scale(too_large);
      double loss = 0;
      StepMetrics metrics{.update = i, .loss_scale = i < 2 ? 1.0F : i == 2 ? 4.0F : too_large};
      for (const auto& [first, count] : {std::pair{0, 2}, std::pair{2, 1}}) {
        if (i % 2 == 1 && first == 2) continue;
        step.accumulate(parameters, batch.images.view().slice(0, first, count),
                        batch.targets.view().slice(0, first, count));
        for (const float one : numbers_of(step.losses())) loss += static_cast<double>(one);
        const std::vector<float> logits = numbers_of(step.logits());
        for (std::int64_t b = 0; b < count; ++b) {
          const auto row = std::span(logits).subspan(base::size(b * config.classes), base::size(config.classes));
          const auto best = std::ranges::max_element(row) - row.begin();
          if (best == labels[base::size(first + b)]) ++metrics.right;
        }
        metrics.images += count;
      }
      step.update(parameters, {.learning_rate = 0.2F});
      metrics.loss = static_cast<float>(loss / static_cast<double>(metrics.images));
      const StepReport report = step.wait_and_read_report();
      metrics.norm = report.norm;
      metrics.applied = report.applied;
      expected.push_back(metrics);
    };
    const auto check = [&](const std::vector<StepMetrics>& got, std::size_t first) {
      REQUIRE(got.size() == expected.size() - first);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const StepMetrics& wanted = expected[first + i];
        CHECK(got[i].update == wanted.update);
        CHECK(std::abs(got[i].loss - wanted.loss) < 1e-5F * std::abs(wanted.loss));
        CHECK((got[i].norm == wanted.norm || (std::isnan(got[i].norm) && std::isnan(wanted.norm))));
        CHECK(got[i].loss_scale == wanted.loss_scale);
        CHECK(got[i].applied == wanted.applied);
        CHECK(got[i].images == wanted.images);
        CHECK(got[i].right == wanted.right);
      }
    };
    for (int i = 0; i < 3; ++i) train(i);
    const PendingMetrics three = step.read_metrics();
    train(3);
    CHECK(!expected.back().applied);
    const PendingMetrics one = step.read_metrics();
    expected.pop_back();
    check(three.wait(), 0);
    CHECK(three.ready());
    check(three.wait(), 0);
    CHECK(one.wait().size() == 1);
    CHECK(one.wait()[0].update == 3);
    CHECK(!one.wait()[0].applied);
    // More than are kept: the last ones.
    step.set_loss_scale(1);
    for (int i = 0; i < 6; ++i) {
      step.accumulate(parameters, batch.first_images(1), batch.first_targets(1));
      step.update(parameters);
    }
    const std::vector<StepMetrics> last = step.read_metrics().wait();
    REQUIRE(last.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) CHECK(last[i].update == static_cast<std::int64_t>(6 + i));
    CHECK(step.read_metrics().wait().empty());
    check_error([&] { (void)training_bytes(device(), config, {.optimizer = sgd, .history = 0}); }, {"metrics of 0"});
  }

  TEST_CASE("a loss scale follows the gradients, and depends on what was seen, not when") {
    LossScaler scaler({.first = 8, .interval = 3, .least = 2, .most = 16, .delay = 1});
    const auto see = [](LossScaler& to, std::int64_t update, bool applied, float scale) {
      to.see({.update = update, .loss_scale = scale, .applied = applied});
    };
    CHECK(scaler.scale(0) == 8);
    CHECK(scaler.scale(1) == 8);
    check_error([&] { (void)scaler.scale(2); }, {"update 2", "update 0", "0 updates"});
    see(scaler, 0, false, 8);
    CHECK(scaler.scale(1) == 8);  // seen too early to count
    CHECK(scaler.scale(2) == 4);
    see(scaler, 1, false, 8);  // it was on its way with the old scale
    CHECK(scaler.scale(3) == 4);
    check_error([&] { (void)scaler.scale(1); }, {"update 1", "forgotten"});
    check_error([&] { see(scaler, 3, true, 4); }, {"update 3", "update 2"});
    see(scaler, 2, true, 4);
    see(scaler, 3, true, 4);
    CHECK(scaler.scale(5) == 4);
    const auto saved = scaler.state();
    see(scaler, 4, true, 4);
    CHECK(scaler.scale(6) == 8);
    see(scaler, 5, false, 4);  // even less was too much
    CHECK(scaler.scale(7) == 2);
    see(scaler, 6, false, 8);
    see(scaler, 7, false, 2);
    CHECK(scaler.scale(9) == 2);  // the least
    LossScaler other({.first = 8, .interval = 3, .least = 2, .most = 16, .delay = 1});
    other.restore(saved);
    CHECK(other.state() == saved);
    see(other, 4, true, 4);
    CHECK(other.scale(6) == 8);
    for (int i = 5; i < 20; ++i) see(other, i, true, other.scale(i));
    CHECK(other.scale(20) == 16);  // the most
    auto wrong = saved;
    wrong.erase("seen");
    check_error([&] { other.restore(wrong); }, {"loss scaler", "\"seen\""});
    wrong = saved;
    wrong["scale.1"] = -1;
    check_error([&] { other.restore(wrong); }, {"scale.1"});
    wrong = saved;
    wrong["more"] = 1;
    check_error([&] { other.restore(wrong); }, {"5 numbers", "4 of them"});
    check_error([&] { const LossScaler made({.first = 1, .least = 2}); }, {"first scale"});
    check_error([&] { const LossScaler made({.growth = 0.5F}); }, {"growth"});
    check_error([&] { const LossScaler made({.backoff = 2}); }, {"backoff"});
    check_error([&] { const LossScaler made({.interval = 0}); }, {"interval"});
    check_error([&] { const LossScaler made({.delay = -1}); }, {"delay"});
  }

  TEST_CASE("f16 training finds its loss scale") {
    const VitConfig config = tiny_vit();
    const Batch batch(config);
    VitParameters parameters = parameters_of(device(), config, DType::f16);
    TrainingStep step(device(), config, {.dtype = DType::f16, .batch = 3, .optimizer = adamw});
    LossScaler scaler({.first = 16777216, .interval = 100});
    std::vector<StepMetrics> seen;
    PendingMetrics pending = step.read_metrics();
    for (std::int64_t i = 0; i < 24; ++i) {
      for (const StepMetrics& metrics : pending.wait()) {
        scaler.see(metrics);
        seen.push_back(metrics);
      }
      step.set_loss_scale(scaler.scale(i));
      step.train(parameters, batch.images.view(), batch.targets.view());
      pending = step.read_metrics();
    }
    CHECK(!seen.front().applied);
    CHECK(seen.back().applied);
    CHECK(seen.back().loss_scale < seen.front().loss_scale);
    CHECK(std::isfinite(seen.back().loss));
  }

  TEST_CASE("a step goes on from its state with the same bits, also in the middle of a window") {
    const VitConfig config = options()[1].second;
    const Batch batch(config);
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const OptimizerOptions& optimizer : {OptimizerOptions(adamw), OptimizerOptions(sgd)})
        for (const int stop : {0, 4, 7, 9, 12}) {
          CAPTURE(name_of(dtype));
          CAPTURE(optimizer.index());
          CAPTURE(stop);
          const TrainingOptions wanted{
              .dtype = dtype, .batch = 2, .optimizer = optimizer, .average = optimizer.index() == 1, .window = 5};
          // Windows of four micro-batches, an update behind the fourth. One update is skipped.
          const auto go_on = [&](TrainingStep& step, VitParameters& parameters, int first, int end) {
            for (int i = first; i < end; ++i) {
              const std::int64_t images = i % 3 == 0 ? 1 : 2;
              if (i % 4 == 0) step.set_loss_scale(i == 4 ? too_large : static_cast<float>(2 + i));
              step.accumulate(parameters, batch.images.view().slice(0, i % 2, images),
                              batch.targets.view().slice(0, i % 2, images));
              if (i % 4 == 3)
                step.update(parameters, {.learning_rate = 0.01F * static_cast<float>(i), .average_decay = 0.9F});
            }
          };
          const auto all_of = [&](const TrainingStep& step, const VitParameters& parameters) {
            Bits bits{bytes_of(parameters.values().flat()), bytes_of(parameters.copy())};
            const TrainingState state = step.wait_and_get_state();
            for (const TrainingState::Buffer& buffer : state.buffers) bits.push_back(bytes_of(buffer.buffer->flat()));
            return std::pair(bits, state.numbers);
          };
          VitParameters parameters = parameters_of(device(), config, dtype);
          TrainingStep step(device(), config, wanted);
          go_on(step, parameters, 0, stop);
          const TrainingState state = step.wait_and_get_state();
          using Tensors = std::map<std::string, std::vector<float>>;
          std::map<std::string, Tensors> saved;
          for (const VitParameter& parameter : vit_parameters(config)) {
            saved["parameters"][parameter.name] = parameters.values().read(parameter.name);
            for (const TrainingState::Buffer& buffer : state.buffers)
              saved[buffer.name][parameter.name] = buffer.buffer->read(parameter.name);
          }
          go_on(step, parameters, stop, 17);
          const auto expected = all_of(step, parameters);

          VitParameters resumed(device(), config, dtype);
          for (const auto& [name, values] : saved.at("parameters")) resumed.write(name, values);
          resumed.update_copy();
          TrainingStep next(device(), config, wanted);
          std::size_t filled = 0;
          next.restore(state.numbers, [&](const std::string& name, const VitBuffer& buffer) {
            for (const auto& [parameter, values] : saved.at(name)) buffer.write(parameter, values);
            ++filled;
          });
          CHECK(filled == state.buffers.size());
          go_on(next, resumed, stop, 17);
          const auto got = all_of(next, resumed);
          CHECK(got.second == expected.second);
          CHECK(got.first == expected.first);
          CHECK(expected.second.at("skipped") == 1);
        }
  }

  TEST_CASE("a state of another training step is an error, and changes nothing") {
    const VitConfig config = tiny_vit();
    const Batch batch(config);
    VitParameters parameters = parameters_of(device(), config, DType::f32);
    TrainingStep step(device(), config, {.batch = 3, .optimizer = sgd, .window = 3});
    for (int i = 0; i < 3; ++i) step.accumulate(parameters, batch.images.view(), batch.targets.view());
    const auto numbers = step.wait_and_get_state().numbers;
    const auto names_of = [](const TrainingStep& of) {
      std::vector<std::string> names;
      for (const TrainingState::Buffer& buffer : of.wait_and_get_state().buffers) names.push_back(buffer.name);
      return names;
    };
    CHECK(names_of(step) == std::vector<std::string>{"sgd.momentum", "window.gradients.1", "window.gradients"});
    const auto refused = [&](const std::map<std::string, double>& given, std::initializer_list<std::string> parts) {
      check_error([&] { step.restore(given, [](const std::string&, const VitBuffer&) { FAIL("filled"); }); }, parts);
      CHECK(step.wait_and_get_state().numbers == numbers);
    };
    const auto with = [&](const std::string& name, double value) {
      auto changed = numbers;
      changed[name] = value;
      return changed;
    };
    auto fewer = numbers;
    fewer.erase("window.loss.1");
    refused(fewer, {"training step", "window.loss.1"});
    refused(with("window.loss.0", 1), {"numbers", "known"});
    refused(with("window.passes", 4), {"window.passes", "4"});
    refused(with("taken", 0.5), {"taken"});
    refused(with("skipped", -1), {"skipped"});
    refused(with("loss_scale", NAN), {"loss_scale"});
    refused(with("averages", 1), {"averages"});
    refused(with("window.images", 0), {"without images"});
    TrainingStep without(device(), config, {.batch = 3, .window = 3});
    check_error([&] { without.restore(numbers, {}); }, {"numbers"});
    // Without gradients on their way, and between forward_backward() and update().
    step.update(parameters);
    CHECK(names_of(step) == std::vector<std::string>{"sgd.momentum"});
    step.forward_backward(parameters, batch.images.view(), batch.targets.view());
    CHECK(names_of(step) == std::vector<std::string>{"sgd.momentum", "window.gradients"});
  }

  TEST_CASE("micro-batches are added up in a tree that depends on their number alone") {
    const VitConfig config = options()[1].second;
    const Batch batch(config);
    for (const DType dtype : {DType::f32, DType::f16}) {
      const VitParameters parameters = parameters_of(device(), config, dtype);
      TrainingStep step(device(), config, {.dtype = dtype, .batch = 2, .window = 9});
      // Each of two and one images in turn: which images they are does not matter here.
      const auto images_of = [](std::int64_t i) { return i % 3 == 2 ? 1 : 2; };
      const auto accumulate = [&](std::int64_t i) {
        step.accumulate(parameters, batch.images.view().slice(0, i % 2, images_of(i)),
                        batch.targets.view().slice(0, i % 2, images_of(i)));
      };
      std::vector<std::vector<float>> leaves;
      std::int64_t images = 0;
      for (std::int64_t i = 0; i < 9; ++i) {
        accumulate(i);
        step.sum_window();
        CHECK(step.gradient_scale() == step.loss_scale() * static_cast<float>(images_of(i)) / 2);
        leaves.push_back(numbers_of(step.gradients().flat()));
      }
      for (std::int64_t count = 1; count <= 9; ++count) {
        CAPTURE(count);
        images = 0;
        for (std::int64_t i = 0; i < count; ++i) {
          accumulate(i);
          images += images_of(i);
        }
        step.sum_window();
        CHECK(step.gradient_scale() == static_cast<float>(step.loss_scale() * static_cast<double>(images) / 2));
        CHECK(same_bits(numbers_of(step.gradients().flat()), tree_sum(std::span(leaves).first(base::size(count)))));
      }
    }
  }

  TEST_CASE("accumulation is the large batch, also where the last micro-batch is smaller") {
    for (const std::size_t i : {0, 3}) {
      const VitConfig config = options()[i].second;
      const Batch batch(config);
      TrainingOptions wanted{.batch = 3, .optimizer = adamw};
      const auto trained = [&](std::vector<std::int64_t> parts) {
        wanted.batch = parts.front();
        wanted.window = static_cast<std::int64_t>(parts.size());
        VitParameters parameters = parameters_of(device(), config, DType::f32);
        TrainingStep step(device(), config, wanted);
        for (int update = 0; update < 2; ++update) {
          std::int64_t first = 0;
          for (const std::int64_t count : parts) {
            step.accumulate(parameters, batch.images.view().slice(0, first, count),
                            batch.targets.view().slice(0, first, count));
            first += count;
          }
          if (update == 1) step.sum_window();
          if (update == 0) step.update(parameters, {.learning_rate = 0.01F, .max_norm = 0.5F});
        }
        std::map<std::string, std::vector<double>> gradients;
        for (const VitParameter& parameter : vit_parameters(config))
          gradients[parameter.name] = exact(step.wait_and_read_gradient(parameter.name));
        return std::pair(gradients, step.wait_and_read_report().norm);
      };
      const auto [expected, norm] = trained({3});
      for (const std::vector<std::int64_t>& parts : {std::vector<std::int64_t>{1, 1, 1}, {2, 1}}) {
        const auto [got, got_norm] = trained(parts);
        CHECK(std::abs(got_norm - norm) < 1e-5F * norm);
        double largest = 0;
        for (const auto& [name, values] : expected)
          for (const double value : values) largest = std::max(largest, std::abs(value));
        for (const auto& [name, values] : expected) {
          CAPTURE(name);
          const std::vector<float> narrow(got.at(name).begin(), got.at(name).end());
          CHECK(difference(narrow, values, 0.01 * largest) < 2e-4);
        }
      }
    }
  }

  TEST_CASE("a window of one micro-batch has the bits of a step without windows") {
    const VitConfig config = options()[1].second;
    const Batch batch(config);
    for (const float scale : {1.0F, 3.0F}) {
      const auto trained = [&](std::int64_t window) {
        VitParameters parameters = parameters_of(device(), config, DType::bf16);
        TrainingStep step(
            device(), config,
            {.dtype = DType::bf16, .batch = 3, .loss_scale = scale, .optimizer = adamw, .window = window});
        for (int i = 0; i < 2; ++i) {
          if (window > 1) {
            step.accumulate(parameters, batch.images.view(), batch.targets.view());
            step.update(parameters, update_of(i));
          } else {
            step.train(parameters, batch.images.view(), batch.targets.view(), update_of(i));
          }
        }
        return bits_of(step, parameters);
      };
      CHECK(trained(1) == trained(4));
    }
  }

  TEST_CASE("windows that cannot be are errors, and the memory of one grows with its logarithm") {
    const VitConfig config = tiny_vit();
    const Batch batch(config);
    VitParameters parameters = parameters_of(device(), config, DType::f32);
    TrainingStep step(device(), config, {.batch = 3, .optimizer = sgd, .window = 2});
    const auto accumulate = [&] { step.accumulate(parameters, batch.images.view(), batch.targets.view()); };
    check_error([&] { step.sum_window(); }, {"no window", "accumulate()"});
    accumulate();
    (void)step.wait_and_read_gradient("head.bias");
    check_error([&] { step.forward_backward(parameters, batch.images.view(), batch.targets.view()); },
                {"window of 1 micro-batches", "sum_window()"});
    accumulate();
    check_error(accumulate, {"window of 2 micro-batches is full", "TrainingOptions::window"});
    check_error([&] { (void)step.wait_and_read_gradient("head.bias"); }, {"2 micro-batches", "sum_window()"});
    step.update(parameters);
    (void)step.wait_and_read_gradient("head.bias");
    step.forward_backward(parameters, batch.images.view(), batch.targets.view());
    for (const std::int64_t window : {std::int64_t{0}, std::int64_t{1} << 21})
      check_error([&] { (void)training_bytes(device(), config, {.window = window}); },
                  {"window of " + std::to_string(window), "1 to 1048576"});
    const std::size_t flat = step.gradients().flat().span_bytes();
    const auto bytes = [&](std::int64_t window) { return training_bytes(device(), config, {.window = window}); };
    CHECK(bytes(2) == bytes(1) + flat + 8);
    CHECK(bytes(3) == bytes(4));
    CHECK(bytes(1024) == bytes(1) + 10 * (flat + 8));
  }

  TEST_CASE("an update whose gradients are not finite changes nothing and is counted") {
    const VitConfig config = tiny_vit();
    const Batch good(config);
    Batch bad(config);
    std::vector<float> pixels = bad.images.read();
    pixels[5] = INFINITY;
    bad.images.write(pixels);
    Batch mislabelled(config);
    mislabelled.targets.write(std::vector<std::int64_t>{3, 7, 6});
    const std::vector<OptimizerOptions> optimizers{adamw, sgd};
    for (const OptimizerOptions& optimizer : optimizers) {
      VitParameters parameters = parameters_of(device(), config, DType::bf16);
      TrainingStep step(device(), config, {.dtype = DType::bf16, .batch = 3, .optimizer = optimizer});
      const auto train = [&](const Batch& batch) {
        step.train(parameters, batch.images.view(), batch.targets.view());
        return std::pair(bytes_of(parameters.values().flat()), bytes_of(parameters.copy()));
      };
      const auto before = train(good);
      CHECK(train(bad) == before);
      StepReport report = step.wait_and_read_report();
      CHECK(!report.applied);
      CHECK(!std::isfinite(report.norm));
      CHECK(train(mislabelled) == before);
      CHECK(step.wait_and_read_report().skipped == 2);
      CHECK(train(good) != before);
      report = step.wait_and_read_report();
      CHECK(report.applied);
      CHECK(report.taken == 2);
      CHECK(report.skipped == 2);
    }
  }

  TEST_CASE("a loss scale that is a power of two changes no bit of f32, whenever it is set") {
    const VitConfig config = tiny_vit();
    const Batch batch(config);
    const auto run = [&](float scale, float next) {
      VitParameters parameters = parameters_of(device(), config, DType::f32);
      TrainingStep step(device(), config, {.batch = 3, .optimizer = sgd});
      CHECK(step.loss_scale() == 1);
      step.set_loss_scale(scale);
      CHECK(step.loss_scale() == scale);
      step.forward_backward(parameters, batch.images.view(), batch.targets.view());
      step.set_loss_scale(next);
      CHECK(step.loss_scale() == scale);
      const std::vector<float> gradient = step.wait_and_read_gradient("blocks.1.attn.qkv.weight");
      step.update(parameters);  // unclipped, so that a wrong scale shows
      step.train(parameters, batch.images.view(), batch.targets.view());
      CHECK(step.loss_scale() == next);
      return std::tuple(gradient, bytes_of(parameters.values().flat()), step.wait_and_read_report().norm);
    };
    CHECK(run(64, 16) == run(1, 1));
    CHECK(default_loss_scale(DType::f16) == 1024);
    CHECK(TrainingStep(device(), config, {.loss_scale = 16.0F}).loss_scale() == 16);
  }

  TEST_CASE("bytes are those that a step allocates") {
    const VitConfig config = vit_preset("Ti/16");
    const VitOptions model{.batch = 2, .use = VitUse::training};
    const std::size_t activations = activation_bytes(device(), config, model);
    const VitBuffer buffer(device(), config, "a test");
    const std::size_t flat = buffer.flat().span_bytes();
    const std::size_t none = training_bytes(device(), config, {.batch = 2});
    const std::size_t one = training_bytes(device(), config, {.batch = 2, .optimizer = sgd});
    const std::size_t two = training_bytes(device(), config, {.batch = 2, .optimizer = adamw});
    CHECK(none >= activations + flat);
    CHECK(none < activations + flat + flat / 10);
    CHECK(one >= none + flat);
    CHECK(two == one + flat);
    CHECK(training_bytes(device(), config, {.batch = 2, .recompute = true}) < none);
    CHECK(TrainingStep(device(), tiny_vit(), {.batch = 2, .optimizer = adamw}).bytes() ==
          training_bytes(device(), tiny_vit(), {.batch = 2, .optimizer = adamw}));
  }

  TEST_CASE("what does not fit is an error that says so, and nothing is counted") {
    const VitConfig config = tiny_vit();
    const Batch batch(config);
    VitParameters parameters = parameters_of(device(), config, DType::f32);
    VitParameters others = parameters_of(device(), options()[1].second, DType::f32);
    TrainingStep step(device(), config, {.batch = 2, .optimizer = adamw});
    const TensorView images = batch.first_images(2);
    const TensorView targets = batch.first_targets(2);
    check_error([&] { step.train(parameters, batch.images.view(), batch.targets.view()); }, {"3 images", "1 to 2"});
    check_error([&] { step.train(parameters, images, batch.targets.view()); }, {"targets", "i64 [3]", "[2, 7]"});
    check_error([&] { step.train(parameters, images, images); }, {"targets", "f32 [2, 3, 12, 8]"});
    check_error([&] { step.train(parameters, images, {}); }, {"targets"});
    check_error([&] { step.train(parameters, {}, targets); }, {"images"});
    check_error([&] { step.train(parameters, targets, targets); }, {"images"});
    check_error([&] { step.forward_backward(others, images, targets); }, {"another model"});
    check_error([&] { step.train(others, images, targets); }, {"another model"});
    check_error([&] { step.update(parameters); }, {"no forward_backward"});
    step.forward_backward(parameters, images, targets);
    check_error([&] { step.update(others); }, {"another model"});
    check_error([&] { step.update(parameters, {.learning_rate = -1.0F}); }, {"learning rate", "-1"});
    check_error([&] { step.update(parameters, {.max_norm = -1.0F}); }, {"largest norm"});
    check_error([&] { step.update(parameters, {.decay_factor = NAN}); }, {"decay factor", "nan"});
    check_error([&] { step.update(parameters, {.average_decay = 1.0F}); }, {"average's decay"});
    CHECK(step.wait_and_read_report().taken == 0);
    step.update(parameters);
    CHECK(step.wait_and_read_report().taken == 1);
    check_error([&] { step.set_loss_scale(0); }, {"loss scale", "positive"});

    TrainingStep gradients_only(device(), config, {.batch = 2});
    check_error([&] { gradients_only.train(parameters, images, targets); }, {"without an optimiser"});
    CHECK(gradients_only.wait_and_read_report().taken == 0);

    const auto make = [&](const TrainingOptions& options) { const TrainingStep made(device(), config, options); };
    check_error([&] { make({.batch = 0}); }, {"at least one image"});
    check_error([&] { make({.loss = {.smoothing = 2}}); }, {"smoothing"});
    check_error([&] { make({.loss_scale = -1.0F}); }, {"loss scale"});
    check_error([&] { make({.optimizer = AdamWOptions{.beta1 = 1}}); }, {"first beta"});
    check_error([&] { make({.optimizer = SgdOptions{.momentum = 1}}); }, {"momentum"});
    const auto too_many = static_cast<std::int64_t>(device().info().memory_bytes / 1000);
    check_error([&] { make({.batch = too_many}); }, {"cannot allocate", "the device has"});
    check_error([&] { (void)training_bytes(device(), config, {.batch = std::int64_t{1} << 62}); }, {"cannot allocate"});
  }
}
