#include "nn/optimizer.hpp"
#include "nn/training_support.hpp"
#include "reference/optimizer.hpp"

using namespace sylvit;
using namespace sylvit::test;

namespace {

using Parts = std::vector<nn::Segment>;

std::int64_t total_of(const Parts& parts) {
  std::int64_t total = 0;
  for (const nn::Segment& part : parts) total += part.count;
  return total;
}

reference::PerParameter each_of(const Parts& parts) {
  reference::PerParameter each;
  for (const nn::Segment& part : parts) {
    each.decay.insert(each.decay.end(), static_cast<std::size_t>(part.count), part.decays ? 1 : 0);
    each.rate.insert(each.rate.end(), static_cast<std::size_t>(part.count), static_cast<double>(part.rate));
  }
  return each;
}

/// Segments smaller and larger than a run, empty ones, and neighbours that agree.
const std::vector<Parts> cases{
    {{1, true}},
    {{3, false}, {5, true}},
    {{64, true}, {0, false}, {7, false}, {9, false}, {33, true}, {1, false}, {2, true}},
    {{20001, true}, {1, false}, {1, true}, {384, false}, {40000, true}, {13, false}},
    {{500, true, 0.5F}, {9, true}, {700, true, 0.25F}, {9001, false, 0.25F}, {64, false, 0.0F}},
    {{70000, false}, {8192, true}, {8192, false}}};

Parts many_parts() {
  Parts parts;
  for (int i = 0; i < 300; ++i) parts.push_back({1 + (i * 37) % 211, i % 2 == 0});
  return parts;
}

/// Everything of a model in training, on the device and in fp64.
template <class T>
struct Training {
  explicit Training(const Parts& parts)
      : count(total_of(parts)),
        each(each_of(parts)),
        parameters({count}, noise<float>(count, 1)),
        first({count}, std::vector<float>(static_cast<std::size_t>(count))),
        second({count}, std::vector<float>(static_cast<std::size_t>(count))),
        copy({count}),
        segments(training_device(), parts),
        state(training_device(), count),
        expected(exact(noise<float>(count, 1))),
        expected_first(static_cast<std::size_t>(count)),
        expected_second(static_cast<std::size_t>(count)) {}

  /// f32 models have no copy.
  TensorView copy_view() const { return sizeof(T) == 4 ? TensorView{} : copy.view(); }

  void check_copy() {
    if (sizeof(T) == 4) return;
    std::vector<T> rounded;
    for (const float value : parameters.read()) rounded.push_back(T(value));
    CHECK(same_bits(copy.read(), rounded));
  }

  std::int64_t count;
  reference::PerParameter each;
  Guarded<float> parameters, first, second;
  Guarded<T> copy;
  nn::Segments segments;
  nn::StepState state;
  std::vector<double> expected, expected_first, expected_second;
};

std::vector<double> scaled(const std::vector<float>& values, double factor) {
  std::vector<double> result = exact(values);
  for (double& value : result) value *= factor;
  return result;
}

}  // namespace

TEST_SUITE("nn/optimizer") {
  TEST_CASE_TEMPLATE("AdamW does PyTorch's steps, with weight decay where it is wanted, scaling and clipping", T, float,
                     bf16, f16) {
    std::vector<Parts> all = cases;
    all.push_back(many_parts());
    for (const Parts& parts : all) {
      CAPTURE(total_of(parts));
      Training<T> model(parts);
      const AdamWOptions options{
          .learning_rate = 3e-3F, .beta1 = 0.9F, .beta2 = 0.99F, .epsilon = 1e-6F, .weight_decay = 0.5F};
      reference::Optimizer reference{options.learning_rate, options.beta1, options.beta2, options.epsilon,
                                     options.weight_decay};
      for (int step = 1; step <= 4; ++step) {
        // Once with decay that is no share of the learning rate.
        const std::optional<float> decay_factor = step == 3 ? std::optional(0.125F) : std::nullopt;
        reference.decay_factor = decay_factor;
        const auto values = noise<float>(model.count, 10 + static_cast<std::uint32_t>(step), 64.0F);
        const OnDevice<float> gradients{std::span(values), Shape{model.count}};
        const nn::ClipOptions clip{.gradient_scale = 1.0F / 16, .max_norm = step == 2 ? 0.0F : 1.5F};
        nn::write_step_control(training_device(), gradients.view(), model.state, clip);
        nn::adamw(training_device(), model.parameters.view(), gradients.view(), model.first.view(), model.second.view(),
                  model.copy_view(), model.segments, model.state, options, {}, decay_factor);
        const auto true_gradients = scaled(values, clip.gradient_scale);
        const double norm = reference::norm(true_gradients);
        const double factor = reference::clip_factor(norm, clip.max_norm);
        reference::adamw(model.expected, scaled(values, clip.gradient_scale * factor), model.expected_first,
                         model.expected_second, model.each, reference, step);
        const auto control = model.state.wait_and_read(training_device());
        CHECK(std::abs(control.norm - norm) <= 1e-5 * norm);
        CHECK(std::abs(control.factor - clip.gradient_scale * factor) <= 1e-5 * clip.gradient_scale * factor);
        CHECK(control.apply == 1);
        CHECK(control.taken == step);
        CHECK(control.skipped == 0);
      }
      check_close(model.first.read(), model.expected_first, 1e-5, 1e-7);
      check_close(model.second.read(), model.expected_second, 1e-5, 1e-9);
      check_close(model.parameters.read(), model.expected, 1e-5, 2e-6);
      model.check_copy();
    }
  }

  TEST_CASE("AdamW's bias correction is right after one step and after very many") {
    for (const int step : {1, 2, 10, 1000, 900000}) {
      CAPTURE(step);
      Training<float> model({{9, true}});
      model.state.wait_and_set(training_device(), step - 1, 7);
      const auto values = noise<float>(9, 3);
      const OnDevice<float> gradients{std::span(values), Shape{9}};
      nn::write_step_control(training_device(), gradients.view(), model.state);
      const AdamWOptions options{.learning_rate = 1.0F, .epsilon = 0.0F, .weight_decay = 0.0F};
      nn::adamw(training_device(), model.parameters.view(), gradients.view(), model.first.view(), model.second.view(),
                {}, model.segments, model.state, options);
      reference::adamw(model.expected, exact(values), model.expected_first, model.expected_second, model.each,
                       {options.learning_rate, options.beta1, options.beta2, 0, 0}, step);
      check_close(model.parameters.read(), model.expected, 2e-6, 2e-6);
    }
  }

  TEST_CASE_TEMPLATE("SGD does PyTorch's steps, with momentum and with Nesterov's", T, float, bf16, f16) {
    for (const bool nesterov : {false, true})
      for (const Parts& parts : cases) {
        CAPTURE(total_of(parts));
        Training<T> model(parts);
        const SgdOptions options{.learning_rate = 0.05F, .momentum = 0.9F, .weight_decay = 0.3F, .nesterov = nesterov};
        for (int step = 1; step <= 3; ++step) {
          const std::optional<float> decay_factor = step == 2 ? std::optional(0.25F) : std::nullopt;
          const auto values = noise<float>(model.count, 20 + static_cast<std::uint32_t>(step));
          const OnDevice<float> gradients{std::span(values), Shape{model.count}};
          nn::write_step_control(training_device(), gradients.view(), model.state, {.max_norm = 3.0F});
          nn::sgd(training_device(), model.parameters.view(), gradients.view(), model.first.view(), model.copy_view(),
                  model.segments, model.state, options, {}, decay_factor);
          training_device().wait();
          reference::sgd(model.expected, scaled(values, reference::clip_factor(reference::norm(exact(values)), 3.0)),
                         model.expected_first, model.each,
                         {options.learning_rate, options.momentum, 0, 0, options.weight_decay, nesterov, decay_factor});
        }
        check_close(model.first.read(), model.expected_first, 1e-5, 1e-6);
        check_close(model.parameters.read(), model.expected, 1e-5, 1e-6);
        model.check_copy();
      }
  }

  TEST_CASE("a step whose gradients are not finite changes nothing and is counted") {
    for (const float bad : {INFINITY, -INFINITY, NAN, 3e38F})  // the last: its square is not finite
      for (const std::size_t where : {std::size_t{0}, std::size_t{12345}, std::size_t{20002}}) {
        Training<bf16> model({{20000, true}, {3, false}});
        auto values = noise<float>(model.count, 4);
        const OnDevice<float> good{std::span(values), Shape{model.count}};
        const auto step = [&](const TensorView& gradients) {
          nn::write_step_control(training_device(), gradients, model.state, {.max_norm = 1.0F});
          nn::adamw(training_device(), model.parameters.view(), gradients, model.first.view(), model.second.view(),
                    model.copy.view(), model.segments, model.state, {});
        };
        step(good.view());
        const auto parameters = model.parameters.read();
        const auto first = model.first.read();
        const auto second = model.second.read();
        const auto copy = model.copy.read();
        values[where] = bad;
        const OnDevice<float> broken{std::span(values), Shape{model.count}};
        step(broken.view());
        nn::sgd(training_device(), model.parameters.view(), broken.view(), model.first.view(), model.copy.view(),
                model.segments, model.state, {});
        const auto control = model.state.wait_and_read(training_device());
        CHECK(control.apply == 0);
        CHECK(control.taken == 1);
        CHECK(control.skipped == 1);
        CHECK(!std::isfinite(control.norm));
        CHECK(same_bits(model.parameters.read(), parameters));
        CHECK(same_bits(model.first.read(), first));
        CHECK(same_bits(model.second.read(), second));
        CHECK(same_bits(model.copy.read(), copy));
        // The next good one counts again.
        step(good.view());
        CHECK(model.state.wait_and_read(training_device()).taken == 2);
        CHECK(!same_bits(model.parameters.read(), parameters));
      }
  }

  TEST_CASE("the norm is right, repeatable, and on the device") {
    for (const std::int64_t count : {1, 7, 8, 9, 4095, 8193, 1000003}) {
      CAPTURE(count);
      const auto values = noise<float>(count, 5, 1e-3F);
      const OnDevice<float> gradients{std::span(values), Shape{count}};
      const nn::StepState state(training_device(), count);
      nn::write_step_control(training_device(), gradients.view(), state);
      const float norm = state.wait_and_read(training_device()).norm;
      const double expected = reference::norm(exact(values));
      CHECK(std::abs(norm - expected) <= 3e-6 * expected);
      CHECK(state.norm().shape() == Shape{1});
      for (int repeat = 0; repeat < 5; ++repeat) {
        nn::write_step_control(training_device(), gradients.view(), state);
        CHECK(state.wait_and_read(training_device()).norm == norm);
      }
    }
  }

  TEST_CASE("a moving average follows the parameters, but not in a step that is skipped") {
    for (const std::int64_t count : {1, 9, 8193, 70001}) {
      const nn::StepState state(training_device(), count);
      const Guarded<float> parameters({count}, noise<float>(count, 1));
      const Guarded<float> average({count}, noise<float>(count, 2));
      std::vector<double> expected = exact(noise<float>(count, 2));
      const auto gradients = noise<float>(count, 3);
      auto bad = gradients;
      bad.back() = NAN;
      const OnDevice<float> good_ones{std::span(gradients), Shape{count}};
      const OnDevice<float> bad_ones{std::span(bad), Shape{count}};
      for (const float decay : {0.75F, 0.0F, 0.999F}) {
        nn::write_step_control(training_device(), good_ones.view(), state);
        nn::average(training_device(), parameters.view(), average.view(), state, decay);
        reference::average(expected, exact(parameters.read()), static_cast<double>(decay));
        check_close(average.read(), expected, 1e-6, 1e-6);
        const auto before = average.read();
        nn::write_step_control(training_device(), bad_ones.view(), state);
        nn::average(training_device(), parameters.view(), average.view(), state, decay);
        CHECK(same_bits(average.read(), before));
      }
      check_error([&] { nn::average(training_device(), average.view(), average.view(), state, 0.5F); }, {"overlaps"});
      check_error([&] { nn::average(training_device(), parameters.view(), average.view(), state, 1.0F); },
                  {"decay", "1.0"});
    }
  }

  TEST_CASE("nodes of the tree are added one after the other") {
    for (const std::int64_t count : {1, 7, 9, 4095, 8193, 100003})
      for (const std::uint32_t nodes : {0U, 1U, 3U, 20U})
        for (const bool in_place : {false, true}) {
          CAPTURE(count);
          CAPTURE(nodes);
          std::vector<float> sum = noise<float>(count, 1);
          std::vector<float> sums = noise<float>(2, 2);
          const Guarded<float> leaf({count}, sum);
          const Guarded<float> leaf_sums({2}, sums);
          const Guarded<float> out({count});
          const Guarded<float> out_sums(Shape{2});
          std::vector<Guarded<float>> memory;
          std::vector<nn::WindowNode> added;
          for (std::uint32_t n = 0; n < nodes; ++n) {
            const auto values = noise<float>(count, 10 + n);
            const auto more = noise<float>(2, 40 + n);
            memory.emplace_back(Shape{count}, values);
            memory.emplace_back(Shape{2}, more);
            for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
            for (std::size_t i = 0; i < 2; ++i) sums[i] += more[i];
          }
          for (std::size_t n = 0; n < memory.size(); n += 2) added.push_back({memory[n].view(), memory[n + 1].view()});
          const nn::WindowNode from{leaf.view(), leaf_sums.view()};
          nn::window_sum(training_device(), added, from, in_place ? from : nn::WindowNode{out.view(), out_sums.view()});
          CHECK(same_bits((in_place ? leaf : out).read(), sum));
          CHECK(same_bits((in_place ? leaf_sums : out_sums).read(), sums));
        }
    const OnDevice<float> some(8, {8});
    const OnDevice<float> fewer(7, {7});
    const OnDevice<float> sums(4, {4});
    const nn::WindowNode leaf{some.view(), sums.view().slice(0, 0, 2)};
    const auto sum = [&](const nn::WindowNode& node, const nn::WindowNode& out) {
      nn::window_sum(training_device(), {&node, 1}, leaf, out);
    };
    check_error([&] { sum({fewer.view(), leaf.sums}, leaf); }, {"gradients of a node", "[8]", "[7]"});
    check_error([&] { sum(leaf, leaf); }, {"overlaps"});
    check_error([&] { sum({some.view(), sums.view()}, leaf); }, {"sums", "[4]"});
    check_error([&] { nn::window_sum(training_device(), std::vector<nn::WindowNode>(21, leaf), leaf, leaf); }, {"21"});
  }

  TEST_CASE("whole steps are repeatable to the bit") {
    std::vector<float> first;
    for (int repeat = 0; repeat < 3; ++repeat) {
      Training<float> model(cases[3]);
      for (std::uint32_t step = 0; step < 3; ++step) {
        const auto values = noise<float>(model.count, step);
        const OnDevice<float> gradients{std::span(values), Shape{model.count}};
        nn::write_step_control(training_device(), gradients.view(), model.state, {.max_norm = 1.0F});
        nn::adamw(training_device(), model.parameters.view(), gradients.view(), model.first.view(), model.second.view(),
                  {}, model.segments, model.state, {});
        training_device().wait();
      }
      if (repeat == 0) first = model.parameters.read();
      CHECK(same_bits(model.parameters.read(), first));
    }
  }

  TEST_CASE("wrong sizes, types and numbers are refused") {
    Training<float> model({{100, true}});
    const OnDevice<float> gradients(100, {100});
    const OnDevice<float> short_one(99, {99});
    const OnDevice<bf16> copy(100, {100});
    const auto run = [&](const TensorView& g, const TensorView& p, const TensorView& c, const AdamWOptions& options) {
      nn::adamw(training_device(), p, g, model.first.view(), model.second.view(), c, model.segments, model.state,
                options);
    };
    check_error([&] { run(short_one.view(), model.parameters.view(), {}, {}); }, {"gradients", "[100]", "[99]"});
    check_error([&] { run(gradients.view(), copy.view(), {}, {}); }, {"parameters", "bf16"});
    check_error([&] { run(gradients.view(), gradients.view(), {}, {}); }, {"overlaps"});
    check_error([&] { run(gradients.view(), model.parameters.view(), short_one.view(), {}); }, {"copy", "f32"});
    check_error([&] { run(gradients.view(), model.parameters.view(), {}, {.beta1 = 1.0F}); }, {"first beta", "1.0"});
    check_error([&] { run(gradients.view(), model.parameters.view(), {}, {.learning_rate = -1.0F}); },
                {"learning rate"});
    check_error([&] { nn::write_step_control(training_device(), short_one.view(), model.state); }, {"[99]"});
    check_error(
        [&] { nn::write_step_control(training_device(), gradients.view(), model.state, {.gradient_scale = 0.0F}); },
        {"gradient scale"});
    const nn::StepState other(training_device(), 99);
    check_error(
        [&] {
          nn::sgd(training_device(), model.parameters.view(), gradients.view(), model.first.view(), {}, model.segments,
                  other, {});
        },
        {"99", "100"});
    const Parts negative{{-1, true}};
    check_error([&] { const nn::Segments segments(training_device(), negative); }, {"-1"});
    const Parts no_rate{{1, true, NAN}};
    check_error([&] { const nn::Segments segments(training_device(), no_rate); }, {"rate of a parameter", "nan"});
  }
}
