#include "nn/tokens.hpp"
#include "nn/training_support.hpp"
#include "reference/tokens.hpp"

using namespace sylvit;
using namespace sylvit::test;

namespace {

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

struct Tokens {
  std::int64_t batch, tokens, width;
  bool class_token;

  std::int64_t patches() const { return tokens - (class_token ? 1 : 0); }
  reference::TokenShape reference() const { return {size(batch), size(tokens), size(width), class_token}; }
};

const std::vector<Tokens> token_cases{{1, 1, 1, false},  {1, 2, 8, true},     {3, 5, 7, true},    {2, 17, 33, false},
                                      {4, 50, 64, true}, {2, 197, 384, true}, {5, 16, 130, false}};

}  // namespace

TEST_SUITE("nn/tokens") {
  TEST_CASE_TEMPLATE("images are cut into rows of patches", T, float, bf16, f16) {
    struct Case {
      std::int64_t batch, channels, height, width, patch;
    };
    for (const Case& c : {Case{1, 1, 1, 1, 1},
                          {2, 3, 32, 48, 16},
                          {1, 3, 28, 42, 14},
                          {3, 2, 10, 15, 5},
                          {1, 4, 8, 16, 8},
                          {2, 1, 66, 33, 33},
                          {1, 3, 224, 224, 16}}) {
      CAPTURE(c.patch);
      const auto images = noise<float>(c.batch * c.channels * c.height * c.width, 1);
      const OnDevice<float> in{std::span(images), Shape{c.batch, c.channels, c.height, c.width}};
      const Guarded<T> out(Shape{c.batch * (c.height / c.patch) * (c.width / c.patch), c.channels * c.patch * c.patch});
      nn::patch_rows(training_device(), in.view(), c.patch, out.view());
      const auto expected = reference::patch_rows(
          exact(images), {size(c.batch), size(c.channels), size(c.height), size(c.width), size(c.patch)});
      std::vector<T> rounded;
      for (const double value : expected) rounded.push_back(T(static_cast<float>(value)));
      CHECK(same_bits(out.read(), rounded));
    }
  }

  TEST_CASE_TEMPLATE("tokens are assembled, with parameters of both types", T, float, bf16, f16) {
    const auto check = [](const Tokens& c, auto parameter) {
      using P = decltype(parameter);
      CAPTURE(c.width);
      const auto embedded = noise<T>(c.batch * c.patches() * c.width, 1);
      const auto bias = noise<P>(c.width, 2);
      const auto positions = noise<P>(c.tokens * c.width, 3);
      const auto class_token = noise<P>(c.width, 4);
      const OnDevice<T> in(std::span<const T>(embedded), Shape{c.batch * c.patches(), c.width});
      const OnDevice<P> bias_in(std::span<const P>(bias), Shape{c.width});
      const OnDevice<P> positions_in(std::span<const P>(positions), Shape{c.tokens, c.width});
      const OnDevice<P> class_in(std::span<const P>(class_token), Shape{c.width});
      const Guarded<T> out(Shape{c.batch, c.tokens, c.width});
      nn::assemble_tokens(training_device(), in.view(),
                          {bias_in.view(), positions_in.view(), c.class_token ? class_in.view() : TensorView{}},
                          out.view());
      check_close(
          out.read(),
          reference::assemble_tokens(exact(embedded), exact(bias), exact(positions), exact(class_token), c.reference()),
          half_unit<T>, 1e-6);
    };
    for (const Tokens& c : token_cases) {
      check(c, T{});
      check(c, float{});
    }
  }

  TEST_CASE_TEMPLATE("gradients of the tokens reach patches, positions and class token", T, float, bf16, f16) {
    for (const Tokens& c : token_cases) {
      CAPTURE(c.width);
      const auto gradient = noise<T>(c.batch * c.tokens * c.width, 5);
      const OnDevice<T> in(std::span<const T>(gradient), Shape{c.batch, c.tokens, c.width});
      const Guarded<T> embedded(Shape{c.batch * c.patches(), c.width});
      const Guarded<float> positions(Shape{c.tokens, c.width});
      const Guarded<float> class_token(Shape{c.width});
      const auto run = [&](bool all) {
        nn::assemble_tokens_backward(training_device(), in.view(), c.class_token,
                                     {.embedded = all ? embedded.view() : TensorView{},
                                      .positions = all ? positions.view() : TensorView{},
                                      .class_token = c.class_token ? class_token.view() : TensorView{}});
      };
      run(true);
      const auto expected = reference::assemble_tokens_backward(exact(gradient), c.reference());
      check_close(embedded.read(), expected.embedded, 0, 0);
      const auto first = positions.read();
      check_close(first, expected.positions, 0, 1e-6 * static_cast<double>(c.batch));
      if (c.class_token) check_close(class_token.read(), expected.class_token, 0, 1e-6 * static_cast<double>(c.batch));
      // Repeatable, and each output can be left out.
      run(true);
      CHECK(same_bits(positions.read(), first));
      if (!c.class_token) continue;
      const auto with_all = class_token.read();
      run(false);
      CHECK(same_bits(class_token.read(), with_all));
    }
  }

  TEST_CASE_TEMPLATE("tokens are averaged, and each image by itself", T, float, bf16, f16) {
    for (const Tokens& c : token_cases) {
      CAPTURE(c.width);
      const auto x = noise<T>(c.batch * c.tokens * c.width, 6);
      const OnDevice<T> in(std::span<const T>(x), Shape{c.batch, c.tokens, c.width});
      const Guarded<T> out(Shape{c.batch, c.width});
      nn::pool_average(training_device(), in.view(), c.class_token, out.view());
      const auto got = out.read();
      check_close(got, reference::pool_average(exact(x), c.reference()), half_unit<T>, 1e-6);
      // The last image alone has the same bits.
      const Guarded<T> alone(Shape{1, c.width});
      nn::pool_average(training_device(), in.view().slice(0, c.batch - 1, 1), c.class_token, alone.view());
      CHECK(same_bits(alone.read(), std::vector<T>(got.end() - c.width, got.end())));
    }
  }

  TEST_CASE_TEMPLATE("gradients of the pooled tokens fill the whole gradient", T, float, bf16, f16) {
    for (const Tokens& c : token_cases) {
      CAPTURE(c.width);
      const auto pooled = noise<T>(c.batch * c.width, 7);
      const OnDevice<T> in(std::span<const T>(pooled), Shape{c.batch, c.width});
      const Guarded<T> out(Shape{c.batch, c.tokens, c.width});
      nn::pool_average_backward(training_device(), in.view(), c.class_token, out.view());
      check_close(out.read(), reference::pool_backward(exact(pooled), c.reference(), false), 1.01 * half_unit<T> + 2e-7,
                  1e-7);
      nn::pool_token_backward(training_device(), in.view(), out.view());
      check_close(out.read(), reference::pool_backward(exact(pooled), c.reference(), true), 0, 0);
    }
  }

  TEST_CASE("the average's gradient is its finite difference") {
    const reference::TokenShape shape{2, 5, 3, true};
    auto x = exact(noise<float>(2 * 5 * 3, 8));
    const auto weights = exact(noise<float>(2 * 3, 9));
    const auto value = [&] {
      const auto pooled = reference::pool_average(x, shape);
      double sum = 0;
      for (std::size_t i = 0; i < pooled.size(); ++i) sum += weights[i] * pooled[i];
      return sum;
    };
    const auto gradient = reference::pool_backward(weights, shape, false);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double kept = x[i];
      x[i] = kept + 1e-4;
      const double above = value();
      x[i] = kept - 1e-4;
      const double below = value();
      x[i] = kept;
      CHECK(std::abs((above - below) / 2e-4 - gradient[i]) < 1e-8);
    }
  }

  TEST_CASE("wrong shapes and types are refused") {
    const Memory memory(device(), 1 << 16, "a test");
    const auto tensor = [&](std::size_t offset, DType dtype, const Shape& shape) {
      return TensorView(memory.as<std::byte>() + offset, dtype, shape);
    };
    const TensorView images = tensor(0, DType::f32, {1, 3, 8, 8});
    check_error([&] { nn::patch_rows(device(), images, 3, tensor(4096, DType::f32, {4, 27})); }, {"8 x 8", "of 3"});
    check_error(
        [&] {
          nn::patch_rows(device(), images, 4, tensor(4096, DType::f32, {4, 47}));
        },
        {"rows", "[4, 48]", "[4, 47]"});
    check_error([&] { nn::patch_rows(device(), images, 4, tensor(16, DType::f32, {4, 48})); }, {"overlaps"});
    check_error([&] { nn::patch_rows(device(), images, 4, tensor(4096, DType::i32, {4, 48})); }, {"i32"});
    const TensorView x = tensor(0, DType::bf16, {2, 5, 8});
    check_error([&] { nn::pool_average(device(), x, true, tensor(4096, DType::f32, {2, 8})); }, {"bf16 [2, 8]"});
    check_error(
        [&] {
          nn::pool_average(device(), x.slice(1, 0, 1), true, tensor(4096, DType::bf16, {2, 8}));
        },
        {"pool_average"});
    check_error(
        [&] { nn::assemble_tokens_backward(device(), x, false, {.class_token = tensor(4096, DType::f32, {8})}); },
        {"no class token"});
    check_error(
        [&] {
          nn::assemble_tokens(device(), tensor(4096, DType::bf16, {10, 8}),
                              {tensor(8192, DType::f16, {8}), tensor(12000, DType::f16, {5, 8}), {}}, x);
        },
        {"parameters", "f16"});
    check_error([&] { nn::pool_token_backward(device(), tensor(4096, DType::bf16, {2, 7}), x); }, {"[2, 8]"});
  }

  TEST_CASE("nothing to do is no error") {
    const Memory memory(device(), 256, "a test");
    const auto empty = [&](const Shape& shape) { return TensorView(memory.data(), DType::f32, shape); };
    nn::patch_rows(device(), empty({0, 3, 8, 8}), 4, empty({0, 48})).wait();
    nn::pool_average(device(), empty({0, 3, 8}), true, empty({0, 8})).wait();
    nn::pool_average_backward(device(), empty({0, 8}), true, empty({0, 3, 8})).wait();
    device().wait();
  }
}
