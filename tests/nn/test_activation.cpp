#include "nn/activation.hpp"
#include "nn/column_sums.hpp"
#include "nn/padded.hpp"
#include "reference/activation.hpp"
#include "reference/attention.hpp"
#include "reference/column_sums.hpp"

using namespace sylvit;
using namespace sylvit::test;
using nn::Gelu;

namespace {

Score score_of(Gelu form) { return form == Gelu::exact ? Score::gelu : Score::gelu_tanh; }

/// What rounding to T and a few units of f32 allow beside a number.
template <class T>
auto near(const std::vector<double>& expected) {
  return [&](std::size_t i) { return (half_unit<T> + 1e-6) * std::abs(expected[i]) + 5e-7; };
}

}  // namespace

TEST_SUITE("nn/activation") {
  TEST_CASE_TEMPLATE("gelu and its gradient agree with fp64, in place and apart", T, float, bf16, f16) {
    for (const Gelu form : {Gelu::exact, Gelu::tanh})
      for (const auto& [rows, columns] : odd_sizes) {
        CAPTURE(rows);
        CAPTURE(columns);
        const auto u = random_numbers<T>(rows * columns, 1, 2);
        const auto a_gradient = random_numbers<T>(rows * columns, 3);
        const auto a = reference::activation(score_of(form), u);
        const auto u_gradient = reference::activation_backward(score_of(form), u, a_gradient);
        const Padded<T> kept(rows, columns, 2, u);

        // The gradient alone, then everything in place.
        const Padded<T> da(rows, columns, 4, a_gradient);
        const Padded<T> du(rows, columns, 1);
        nn::gelu_backward(device(), form, kept.view(), da.view(), du.view());
        const auto gradient = du.read();
        const auto bound = [&](std::size_t i) {
          return (half_unit<T> + 1e-6) * std::abs(u_gradient[i]) + 1e-6 * std::abs(a_gradient[i]) + 1e-7;
        };
        CHECK(worst(gradient, u_gradient, bound) < 1);
        nn::gelu_backward(device(), form, kept.view(), da.view(), da.view(), kept.view());
        CHECK(same_bits(da.read(), gradient));
        const auto near_gelu = [&](std::size_t i) { return near<T>(a)(i) + 2.5e-7 * std::abs(u[i]); };
        CHECK(worst(kept.read(), a, near_gelu) < 1);
      }
  }

  TEST_CASE("gelu far from zero is as right as its argument is, and lets what is not finite through") {
    std::vector<double> u;
    for (int i = -1300; i <= 1300; ++i) u.push_back(static_cast<double>(static_cast<float>(i) * 0.01F));
    for (const Gelu form : {Gelu::exact, Gelu::tanh}) {
      const Padded<float> in(1, u.size(), 0, u);
      const Padded<float> gradient(1, u.size(), 0, std::vector<double>(u.size(), 1.0));
      const Padded<float> out(1, u.size(), 0);
      nn::gelu_backward(device(), form, in.view(), gradient.view(), gradient.view(), out.view());
      const auto expected = reference::activation(score_of(form), u);
      // The tanh form keeps its digits in the tail; the reference's has none below the rounding of fp64.
      const auto bound = [&](std::size_t i) {
        return form == Gelu::exact ? 2.5e-7 * std::abs(u[i]) + 1e-37 : 1e-5 * std::abs(expected[i]) + 1e-14;
      };
      CHECK(worst(out.read(), expected, bound) < 1);
    }
    const Padded<float> odd(1, 4, 0, {NAN, INFINITY, 1e30, -1e30});
    const Padded<float> ones(1, 4, 0, {1, 1, 1, 1});
    const Padded<float> value(1, 4, 0);
    const Padded<float> slope(1, 4, 0);
    nn::gelu_backward(device(), Gelu::exact, odd.view(), ones.view(), slope.view(), value.view());
    const auto values = value.read();
    const auto slopes = slope.read();
    CHECK(std::isnan(values[0]));
    CHECK(std::isnan(slopes[0]));
    CHECK(values[1] == INFINITY);
    CHECK(values[2] == static_cast<double>(1e30F));
    CHECK(values[3] == 0);
    CHECK(slopes[2] == 1);
    CHECK(slopes[3] == 0);
  }

  TEST_CASE("the reference's gradients are those of finite differences") {
    const auto c = random_numbers<float>(40, 1, 2);
    const std::vector<double> ones(40, 1.0);
    const double step = 1e-5;
    for (const Gelu form : {Gelu::exact, Gelu::tanh}) {
      const auto gradient = reference::activation_backward(score_of(form), c, ones);
      for (std::size_t i = 0; i < c.size(); ++i) {
        auto above = c;
        auto below = c;
        above[i] += step;
        below[i] -= step;
        const double slope =
            (reference::activation(score_of(form), above)[i] - reference::activation(score_of(form), below)[i]) /
            (2 * step);
        CHECK(std::abs(slope - gradient[i]) < 1e-8);
      }
    }
  }

  TEST_CASE_TEMPLATE("tensors are multiplied, and the gradients are the other factor's", T, float, bf16, f16) {
    for (const auto& [rows, columns] : odd_sizes) {
      CAPTURE(rows);
      CAPTURE(columns);
      const auto x = random_numbers<T>(rows * columns, 1);
      const auto y = random_numbers<T>(rows * columns, 2);
      const auto gradient = random_numbers<T>(rows * columns, 3);
      const auto product = [](const std::vector<double>& one, const std::vector<double>& other) {
        std::vector<double> result(one.size());
        for (std::size_t i = 0; i < one.size(); ++i) result[i] = one[i] * other[i];
        return result;
      };
      const auto xy = product(x, y);
      const auto dx = product(gradient, y);
      const auto dy = product(gradient, x);
      const Padded<T> x_there(rows, columns, 1, x);
      const Padded<T> y_there(rows, columns, 2, y);
      const Padded<T> gradient_there(rows, columns, 3, gradient);
      const Padded<T> first(rows, columns, 4);
      const Padded<T> second(rows, columns, 5);
      nn::multiply(device(), x_there.view(), y_there.view(), first.view());
      CHECK(worst(first.read(), xy, near<T>(xy)) < 1);
      nn::multiply_backward(device(), x_there.view(), y_there.view(), gradient_there.view(), first.view(),
                            second.view());
      CHECK(worst(first.read(), dx, near<T>(dx)) < 1);
      CHECK(worst(second.read(), dy, near<T>(dy)) < 1);
      // Each gradient in the place of what it is the gradient of.
      nn::multiply_backward(device(), x_there.view(), y_there.view(), gradient_there.view(), x_there.view(),
                            y_there.view());
      CHECK(same_bits(x_there.read(), first.read()));
      CHECK(same_bits(y_there.read(), second.read()));
    }
  }

  TEST_CASE_TEMPLATE("columns are summed, always in the same order", T, float, bf16, f16) {
    for (const auto& [rows, columns] :
         {MatrixSize{0, 5}, {1, 8}, {5, 13}, {32, 32}, {33, 32}, {197, 385}, {1576, 384}, {5000, 33}}) {
      CAPTURE(rows);
      CAPTURE(columns);
      const auto values = random_numbers<T>(rows * columns, 1);
      const auto expected = reference::column_sums(values, rows, columns);
      const Padded<T> in(rows, columns, 3, values);
      const Padded<float> out(1, columns, 0);
      const TensorView sums(out.view().data(), DType::f32, {static_cast<std::int64_t>(columns)});
      const Padded<float> workspace(1, nn::column_sums_workspace(in.view()) / sizeof(float), 0);
      const auto run = [&] {
        nn::column_sums(device(), in.view(), sums, workspace.view().data());
        workspace.read();
        return out.read();
      };
      const auto got = run();
      const double bound = 2e-6 * std::sqrt(static_cast<double>(rows) + 1);
      CHECK(worst(got, expected, [&](std::size_t) { return bound; }) < 1);
      for (int repeat = 0; repeat < 3; ++repeat) CHECK(same_bits(got, run()));
    }
  }

  TEST_CASE("memory for the blocks of many rows is enough for those of fewer") {
    std::int64_t room = 0;
    for (std::int64_t rows = 0; rows < 20'000; ++rows) {
      REQUIRE(nn::room_for_row_blocks(rows) >= room);
      room = nn::room_for_row_blocks(rows);
      REQUIRE(room >= nn::row_blocks(rows).count);
    }
    CHECK(room == 64);
  }

  TEST_CASE("wrong shapes, types and overlaps are refused, nothing to do is not") {
    const Memory memory(device(), 65536, "a test");
    const TensorView c(memory.data(), DType::f32, {8, 16});
    const TensorView other(memory.as<float>() + 1024, DType::f32, {8, 16});
    const TensorView bias(memory.as<float>() + 2048, DType::f32, {16});
    const TensorView shifted(memory.as<float>() + 8, DType::f32, {8, 16});
    check_error([&] { nn::multiply(device(), c, {}, c); }, {"multiply", "lacks"});
    check_error([&] { nn::multiply(device(), c, TensorView(other.data(), DType::bf16, {8, 16}), c); }, {"bf16"});
    check_error([&] { nn::gelu_backward(device(), Gelu::exact, c, c, other, other); }, {"gelu_backward", "each other"});
    check_error([&] { nn::gelu_backward(device(), Gelu::exact, c, other, shifted); }, {"gelu_backward", "apart"});
    check_error([&] { nn::multiply(device(), c, other.slice(0, 0, 4), c); }, {"multiply", "[4, 16]"});
    check_error(
        [&] {
          nn::multiply(device(), c.permute({1, 0}), c.permute({1, 0}), c.permute({1, 0}));
        },
        {"contiguous"});
    check_error([&] { nn::column_sums(device(), c, bias.slice(0, 0, 8), nullptr); }, {"column_sums", "[8]"});
    const TensorView tall(memory.data(), DType::f32, {64, 16});
    check_error([&] { nn::column_sums(device(), tall, bias, nullptr); }, {"column_sums_workspace"});
    nn::multiply(device(), c.slice(1, 0, 0), c.slice(1, 0, 0), c.slice(1, 0, 0)).wait();
  }
}
