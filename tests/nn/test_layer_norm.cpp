#include "nn/layer_norm.hpp"
#include "nn/padded.hpp"
#include "reference/layer_norm.hpp"
#include "runtime/rehearsal.hpp"
#include "tuning/variants.hpp"

using namespace sylvit;
using namespace sylvit::test;
using reference::NormParameters;

namespace {

constexpr float epsilon = 1e-5F;

std::vector<double> dense(const OnDevice<float>& values) { return exact(values.read()); }

/// One layer norm on the device, with its own inputs.
template <class T>
struct Problem {
  MatrixSize size;
  std::vector<double> x, y_gradient, residual, weight, bias;

  explicit Problem(MatrixSize wanted)
      : size(wanted),
        x(random_numbers<T>(size.rows * size.columns, 1)),
        y_gradient(random_numbers<T>(size.rows * size.columns, 2)),
        residual(random_numbers<T>(size.rows * size.columns, 3)),
        weight(random_numbers<float>(size.columns, 4)),
        bias(random_numbers<float>(size.columns, 5)) {
    for (double& value : x) value = static_cast<double>(static_cast<float>(T(static_cast<float>(value + 0.5))));
  }

  NormParameters parameters() const { return {weight, bias}; }
  Shape row_statistics() const { return {static_cast<std::int64_t>(size.rows), 2}; }
};

struct Gradients {
  std::vector<double> x, weight, bias;
};

/// Runs the backward pass; `statistics` from the forward pass, or none.
template <class T>
Gradients backward(const Problem<T>& problem, const TensorView& statistics, bool residual_given, bool in_place,
                   bool with_weight = true) {
  const auto [rows, columns] = problem.size;
  const Padded<T> x(rows, columns, 3, problem.x);
  const Padded<T> y_gradient(rows, columns, 1, problem.y_gradient);
  const Padded<T> residual(rows, columns, 2, problem.residual);
  const Padded<T> apart(rows, columns, 5);
  const Padded<T>& x_gradient = in_place ? residual : apart;
  const OnDevice<float> weight = vector_of<float>(problem.weight);
  const Padded<float> weight_gradient(1, columns, 0);
  const Padded<float> bias_gradient(1, columns, 0);
  const auto vector = [&](const Padded<float>& row) {
    return TensorView(row.view().data(), DType::f32, {static_cast<std::int64_t>(columns)});
  };
  nn::LayerNormBackward pass{.in = x.view(),
                             .weight = with_weight ? weight.view() : TensorView(),
                             .statistics = statistics,
                             .out_gradient = y_gradient.view(),
                             .residual = residual_given ? residual.view() : TensorView(),
                             .in_gradient = x_gradient.view(),
                             .weight_gradient = vector(weight_gradient),
                             .bias_gradient = vector(bias_gradient),
                             .epsilon = epsilon};
  const std::size_t bytes = nn::layer_norm_backward_workspace(pass);
  const Padded<float> workspace(1, bytes / sizeof(float), 0);
  nn::layer_norm_backward(device(), pass, workspace.view().data()).wait();
  workspace.read();  // looks at its guard
  return {x_gradient.read(), weight_gradient.read(), bias_gradient.read()};
}

}  // namespace

TEST_SUITE("nn/layer_norm") {
  TEST_CASE_TEMPLATE("forward agrees with fp64, and so do its statistics", T, float, bf16, f16) {
    for (const MatrixSize size : odd_sizes) {
      CAPTURE(size.rows);
      CAPTURE(size.columns);
      const Problem<T> problem(size);
      const Padded<T> x(size.rows, size.columns, 3, problem.x);
      const Padded<T> y(size.rows, size.columns, 5);
      const Padded<float> statistics(1, 2 * size.rows, 0);
      const OnDevice<float> weight = vector_of<float>(problem.weight);
      const OnDevice<float> bias = vector_of<float>(problem.bias);
      const TensorView statistics_view(statistics.view().data(), DType::f32, problem.row_statistics());
      const auto run = [&] {
        nn::layer_norm_forward(device(), x.view(), weight.view(), bias.view(), epsilon, y.view(), statistics_view);
        return y.read();
      };
      const auto got = run();
      const auto expected = reference::layer_norm(problem.x, size.rows, problem.parameters(), epsilon);
      CHECK(worst(got, expected, [&](std::size_t i) { return half_unit<T> * std::abs(expected[i]) + 3e-5; }) < 1);
      const auto row_numbers = statistics.read();
      int wrong = 0;
      for (std::size_t r = 0; r < size.rows; ++r) {
        const auto row =
            reference::statistics_of(std::span(problem.x).subspan(r * size.columns, size.columns), epsilon);
        wrong += std::abs(row_numbers[2 * r] - row.mean) > 1e-5 ? 1 : 0;
        wrong += std::abs(row_numbers[2 * r + 1] / row.factor - 1) > 1e-5 ? 1 : 0;
      }
      CHECK(wrong == 0);
      CHECK(same_bits(got, run()));

      // In place, without parameters and statistics.
      nn::layer_norm_forward(device(), x.view(), {}, {}, epsilon, x.view());
      const auto plain = reference::layer_norm(problem.x, size.rows, {}, epsilon);
      CHECK(worst(x.read(), plain, [&](std::size_t i) { return half_unit<T> * std::abs(plain[i]) + 3e-5; }) < 1);
    }
  }

  TEST_CASE_TEMPLATE("backward agrees with fp64, with and without statistics and residual", T, float, bf16, f16) {
    for (const MatrixSize size : odd_sizes) {
      CAPTURE(size.rows);
      CAPTURE(size.columns);
      if (size.columns == 1) continue;  // the gradient is zero, of differences that are all rounding
      const Problem<T> problem(size);
      const auto expected =
          reference::layer_norm_backward(problem.x, size.rows, problem.parameters(), epsilon, problem.y_gradient);
      const OnDevice<float> statistics(2 * size.rows, problem.row_statistics());
      const Padded<T> x(size.rows, size.columns, 0, problem.x);
      const Padded<T> y(size.rows, size.columns, 0);
      nn::layer_norm_forward(device(), x.view(), {}, {}, epsilon, y.view(), statistics.view()).wait();
      const double terms = std::sqrt(static_cast<double>(size.rows));
      for (const bool known : {true, false})
        for (const bool residual : {false, true})
          for (const bool in_place : {false, true}) {
            const auto run = [&] {
              return backward(problem, known ? statistics.view() : TensorView(), residual, in_place);
            };
            const Gradients got = run();
            std::vector<double> x_expected = expected.x;
            if (residual)
              for (std::size_t i = 0; i < x_expected.size(); ++i) x_expected[i] += problem.residual[i];
            const auto bound = [&](std::size_t i) { return half_unit<T> * std::abs(x_expected[i]) + 1e-4; };
            const auto bound_of_sums = [&](std::size_t) { return 2e-5 * (1 + terms); };
            CHECK(worst(got.x, x_expected, bound) < 1);
            CHECK(worst(got.weight, expected.parameters.weight, bound_of_sums) < 1);
            CHECK(worst(got.bias, expected.parameters.bias, bound_of_sums) < 1);
            const Gradients again = run();
            CHECK(same_bits(got.x, again.x));
            CHECK(same_bits(got.weight, again.weight));
            CHECK(same_bits(got.bias, again.bias));
          }
      NormParameters no_weight{{}, problem.bias};
      const auto plain = reference::layer_norm_backward(problem.x, size.rows, no_weight, epsilon, problem.y_gradient);
      const Gradients got = backward(problem, statistics.view(), false, false, false);
      CHECK(worst(got.x, plain.x, [&](std::size_t i) { return half_unit<T> * std::abs(plain.x[i]) + 1e-4; }) < 1);
    }
  }

  TEST_CASE("the reference's gradients are those of finite differences") {
    const MatrixSize size{3, 7};
    const Problem<float> problem(size);
    const auto loss = [&](const std::vector<double>& x, const NormParameters& norm) {
      const auto y = reference::layer_norm(x, size.rows, norm, epsilon);
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * problem.y_gradient[i];
      return sum;
    };
    const auto gradients =
        reference::layer_norm_backward(problem.x, size.rows, problem.parameters(), epsilon, problem.y_gradient);
    const double step = 1e-5;
    const auto check = [&](std::vector<double> values, const std::vector<double>& gradient, const auto& value_of) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double here = values[i];
        values[i] = here + step;
        const double above = value_of(values);
        values[i] = here - step;
        const double below = value_of(values);
        values[i] = here;
        CHECK(std::abs((above - below) / (2 * step) - gradient[i]) < 1e-6);
      }
    };
    check(problem.x, gradients.x, [&](const auto& x) { return loss(x, problem.parameters()); });
    check(problem.weight, gradients.parameters.weight, [&](const auto& weight) {
      return loss(problem.x, {weight, problem.bias});
    });
    check(problem.bias, gradients.parameters.bias, [&](const auto& bias) {
      return loss(problem.x, {problem.weight, bias});
    });
  }

  TEST_CASE("rank and strides do not matter: [batch, tokens, channels] and heads inside a packed buffer") {
    const std::int64_t batch = 3;
    const std::int64_t tokens = 21;
    const std::int64_t heads = 2;
    const std::int64_t channels = 40;
    const std::int64_t rows = batch * heads * tokens;
    const auto count = static_cast<std::size_t>(rows * channels);
    const auto x = random_numbers<float>(count, 1);
    const auto y_gradient = random_numbers<float>(count, 2);
    const auto run = [&](const Shape& shape, std::initializer_list<std::size_t> order) {
      const OnDevice<float> in = vector_of<float>(x);
      const OnDevice<float> out_gradient = vector_of<float>(y_gradient);
      const OnDevice<float> out(count, Shape{rows, channels});
      const OnDevice<float> in_gradient(count, Shape{rows, channels});
      const OnDevice<float> weight_gradient(static_cast<std::size_t>(channels), Shape{channels});
      const OnDevice<float> bias_gradient(static_cast<std::size_t>(channels), Shape{channels});
      const auto as = [&](const OnDevice<float>& memory) {
        return TensorView(memory.data(), DType::f32, shape).permute(order);
      };
      nn::layer_norm_forward(device(), as(in), {}, {}, epsilon, as(out));
      const nn::LayerNormBackward pass{.in = as(in),
                                       .out_gradient = as(out_gradient),
                                       .in_gradient = as(in_gradient),
                                       .weight_gradient = weight_gradient.view(),
                                       .bias_gradient = bias_gradient.view(),
                                       .epsilon = epsilon};
      const Memory workspace(device(), nn::layer_norm_backward_workspace(pass), "a test");
      nn::layer_norm_backward(device(), pass, workspace.data()).wait();
      return std::vector<std::vector<double>>{dense(out), dense(in_gradient), dense(weight_gradient),
                                              dense(bias_gradient)};
    };
    const auto flat = run({rows, channels}, {0, 1});
    const auto tokens_of_batch = run({batch, heads * tokens, channels}, {0, 1, 2});
    for (std::size_t i = 0; i < flat.size(); ++i) CHECK(same_bits(flat[i], tokens_of_batch[i]));
    const auto packed = run({batch, tokens, heads, channels}, {0, 2, 1, 3});
    for (std::size_t i = 0; i < 2; ++i) CHECK(same_bits(flat[i], packed[i]));
    const auto expected = reference::layer_norm_backward(x, static_cast<std::size_t>(rows), {}, epsilon, y_gradient);
    const auto bound = [](std::size_t) { return 1e-4; };
    CHECK(worst(packed[2], expected.parameters.weight, bound) < 1);
    CHECK(worst(packed[3], expected.parameters.bias, bound) < 1);
  }

  TEST_CASE("rows beyond a sequence's length have no gradient and give none, whatever they hold") {
    const std::int64_t channels = 24;
    const std::int64_t tokens = 50;
    const auto count = static_cast<std::size_t>(2 * tokens * channels);
    auto x = random_numbers<float>(count, 1);
    const auto y_gradient = random_numbers<float>(count, 2);
    const std::vector<std::int32_t> lengths{37, 0};
    const auto present = static_cast<std::size_t>(37 * channels);
    const auto expected =
        reference::layer_norm_backward({x.begin(), x.begin() + static_cast<std::ptrdiff_t>(present)}, 37, {}, epsilon,
                                       {y_gradient.begin(), y_gradient.begin() + static_cast<std::ptrdiff_t>(present)});
    for (std::size_t i = present; i < count; ++i) x[i] = NAN;
    const Shape shape{2, 1, tokens, channels};
    const OnDevice<float> in = vector_of<float>(x);
    const OnDevice<float> out_gradient = vector_of<float>(y_gradient);
    const OnDevice<float> in_gradient(count, shape);
    const OnDevice<float> parameters(static_cast<std::size_t>(2 * channels), Shape{2 * channels});
    const OnDevice<std::int32_t> lengths_there(std::span<const std::int32_t>(lengths), Shape{2});
    const nn::LayerNormBackward pass{.in = TensorView(in.data(), DType::f32, shape),
                                     .out_gradient = TensorView(out_gradient.data(), DType::f32, shape),
                                     .lengths = lengths_there.view(),
                                     .in_gradient = in_gradient.view(),
                                     .weight_gradient = parameters.view().slice(0, 0, channels),
                                     .bias_gradient = parameters.view().slice(0, channels, channels),
                                     .epsilon = epsilon};
    const Memory workspace(device(), nn::layer_norm_backward_workspace(pass), "a test");
    nn::layer_norm_backward(device(), pass, workspace.data()).wait();
    std::vector<double> x_expected = expected.x;
    x_expected.resize(count, 0.0);
    std::vector<double> sums = expected.parameters.weight;
    sums.insert(sums.end(), expected.parameters.bias.begin(), expected.parameters.bias.end());
    CHECK(worst(dense(in_gradient), x_expected, [](std::size_t) { return 1e-4; }) < 1);
    CHECK(worst(dense(parameters), sums, [](std::size_t) { return 1e-4; }) < 1);
  }

  TEST_CASE("no rows: nothing is written, and the parameters' gradients are zero") {
    const OnDevice<float> some(8, Shape{8});
    const OnDevice<float> gradient(std::vector<float>(8, 5.0F), Shape{8});
    const TensorView none(some.data(), DType::f32, {0, 8});
    nn::layer_norm_forward(device(), none, {}, {}, epsilon, none).wait();
    const nn::LayerNormBackward pass{
        .in = none, .out_gradient = none, .in_gradient = none, .bias_gradient = gradient.view(), .epsilon = epsilon};
    const Memory workspace(device(), 64, "a test");
    nn::layer_norm_backward(device(), pass, workspace.data()).wait();
    CHECK(gradient.read() == std::vector<float>(8, 0.0F));
  }

  TEST_CASE("wrong shapes, types and overlaps are refused") {
    const Memory memory(device(), 65536, "a test");
    const TensorView in(memory.data(), DType::f32, {8, 16});
    const TensorView out(memory.as<float>() + 1024, DType::f32, {8, 16});
    const TensorView weight(memory.as<float>() + 2048, DType::f32, {16});
    const TensorView statistics(memory.as<float>() + 4096, DType::f32, {8, 2});
    const auto forward = [&](const TensorView& from, const TensorView& to, const TensorView& by,
                             const TensorView& kept) {
      nn::layer_norm_forward(device(), from, by, {}, epsilon, to, kept);
    };
    check_error([&] { forward(in, out.slice(1, 0, 8), weight, {}); }, {"layer_norm_forward", "[8, 16]", "[8, 8]"});
    check_error([&] { forward(in, out, weight.slice(0, 0, 8), {}); }, {"layer_norm_forward", "[8]"});
    check_error([&] { forward(in, out, weight, statistics.slice(0, 0, 4)); }, {"statistics", "[4, 2]"});
    check_error([&] { forward(in.permute({1, 0}), out.permute({1, 0}), {}, {}); }, {"contiguous"});
    check_error([&] { forward(in, TensorView(memory.as<float>() + 8, DType::f32, {8, 16}), weight, {}); }, {"apart"});
    check_error([&] { forward(TensorView(memory.data(), DType::i32, {8, 16}), out, {}, {}); }, {"f32"});
    nn::LayerNormBackward pass{.in = in, .out_gradient = out, .in_gradient = out, .epsilon = epsilon};
    check_error([&] { nn::layer_norm_backward(device(), pass, nullptr); }, {"layer_norm_backward", "apart"});
    pass.in_gradient = TensorView(memory.as<float>() + 6000, DType::f32, {8, 16});
    pass.weight_gradient = weight;
    check_error([&] { nn::layer_norm_backward(device(), pass, nullptr); }, {"layer_norm_backward_workspace"});
  }

  TEST_CASE("the variants that are compiled ahead of time hold those that the layers launch") {
    const std::vector<std::string> backends{"acpp-cpu"};
    const auto all = tuning::list_variants(backends);
    const runtime::Rehearsal rehearsal(
        device().with_tuning(std::make_shared<tuning::Table>(tuning::embedded_table("acpp-cpu/default"))));
    const Memory memory(rehearsal.device(), 1 << 20, "a test");
    const TensorView weight(memory.data(), DType::f32, {16});
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      const auto tensor = [&](std::size_t offset) {
        return TensorView(memory.as<std::byte>() + offset, dtype, {8, 16});
      };
      nn::layer_norm_forward(rehearsal.device(), tensor(4096), weight, {}, epsilon, tensor(8192));
      const nn::LayerNormBackward pass{
          .in = tensor(4096), .out_gradient = tensor(8192), .in_gradient = tensor(12288), .epsilon = epsilon};
      nn::layer_norm_backward(rehearsal.device(), pass, memory.as<std::byte>() + 65536);
    }
    CHECK(rehearsal.kernels().size() >= 6);
    for (const runtime::KernelName& wanted : rehearsal.kernels())
      CHECK(std::ranges::count(all, wanted.type, &runtime::KernelName::type) == 1);
  }
}
