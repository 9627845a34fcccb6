#include <cmath>
#include <cstring>

#include "nn/basic.hpp"
#include "reference/basic.hpp"
#include "support.hpp"

using namespace sylvit;
using sylvit::test::check_error;
using sylvit::test::device;
using sylvit::test::exact;
using sylvit::test::OnDevice;

namespace {

template <class T>
std::vector<T> numbers(std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = T(static_cast<float>((i * 7919) % 1009) / 101.0F - 5.0F);
  return values;
}

}  // namespace

TEST_SUITE("nn/basic") {
  TEST_CASE_TEMPLATE("fill writes every element and none beside them", T, float, bf16, f16) {
    for (const std::size_t count : {1U, 7U, 1024U, 1025U, 5000U}) {
      // A guard band on both sides that must stay as it is.
      constexpr std::size_t guard = 64;
      const std::vector<T> before(count + 2 * guard, T(-7.0F));
      const OnDevice<T> buffer(std::span<const T>(before), Shape{static_cast<std::int64_t>(before.size())});
      nn::fill(device(), buffer.view().slice(0, guard, static_cast<std::int64_t>(count)), 1.2F);
      const std::vector<T> after = buffer.read();
      int wrong = 0;
      for (std::size_t i = 0; i < after.size(); ++i) {
        const bool inside = i >= guard && i < guard + count;
        if (static_cast<float>(after[i]) != static_cast<float>(T(inside ? 1.2F : -7.0F))) ++wrong;
      }
      CAPTURE(count);
      CHECK(wrong == 0);
    }
  }

  TEST_CASE_TEMPLATE("rows are summed", T, float, bf16, f16) {
    for (const auto& [rows, columns] : {std::pair<int, int>{1, 1}, {3, 5}, {197, 64}, {7, 1000}, {2, 70001}}) {
      const std::vector<T> values = numbers<T>(static_cast<std::size_t>(rows * columns));
      const OnDevice<T> in(std::span<const T>(values), Shape{rows, columns});
      const OnDevice<float> out(static_cast<std::size_t>(rows), Shape{rows});
      nn::reduce_rows(device(), in.view(), out.view());
      const std::vector<float> got = out.read();
      const auto expected =
          reference::reduce_rows(exact(values), static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
      double size = 0;
      for (const T value : values) size = std::max(size, std::abs(static_cast<double>(static_cast<float>(value))));
      for (std::size_t r = 0; r < expected.size(); ++r)
        CHECK(std::abs(got[r] - expected[r]) <= size * (1 + columns) * 6e-8);
      for (int repeat = 0; repeat < 5; ++repeat) {
        nn::reduce_rows(device(), in.view(), out.view());
        const std::vector<float> again = out.read();
        CHECK(std::memcmp(again.data(), got.data(), got.size() * sizeof(float)) == 0);
      }
    }
  }

  TEST_CASE_TEMPLATE("a matrix is transposed, also between strided views", T, float, bf16, f16) {
    for (const auto& [rows, columns] : {std::pair<int, int>{1, 1}, {16, 16}, {17, 33}, {197, 64}, {5, 300}}) {
      const std::vector<T> values = numbers<T>(static_cast<std::size_t>(rows * (columns + 3)));
      const OnDevice<T> in(std::span<const T>(values), Shape{rows, columns + 3});
      const std::vector<T> blank(static_cast<std::size_t>(columns * (rows + 2)), T(99.0F));
      const OnDevice<T> out(std::span<const T>(blank), Shape{columns, rows + 2});
      nn::transpose(device(), in.view().slice(1, 1, columns), out.view().slice(1, 1, rows));
      const std::vector<T> got = out.read();
      std::vector<double> part;
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c)
          part.push_back(
              static_cast<double>(static_cast<float>(values[static_cast<std::size_t>(r * (columns + 3) + c + 1)])));
      const auto expected =
          reference::transpose(part, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
      int wrong = 0;
      for (int c = 0; c < columns; ++c)
        for (int r = -1; r <= rows; ++r) {
          const double want = r < 0 || r == rows ? 99.0 : expected[static_cast<std::size_t>(c * rows + r)];
          if (static_cast<double>(static_cast<float>(got[static_cast<std::size_t>(c * (rows + 2) + r + 1)])) != want)
            ++wrong;
        }
      CHECK(wrong == 0);
    }
  }

  TEST_CASE("work follows the events it is given, on an out-of-order queue of the caller") {
    const Device own(sycl::queue(device().queue().get_device()));
    const std::int64_t count = 1 << 20;
    const Memory memory(own, count * sizeof(float), "a test");
    const Memory copy_memory(own, count * sizeof(bf16), "a test");
    const TensorView values(memory.data(), DType::f32, {count});
    const TensorView copy(copy_memory.data(), DType::bf16, {count});
    const sycl::event filled = nn::fill(own, values, 3.0F);
    const sycl::event copied = nn::convert(own, values, copy, std::span(&filled, 1));
    const sycl::event back = nn::convert(own, copy, values, std::span(&copied, 1));
    std::vector<float> host(static_cast<std::size_t>(count));
    own.queue().memcpy(host.data(), memory.data(), memory.bytes(), back).wait();
    CHECK(std::ranges::count(host, 3.0F) == count);
  }

  TEST_CASE("nothing to do is no error") {
    const Memory memory(device(), 16, "a test");
    nn::fill(device(), TensorView(memory.data(), DType::f32, {0}), 1).wait();
    nn::reduce_rows(device(), TensorView(memory.data(), DType::f32, {0, 4}), TensorView(memory.data(), DType::f32, {0}))
        .wait();
    device().wait();
  }

  TEST_CASE("wrong shapes and types are refused with both shapes") {
    const Memory memory(device(), 4096, "a test");
    const TensorView matrix(memory.data(), DType::f32, {8, 16});
    const TensorView other(memory.as<float>() + 512, DType::f32, {8, 16});
    check_error([&] { nn::transpose(device(), matrix, other); }, {"transpose", "[8, 16]"});
    check_error(
        [&] {
          nn::convert(device(), matrix, TensorView(memory.data(), DType::bf16, {16, 8}));
        },
        {"convert", "f32 [8, 16]", "bf16 [16, 8]"});
    check_error(
        [&] {
          nn::convert(device(), matrix, TensorView(memory.as<float>() + 1, DType::bf16, {8, 16}));
        },
        {"overlap"});
    check_error([&] { nn::reduce_rows(device(), matrix, TensorView(memory.data(), DType::f32, {9})); },
                {"reduce_rows", "[8, 16]", "[9]"});
    check_error([&] { nn::fill(device(), TensorView(memory.data(), DType::i64, {4}), 1); }, {"fill", "i64"});
    check_error([&] { nn::fill(device(), matrix.slice(1, 0, 4), 1); }, {"dense"});
  }
}
