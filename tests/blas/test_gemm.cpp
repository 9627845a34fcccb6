#include <sylvit/gemm.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "runtime/recording.hpp"
#include "runtime/rehearsal.hpp"
#include "support.hpp"

using namespace sylvit;
using sylvit::test::check_error;
using sylvit::test::device;
using sylvit::test::OnDevice;
using sylvit::test::Setting;

namespace {

struct Case {
  std::int64_t batch, m, n, k;
  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t padding = 0;  // elements after each row
  float alpha = 1;
  float beta = 0;
  Epilogue epilogue = Epilogue::none;
  bool in_place = false;  // the residual is C
};

/// Tensors of one product on the device, between guard bands, and on the host.
template <class T, class C>
class Problem {
 public:
  explicit Problem(const Case& c)
      : case_(c),
        a_(numbers<T>(stored_size(c.transpose_a ? c.k : c.m, c.transpose_a ? c.m : c.k), 1)),
        b_(numbers<T>(stored_size(c.transpose_b ? c.n : c.k, c.transpose_b ? c.k : c.n), 2)),
        c_(numbers<C>(stored_size(c.m, c.n) + 2 * guard, 3)),
        bias_(numbers<float>(size(c.n), 4)),
        residual_(numbers<C>(stored_size(c.m, c.n), 5)) {
    // What C holds must not matter when beta is 0.
    if (c.beta == 0 && !c.in_place)
      for (C& value : c_) value = C(std::numeric_limits<float>::quiet_NaN());
  }

  static std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }
  static constexpr std::size_t guard = 64;

  struct Result {
    std::vector<C> c;     // with guards and padding
    std::vector<C> kept;  // empty unless asked for
  };

  /// An empty result where the provider does not serve such a product.
  Result run(GemmProvider provider, bool keep) const {
    const OnDevice<T> a(std::span<const T>(a_), Shape{static_cast<std::int64_t>(a_.size())});
    const OnDevice<T> b(std::span<const T>(b_), Shape{static_cast<std::int64_t>(b_.size())});
    const OnDevice<C> c(std::span<const C>(c_), Shape{static_cast<std::int64_t>(c_.size())});
    const OnDevice<C> kept(std::span<const C>(c_), Shape{static_cast<std::int64_t>(c_.size())});
    const OnDevice<C> residual(std::span<const C>(residual_), Shape{static_cast<std::int64_t>(residual_.size())});
    const OnDevice<float> bias(std::span<const float>(bias_), Shape{case_.n});
    Gemm gemm{.a = factor(a.data(), dtype_of<T>, case_.m, case_.k, case_.transpose_a),
              .b = factor(b.data(), dtype_of<T>, case_.k, case_.n, case_.transpose_b),
              .c = factor(c.data() + guard, dtype_of<C>, case_.m, case_.n, false),
              .alpha = case_.alpha,
              .beta = case_.beta,
              .epilogue = case_.epilogue};
    if (case_.epilogue != Epilogue::none) gemm.bias = bias.view();
    if (case_.epilogue == Epilogue::bias_residual)
      gemm.residual = case_.in_place ? gemm.c : factor(residual.data(), dtype_of<C>, case_.m, case_.n, false);
    if (keep) gemm.pre_activation = factor(kept.data() + guard, dtype_of<C>, case_.m, case_.n, false);
    const std::vector<GemmProvider> serving = gemm_providers(device(), gemm);
    if (std::ranges::find(serving, provider) == serving.end()) return {};
    gemm.provider = provider;
    const Memory workspace(device(), gemm_workspace(device(), gemm), "a test");
    sylvit::gemm(device(), gemm, workspace.data());
    device().wait();
    return {c.read(), keep ? kept.read() : std::vector<C>()};
  }

  /// Compares with fp64, and sees that nothing around C has changed.
  void check(const Result& result) const {
    double worst = 0;
    int touched = 0;
    const std::int64_t row = case_.n + case_.padding;
    for (std::size_t i = 0; i < result.c.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i) - static_cast<std::int64_t>(guard);
      const bool inside = at >= 0 && at < case_.batch * case_.m * row && at % row < case_.n;
      if (!inside && std::memcmp(&result.c[i], &c_[i], sizeof(C)) != 0) ++touched;
    }
    for (std::int64_t batch = 0; batch < case_.batch; ++batch)
      for (std::int64_t m = 0; m < case_.m; ++m)
        for (std::int64_t n = 0; n < case_.n; ++n) {
          double sum = 0;
          double magnitude = 0;
          for (std::int64_t k = 0; k < case_.k; ++k) {
            const double term = value(a_, batch, m, k, case_.m, case_.k, case_.transpose_a) *
                                value(b_, batch, k, n, case_.k, case_.n, case_.transpose_b);
            sum += term;
            magnitude += std::abs(term);
          }
          const std::size_t at = size((batch * case_.m + m) * row + n);
          double expected = case_.alpha * sum;
          if (case_.beta != 0) expected += case_.beta * number(c_[at + guard]);
          // The rounding of the sum, and that of the result; a library may round the result before the epilogue too.
          const double sum_error = 1e-7 * static_cast<double>(case_.k + 4) * (1 + magnitude);
          double storage_error = epsilon() * (1 + std::abs(expected));
          if (case_.epilogue != Epilogue::none) expected += bias_[size(n)];
          if (!result.kept.empty())
            worst = std::max(worst, difference(result.kept[at + guard], expected) /
                                        (sum_error + storage_error + epsilon() * (1 + std::abs(expected))));
          if (case_.epilogue == Epilogue::bias_gelu) expected = 0.5 * expected * std::erfc(-expected / std::sqrt(2.0));
          if (case_.epilogue == Epilogue::bias_gelu_tanh) {
            const double inner = std::sqrt(2 / M_PI) * (expected + 0.044715 * expected * expected * expected);
            expected = 0.5 * expected * (1 + std::tanh(inner));
          }
          if (case_.epilogue == Epilogue::bias_residual)
            expected += number(case_.in_place ? c_[at + guard] : residual_[at]);
          storage_error += epsilon() * (1 + std::abs(expected));
          // gelu's slope is at most 1.13.
          worst = std::max(worst, difference(result.c[at + guard], expected) / (1.2 * (sum_error + storage_error)));
        }
    CHECK(worst < 1);
    CHECK(touched == 0);
  }

 private:
  std::size_t stored_size(std::int64_t rows, std::int64_t columns) const {
    return size(case_.batch * rows * (columns + case_.padding));
  }

  template <class N>
  static std::vector<N> numbers(std::size_t count, unsigned seed) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<N> values(count);
    for (N& value : values) value = N(uniform(generator));
    return values;
  }

  static double epsilon() {
    return dtype_of<C> == DType::f32 ? 2e-7 : dtype_of<C> == DType::bf16 ? 1.0 / 128 : 1.0 / 1024;
  }
  template <class N>
  static double number(N value) {
    return static_cast<double>(static_cast<float>(value));
  }
  static double difference(C got, double expected) {
    const double error = std::abs(number(got) - expected);
    return std::isfinite(error) ? error : HUGE_VAL;
  }

  double value(const std::vector<T>& from, std::int64_t batch, std::int64_t row, std::int64_t column, std::int64_t rows,
               std::int64_t columns, bool transposed) const {
    const std::int64_t pitch = (transposed ? rows : columns) + case_.padding;
    const std::int64_t in_batch = transposed ? column * pitch + row : row * pitch + column;
    return number(from[size(batch * (transposed ? columns : rows) * pitch + in_batch)]);
  }

  TensorView factor(void* data, DType dtype, std::int64_t rows, std::int64_t columns, bool transposed) const {
    const std::int64_t outer = transposed ? columns : rows;
    const std::int64_t inner = transposed ? rows : columns;
    const std::int64_t pitch = inner + case_.padding;
    const TensorView view(data, dtype, Shape{case_.batch, outer, inner}, {outer * pitch, pitch, 1});
    return transposed ? view.permute({0, 2, 1}) : view;
  }

  Case case_;
  std::vector<T> a_, b_;
  std::vector<C> c_;
  std::vector<float> bias_;
  std::vector<C> residual_;
};

std::vector<GemmProvider> providers() {
  const OnDevice<float> any(std::size_t{4}, Shape{2, 2});
  const OnDevice<float> out(std::size_t{4}, Shape{2, 2});
  return gemm_providers(device(), {.a = any.view(), .b = any.view(), .c = out.view()});
}

template <class T, class C>
void check_everywhere(const Case& c) {
  for (const GemmProvider provider : providers()) {
    CAPTURE(name_of(provider));
    CAPTURE(c.m);
    CAPTURE(c.n);
    CAPTURE(c.k);
    CAPTURE(c.transpose_a);
    CAPTURE(c.transpose_b);
    const Problem<T, C> problem(c);
    const bool gelu = c.epilogue == Epilogue::bias_gelu || c.epilogue == Epilogue::bias_gelu_tanh;
    const auto first = problem.run(provider, gelu);
    if (first.c.empty()) continue;
    problem.check(first);
    const auto second = problem.run(provider, gelu);
    CHECK(std::memcmp(first.c.data(), second.c.data(), first.c.size() * sizeof(C)) == 0);
  }
}

template <class T, class C>
struct Types {
  using Factor = T;
  using Result = C;
};

}  // namespace

TEST_SUITE("blas/gemm") {
  TEST_CASE("a factor that is packed once gives the same bits, and is not read again") {
    for (const std::int64_t n : {1, 37, 300}) {
      const std::int64_t k = 70;
      const std::int64_t m = 29;
      const auto numbers = [](std::int64_t count) {
        std::vector<float> values(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 23) - 11.0F;
        return values;
      };
      const OnDevice<float> a(numbers(m * k), Shape{m, k});
      OnDevice<float> b(numbers(k * n), Shape{k, n});
      const OnDevice<float> c(static_cast<std::size_t>(m * n), Shape{m, n});
      Gemm gemm{.a = a.view(), .b = b.view(), .c = c.view(), .provider = GemmProvider::builtin};
      const Memory workspace(device(), gemm_workspace(device(), gemm), "a test");
      sylvit::gemm(device(), gemm, workspace.data());
      const std::vector<float> expected = c.read();
      const Memory packed(device(), gemm_packed_bytes(device(), gemm), "a test");
      gemm_pack(device(), gemm, packed.data());
      device().wait();
      b.write(std::vector<float>(static_cast<std::size_t>(k * n), std::nanf("")));
      gemm.packed_b = packed.data();
      CHECK(gemm_workspace(device(), gemm) == 0);
      gemm.a = a.view().slice(0, 3, m - 3);
      gemm.c = c.view().slice(0, 3, m - 3);
      device().queue().memset(gemm.c.data(), 0, static_cast<std::size_t>((m - 3) * n) * sizeof(float)).wait();
      sylvit::gemm(device(), gemm, nullptr);
      CHECK(c.read() == expected);
    }
  }

  TEST_CASE("the product's own choice of a provider comes first, then SYLVIT_GEMM, then the table") {
    const OnDevice<float> a(std::size_t{64}, Shape{8, 8});
    const OnDevice<float> b(std::size_t{64}, Shape{8, 8});
    const OnDevice<float> c(std::size_t{64}, Shape{8, 8});
    Gemm gemm{.a = a.view(), .b = b.view(), .c = c.view()};
    const std::vector<GemmProvider> providers = gemm_providers(device(), gemm);
    if (test::device().info().type == DeviceType::cpu && test::device().info().toolchain == Toolchain::rtc)
      CHECK(providers == std::vector{GemmProvider::builtin, GemmProvider::onemkl});
    for (const GemmProvider provider : providers) {
      const Setting setting("SYLVIT_GEMM", std::string(name_of(provider)));
      CHECK(gemm_providers(device(), gemm).front() == provider);
      gemm.provider = providers.back();
      CHECK(gemm_providers(device(), gemm).front() == providers.back());
      gemm.provider = {};
    }
  }

  TEST_CASE_TEMPLATE("every provider computes every layout", P, Types<float, float>, Types<bf16, bf16>,
                     Types<bf16, float>, Types<f16, f16>, Types<f16, float>) {
    using T = typename P::Factor;
    using C = typename P::Result;
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        check_everywhere<T, C>({1, 1, 1, 1, transpose_a, transpose_b});
        check_everywhere<T, C>({1, 53, 37, 19, transpose_a, transpose_b, 5});
        check_everywhere<T, C>({3, 7, 18, 401, transpose_a, transpose_b, 3, 0.5F, -2.0F});
      }
    check_everywhere<T, C>({1, 197, 300, 400, false, true});
  }

  TEST_CASE_TEMPLATE("every provider has every epilogue", P, Types<float, float>, Types<bf16, bf16>, Types<f16, f16>) {
    using T = typename P::Factor;
    using C = typename P::Result;
    for (const Epilogue epilogue :
         {Epilogue::bias, Epilogue::bias_gelu, Epilogue::bias_gelu_tanh, Epilogue::bias_residual}) {
      check_everywhere<T, C>({2, 50, 33, 20, false, true, 2, 1, 0, epilogue});
      check_everywhere<T, C>({1, 13, 100, 8, false, false, 0, 2, 0.5F, epilogue});
    }
    check_everywhere<T, C>({2, 13, 100, 8, false, false, 1, 1, 0, Epilogue::bias_residual, true});
  }

  TEST_CASE("nothing to add up gives beta C and the epilogue, and no rows give nothing") {
    check_everywhere<float, float>({1, 5, 9, 0});
    check_everywhere<float, float>({1, 5, 9, 0, false, false, 0, 1, 0, Epilogue::bias});
    check_everywhere<float, float>({1, 5, 9, 0, false, false, 0, 1, 3});
    check_everywhere<float, float>({1, 0, 9, 4});
    check_everywhere<float, float>({1, 9, 0, 4});
    check_everywhere<float, float>({0, 9, 3, 4});
  }

  TEST_CASE("a transposed factor with one row takes the kernels that more rows take") {
    const runtime::Rehearsal rehearsal(device());
    const Memory memory(rehearsal.device(), 1 << 20, "a test");
    const auto product = [&](std::int64_t images) {
      const TensorView gradient(memory.data(), DType::f32, {images, 40});
      const TensorView features(memory.as<std::byte>() + (1 << 16), DType::f32, {images, 24});
      const TensorView weights(memory.as<std::byte>() + (1 << 17), DType::f32, {40, 24});
      gemm(rehearsal.device(),
           {.a = gradient.permute({1, 0}), .b = features, .c = weights, .provider = GemmProvider::builtin},
           memory.as<std::byte>() + (1 << 18));
      return rehearsal.kernels().size();
    };
    const std::size_t many = product(3);
    CHECK(many == 2);
    CHECK(product(1) == many);
  }

  TEST_CASE("a recording says which provider ran, and what else was submitted") {
    runtime::Recording recording(device());
    const std::vector<float> numbers(16 * 16, 0.5F);
    const OnDevice<float> a(std::span<const float>(numbers), {16, 16});
    const OnDevice<float> b(std::span<const float>(numbers), {16, 16});
    const OnDevice<float> c(16 * 16, {16, 16});
    const OnDevice<float> bias(std::span<const float>(numbers).first(16), {16});
    Gemm product{.a = a.view(), .b = b.view(), .c = c.view(), .epilogue = Epilogue::bias, .bias = bias.view()};
    const auto submitted = [&](GemmProvider provider) {
      product.provider = provider;
      const Memory scratch(device(), std::max<std::size_t>(1, gemm_workspace(device(), product)), "a test");
      const auto run = [&] {
        gemm(recording.device(), product, scratch.data());
        recording.device().wait();
      };
      run();  // which nobody notes
      CHECK(recording.take().empty());
      recording.begin();
      run();
      recording.end();
      // It ran, and not only in the notes.
      CHECK(c.read().front() == 16 * 0.25F + 0.5F);
      std::vector<runtime::Submission> noted = recording.take();
      CHECK(recording.take().empty());
      return noted;
    };
    for (const GemmProvider provider : gemm_providers(device(), product)) {
      CAPTURE(name_of(provider));
      const std::vector<runtime::Submission> noted = submitted(provider);
      REQUIRE(noted.size() == 2);
      if (provider == GemmProvider::builtin) {
        CHECK(noted[0].functor == "GemmPack");
        CHECK(noted[1].functor == "Gemm");
        CHECK(noted[1].record == "gemm");
        CHECK(noted[1].name.find("GemmEpilogueKind::bias") != std::string::npos);
      } else {
        CHECK(noted[0].name == name_of(provider));
        CHECK(noted[0].functor.empty());
        CHECK(noted[1].functor == "GemmEpilogue");
      }
    }
  }

  TEST_CASE("a row of the builtin product has the same bits whatever else there is") {
    const auto few = Problem<float, float>({1, 3, 70, 900}).run(GemmProvider::builtin, false);
    const auto many = Problem<float, float>({1, 120, 70, 900}).run(GemmProvider::builtin, false);
    const std::size_t guard = Problem<float, float>::guard;
    CHECK(std::memcmp(few.c.data() + guard, many.c.data() + guard, std::size_t{3} * 70 * sizeof(float)) == 0);
  }

  TEST_CASE("what does not fit is an error that says so") {
    const OnDevice<float> a(std::size_t{24}, Shape{4, 6});
    const OnDevice<float> b(std::size_t{30}, Shape{6, 5});
    const OnDevice<float> c(std::size_t{20}, Shape{4, 5});
    const OnDevice<float> bias(std::size_t{5}, Shape{5});
    const OnDevice<bf16> narrow(std::size_t{30}, Shape{6, 5});
    const auto run = [](const Gemm& gemm) { sylvit::gemm(device(), gemm, nullptr); };
    check_error([&] { run({.a = a.view(), .b = c.view(), .c = c.view()}); }, {"[4, 6]", "[4, 5]"});
    check_error([&] { run({.a = a.view(), .b = narrow.view(), .c = c.view()}); }, {"f32", "bf16"});
    check_error([&] { run({.a = a.view(), .b = b.view(), .c = c.view(), .epilogue = Epilogue::bias}); }, {"bias"});
    check_error([&] { run({.a = a.view(), .b = b.view(), .c = c.view(), .alpha = NAN}); }, {"alpha"});
    check_error(
        [&] {
          run({.a = a.view(),
               .b = b.view(),
               .c = c.view(),
               .epilogue = Epilogue::bias_residual,
               .bias = bias.view(),
               .residual = a.view()});
        },
        {"residual", "[4, 6]", "[4, 5]"});
    const OnDevice<float> square(std::size_t{16}, Shape{4, 4});
    check_error([&] { run({.a = square.view(), .b = square.view(), .c = square.view()}); }, {"overlaps"});
    const TensorView spread(a.data(), DType::f32, Shape{2, 3}, {12, 2});
    check_error([&] { run({.a = spread, .b = b.view().slice(0, 0, 3), .c = c.view().slice(0, 0, 2)}); },
                {"A", "contiguous"});
    for (const GemmProvider absent : all_gemm_providers)
      if (const auto serving = providers(); std::ranges::find(serving, absent) == serving.end())
        check_error([&] { run({.a = a.view(), .b = b.view(), .c = c.view(), .provider = absent}); },
                    {std::string(name_of(absent)), "builtin"});
    const Setting setting("SYLVIT_GEMM", "abacus");
    check_error([&] { run({.a = a.view(), .b = b.view(), .c = c.view()}); }, {"abacus", "builtin"});
  }
}
