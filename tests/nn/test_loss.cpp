#include <numeric>

#include "nn/loss.hpp"
#include "nn/training_support.hpp"
#include "reference/loss.hpp"

using namespace sylvit;
using namespace sylvit::test;

namespace {

struct Case {
  std::int64_t batch, classes;
};
const std::vector<Case> cases{{1, 1}, {2, 2}, {3, 7}, {5, 16}, {4, 33}, {8, 1000}, {2, 21843}, {130, 10}};

std::vector<std::int64_t> labels_for(const Case& c) {
  std::vector<std::int64_t> labels;
  for (std::int64_t b = 0; b < c.batch; ++b) labels.push_back((b * 7919 + c.classes - 1) % c.classes);
  return labels;
}

std::vector<double> one_hot(const std::vector<std::int64_t>& labels, std::int64_t classes) {
  std::vector<double> targets(labels.size() * static_cast<std::size_t>(classes));
  for (std::size_t b = 0; b < labels.size(); ++b)
    targets[b * static_cast<std::size_t>(classes) + static_cast<std::size_t>(labels[b])] = 1;
  return targets;
}

/// Targets that are not negative and, image by image, add up to one.
std::vector<float> soft_targets(const Case& c) {
  auto targets = noise<float>(c.batch * c.classes, 3, 1.0F);
  for (std::int64_t b = 0; b < c.batch; ++b) {
    float sum = 0;
    for (std::int64_t i = b * c.classes; i < (b + 1) * c.classes; ++i)
      sum += targets[static_cast<std::size_t>(i)] = std::abs(targets[static_cast<std::size_t>(i)]) + 0.001F;
    for (std::int64_t i = b * c.classes; i < (b + 1) * c.classes; ++i) targets[static_cast<std::size_t>(i)] /= sum;
  }
  return targets;
}

/// Of every gradient.
constexpr float scale = 8.0F;

/// Runs the loss for logits of type L and a gradient of type T, and compares all it writes.
template <class L, class T>
void check(const Case& c, const std::vector<L>& logits, const TensorView& targets,
           const std::vector<double>& expected_targets, const LossOptions& options) {
  CAPTURE(c.batch);
  CAPTURE(c.classes);
  CAPTURE(options.smoothing);
  CAPTURE(static_cast<int>(options.loss));
  const OnDevice<L> in(std::span<const L>(logits), Shape{c.batch, c.classes});
  const Guarded<float> losses(Shape{c.batch});
  const Guarded<float> mean(Shape{1});
  const Guarded<T> gradient(Shape{c.batch, c.classes});
  nn::cross_entropy(training_device(), in.view(), targets, losses.view(), mean.view(), gradient.view(), options, scale);
  auto expected = reference::cross_entropy(options.loss == Loss::softmax, exact(logits), expected_targets,
                                           static_cast<std::size_t>(c.batch), static_cast<double>(options.smoothing));
  const auto got = losses.read();
  // Terms of the size of the logits are added up and cancel.
  double size = 1;
  for (const L logit : logits) size = std::max(size, std::abs(static_cast<double>(static_cast<float>(logit))));
  const double absolute = size * (options.loss == Loss::softmax ? 2e-6 : 1e-6);
  check_close(got, expected.losses, 4e-6, absolute);
  check_close(mean.read(), {expected.mean}, 4e-6, absolute);
  for (double& value : expected.gradient) value *= static_cast<double>(scale);
  const double step = sizeof(T) == 2 ? 6e-8 : 0;  // f16's smallest number
  check_close(gradient.read(), expected.gradient, half_unit<T> + 2e-6,
              step + static_cast<double>(scale) * 3e-7 / static_cast<double>(c.batch));
  const auto first = gradient.read();
  // Without a gradient, and once more: the same bits.
  const Guarded<float> again(Shape{c.batch});
  nn::cross_entropy(training_device(), in.view(), targets, again.view(), mean.view(), {}, options, scale);
  CHECK(same_bits(again.read(), got));
  nn::cross_entropy(training_device(), in.view(), targets, losses.view(), mean.view(), gradient.view(), options, scale);
  CHECK(same_bits(gradient.read(), first));
}

}  // namespace

TEST_SUITE("nn/loss") {
  TEST_CASE_TEMPLATE("both losses, from labels and from soft targets, with and without smoothing", T, float, bf16,
                     f16) {
    for (const Case& c : cases)
      for (const Loss loss : {Loss::softmax, Loss::sigmoid})
        for (const float smoothing : {0.0F, 0.1F}) {
          const LossOptions options{.loss = loss, .smoothing = smoothing};
          const auto labels = labels_for(c);
          const OnDevice<std::int64_t> labels64{std::span(labels), Shape{c.batch}};
          check<T, T>(c, noise<T>(c.batch * c.classes, 1, 6.0F), labels64.view(), one_hot(labels, c.classes), options);
          check<float, T>(c, noise<float>(c.batch * c.classes, 1, 6.0F), labels64.view(), one_hot(labels, c.classes),
                          options);
          const std::vector<std::int32_t> narrow(labels.begin(), labels.end());
          const OnDevice<std::int32_t> labels32{std::span(narrow), Shape{c.batch}};
          check<T, T>(c, noise<T>(c.batch * c.classes, 2, 3.0F), labels32.view(), one_hot(labels, c.classes), options);
          const auto soft = soft_targets(c);
          const OnDevice<float> soft_in{std::span(soft), Shape{c.batch, c.classes}};
          check<T, T>(c, noise<T>(c.batch * c.classes, 4, 4.0F), soft_in.view(), exact(soft), options);
        }
  }

  TEST_CASE_TEMPLATE("an image is right where its largest logit is wanted, and sums are those of the batch", T, float,
                     bf16, f16) {
    for (const Case& c : cases)
      for (const Loss loss : {Loss::softmax, Loss::sigmoid}) {
        CAPTURE(c.batch);
        CAPTURE(c.classes);
        // Few different logits, so that the largest is often there several times: the first one counts.
        std::vector<T> logits = noise<T>(c.batch * c.classes, 5, 2.0F);
        for (T& logit : logits) logit = T(std::round(static_cast<float>(logit)));
        const auto soft = soft_targets(c);
        auto labels = labels_for(c);
        std::vector<float> of_labels;
        std::vector<float> of_soft;
        for (std::int64_t b = 0; b < c.batch; ++b) {
          const auto row =
              std::span(logits).subspan(static_cast<std::size_t>(b * c.classes), static_cast<std::size_t>(c.classes));
          const auto wanted = std::span(soft).subspan(static_cast<std::size_t>(b * c.classes), row.size());
          const auto first = std::ranges::max_element(row, {}, [](T z) { return static_cast<float>(z); }) - row.begin();
          if (b % 2 == 0) labels[static_cast<std::size_t>(b)] = first;
          of_labels.push_back(labels[static_cast<std::size_t>(b)] == first ? 1.0F : 0.0F);
          of_soft.push_back(wanted[static_cast<std::size_t>(first)] == *std::ranges::max_element(wanted) ? 1.0F : 0.0F);
        }
        const OnDevice<T> in{std::span<const T>(logits), Shape{c.batch, c.classes}};
        const OnDevice<std::int64_t> hard_in{std::span<const std::int64_t>(labels), Shape{c.batch}};
        const OnDevice<float> soft_in{std::span(soft), Shape{c.batch, c.classes}};
        for (const bool hard : {true, false}) {
          const Guarded<float> losses(Shape{c.batch});
          const Guarded<float> mean(Shape{1});
          const Guarded<float> right(Shape{c.batch});
          const Guarded<float> sums(Shape{2});
          nn::cross_entropy(training_device(), in.view(), hard ? hard_in.view() : soft_in.view(), losses.view(),
                            mean.view(), {}, {.loss = loss}, 1.0F, {}, {.right = right.view(), .sums = sums.view()});
          CHECK(right.read() == (hard ? of_labels : of_soft));
          const auto count = std::accumulate(of_labels.begin(), of_labels.end(), 0.0F);
          if (hard) CHECK(sums.read()[1] == count);
          CHECK(sums.read()[0] / static_cast<float>(c.batch) == mean.read()[0]);
        }
      }
  }

  TEST_CASE("the gradient of a mean over more images than are there") {
    const Case c{3, 7};
    const auto logits = noise<float>(21, 1, 3.0F);
    const OnDevice<float> in{std::span(logits), Shape{3, 7}};
    const auto labels = labels_for(c);
    const OnDevice<std::int64_t> targets{std::span(labels), Shape{3}};
    const auto gradient_over = [&](std::int64_t images) {
      const OnDevice<float> losses(3, {3});
      const OnDevice<float> mean(1, {1});
      const OnDevice<float> gradient(21, {3, 7});
      nn::cross_entropy(training_device(), in.view(), targets.view(), losses.view(), mean.view(), gradient.view(), {},
                        1.0F, {}, {.images = images});
      return gradient.read();
    };
    std::vector<double> expected = exact(gradient_over(0));
    for (double& value : expected) value *= 3.0 / 16;
    check_close(gradient_over(16), expected, 1e-6, 0);
    CHECK(gradient_over(3) == gradient_over(0));
    const OnDevice<float> one(1, {1});
    const OnDevice<float> two(2, {2});
    const OnDevice<float> losses(3, {3});
    const auto counted = [&](const nn::LossCounts& counts) {
      nn::cross_entropy(training_device(), in.view(), targets.view(), losses.view(), one.view(), {}, {}, 1, {}, counts);
    };
    check_error([&] { counted({.sums = two.view()}); }, {"sums", "right"});
    check_error([&] { counted({.right = losses.view()}); }, {"count of right images", "overlaps"});
    check_error([&] { counted({.images = -1}); }, {"-1 images"});
  }

  TEST_CASE("an image's loss does not depend on the rest of the batch") {
    const Case c{5, 101};
    const auto logits = noise<float>(c.batch * c.classes, 1, 6.0F);
    const auto labels = labels_for(c);
    const OnDevice<float> in{std::span(logits), Shape{c.batch, c.classes}};
    const OnDevice<std::int64_t> targets{std::span(labels), Shape{c.batch}};
    const OnDevice<float> all(5, {5});
    const OnDevice<float> one(1, {1});
    const OnDevice<float> mean(1, {1});
    nn::cross_entropy(training_device(), in.view(), targets.view(), all.view(), mean.view(), {});
    nn::cross_entropy(training_device(), in.view().slice(0, 3, 1), targets.view().slice(0, 3, 1), one.view(),
                      mean.view(), {});
    CHECK(one.read()[0] == all.read()[3]);
  }

  TEST_CASE_TEMPLATE("large logits stay finite and right", T, float, bf16, f16) {
    const Case c{3, 12};
    std::vector<T> logits(36, T(-1e4F));
    for (std::size_t i = 0; i < 12; ++i) logits[i] = T(i % 2 == 0 ? 1e4F : -1e4F);
    for (std::size_t i = 12; i < 24; ++i) logits[i] = T(1e4F);
    logits[30] = T(1e4F);
    const std::vector<std::int64_t> labels{1, 3, 6};
    const OnDevice<std::int64_t> targets{std::span(labels), Shape{3}};
    for (const Loss loss : {Loss::softmax, Loss::sigmoid})
      for (const float smoothing : {0.0F, 0.1F})
        check<T, T>(c, logits, targets.view(), one_hot(labels, 12), {.loss = loss, .smoothing = smoothing});
  }

  TEST_CASE("a logit of -inf gives no NaN unless it is wanted") {
    std::vector<float> logits{1, 2, -INFINITY, 0};
    const std::vector<std::int64_t> labels{1};
    const OnDevice<float> in{std::span(logits), Shape{1, 4}};
    const OnDevice<std::int64_t> targets{std::span(labels), Shape{1}};
    const OnDevice<float> loss(1, {1});
    const OnDevice<float> mean(1, {1});
    nn::cross_entropy(training_device(), in.view(), targets.view(), loss.view(), mean.view(), {});
    CHECK(std::abs(loss.read()[0] - std::log(std::exp(-1.0) + 1 + std::exp(-2.0))) < 1e-6);
  }

  TEST_CASE("a NaN, or a label that is no class, is seen in the loss and in the gradient") {
    for (const Loss loss : {Loss::softmax, Loss::sigmoid})
      for (const bool bad_label : {false, true}) {
        auto logits = noise<float>(3 * 5, 1);
        if (!bad_label) logits[7] = NAN;
        const std::vector<std::int32_t> labels{1, bad_label ? 5 : 2, 4};
        const OnDevice<float> in{std::span(logits), Shape{3, 5}};
        const OnDevice<std::int32_t> targets{std::span(labels), Shape{3}};
        const OnDevice<float> losses(3, {3});
        const OnDevice<float> mean(1, {1});
        const OnDevice<float> gradient(15, {3, 5});
        nn::cross_entropy(training_device(), in.view(), targets.view(), losses.view(), mean.view(), gradient.view(),
                          {.loss = loss});
        const auto got = losses.read();
        CHECK(std::isfinite(got[0]));
        CHECK(std::isnan(got[1]));
        CHECK(std::isfinite(got[2]));
        CHECK(std::isnan(mean.read()[0]));
        CHECK(std::isnan(gradient.read()[7]));
        CHECK(std::isfinite(gradient.read()[0]));
      }
  }

  TEST_CASE("the reference's gradients are its finite differences, and the kernel's too") {
    const Case c{2, 5};
    const auto soft = soft_targets(c);
    for (const Loss loss : {Loss::softmax, Loss::sigmoid}) {
      auto logits = exact(noise<float>(10, 1));
      const auto value = [&] {
        return reference::cross_entropy(loss == Loss::softmax, logits, exact(soft), 2, 0.1).mean;
      };
      const auto gradient = reference::cross_entropy(loss == Loss::softmax, logits, exact(soft), 2, 0.1).gradient;
      std::vector<double> differences;
      for (double& logit : logits) {
        const double kept = logit;
        logit = kept + 1e-5;
        const double above = value();
        logit = kept - 1e-5;
        differences.push_back((above - value()) / 2e-5);
        logit = kept;
        CHECK(std::abs(differences.back() - gradient[differences.size() - 1]) < 1e-9);
      }
      const auto values = noise<float>(10, 1);
      const OnDevice<float> in{std::span(values), Shape{2, 5}};
      const OnDevice<float> targets{std::span(soft), Shape{2, 5}};
      const OnDevice<float> losses(2, {2});
      const OnDevice<float> mean(1, {1});
      const OnDevice<float> got(10, {2, 5});
      nn::cross_entropy(training_device(), in.view(), targets.view(), losses.view(), mean.view(), got.view(),
                        {.loss = loss, .smoothing = 0.1F});
      check_close(got.read(), differences, 0, 1e-6);
    }
  }

  TEST_CASE("known values") {
    // PyTorch: F.cross_entropy(tensor([[1., 2., 3.]]), tensor([2]), label_smoothing=s)
    const std::vector<float> logits{1, 2, 3};
    const std::vector<std::int64_t> labels{2};
    const OnDevice<float> in{std::span(logits), Shape{1, 3}};
    const OnDevice<std::int64_t> targets{std::span(labels), Shape{1}};
    const OnDevice<float> losses(1, {1});
    const OnDevice<float> mean(1, {1});
    nn::cross_entropy(training_device(), in.view(), targets.view(), losses.view(), mean.view(), {});
    CHECK(std::abs(mean.read()[0] - 0.40760597F) < 1e-6F);
    nn::cross_entropy(training_device(), in.view(), targets.view(), losses.view(), mean.view(), {},
                      {.smoothing = 0.3F});
    CHECK(std::abs(mean.read()[0] - 0.70760597F) < 1e-6F);
  }

  TEST_CASE("labels are checked on the host, by name") {
    const std::vector<std::int64_t> good{0, 9, 5};
    check_labels(std::span(good), 10);
    const std::vector<std::int64_t> large{0, 3, 10};
    check_error([&] { check_labels(std::span(large), 10); }, {"image 2", "label 10", "0 to 9"});
    const std::vector<std::int32_t> negative{0, -1, 10};
    check_error([&] { check_labels(std::span(negative), 10); }, {"image 1", "label -1"});
  }

  TEST_CASE("wrong shapes, types and numbers are refused") {
    const Memory memory(device(), 1 << 14, "a test");
    const auto tensor = [&](std::size_t offset, DType dtype, const Shape& shape) {
      return TensorView(memory.as<std::byte>() + offset, dtype, shape);
    };
    const TensorView logits = tensor(0, DType::bf16, {4, 8});
    const TensorView labels = tensor(1024, DType::i64, {4});
    const TensorView losses = tensor(2048, DType::f32, {4});
    const TensorView mean = tensor(3072, DType::f32, {1});
    const auto run = [&](const TensorView& z, const TensorView& t, const TensorView& l, const TensorView& m,
                         const TensorView& g,
                         const LossOptions& options = {}) { nn::cross_entropy(device(), z, t, l, m, g, options); };
    check_error([&] { run(logits, tensor(1024, DType::i64, {5}), losses, mean, {}); }, {"targets", "i64 [5]"});
    check_error([&] { run(logits, tensor(1024, DType::bf16, {4, 8}), losses, mean, {}); }, {"targets", "bf16"});
    check_error([&] { run(logits, labels, tensor(2048, DType::f32, {5}), mean, {}); }, {"losses", "[4]"});
    check_error([&] { run(logits, labels, losses, tensor(3072, DType::f32, {2}), {}); }, {"mean"});
    check_error([&] { run(logits, labels, losses, mean, tensor(4096, DType::f16, {4, 8})); }, {"gradient", "f16"});
    check_error([&] { run(logits, labels, losses, mean, logits); }, {"overlaps"});
    check_error([&] { run(logits, labels, losses, mean, {}, {.smoothing = 1.5F}); }, {"smoothing", "1.5"});
    check_error([&] { run(tensor(0, DType::f32, {0, 8}), labels, losses, mean, {}); }, {"no logits"});
  }
}
