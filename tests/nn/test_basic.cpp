#include "nn/basic.hpp"
#include "support.hpp"

using namespace sylvit;
using sylvit::test::check_error;
using sylvit::test::device;
using sylvit::test::OnDevice;

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
    device().wait();
  }

  TEST_CASE("wrong shapes and types are refused with both shapes") {
    const Memory memory(device(), 4096, "a test");
    const TensorView matrix(memory.data(), DType::f32, {8, 16});
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
    check_error([&] { nn::fill(device(), TensorView(memory.data(), DType::i64, {4}), 1); }, {"fill", "i64"});
    check_error([&] { nn::fill(device(), matrix.slice(1, 0, 4), 1); }, {"dense"});
  }
}
