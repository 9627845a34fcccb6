#include <limits>

#include "support.hpp"

using namespace sylvit;
using sylvit::test::check_error;

TEST_SUITE("base/tensor") {
  TEST_CASE("a shape counts its elements and refuses what cannot be") {
    CHECK(Shape{}.elements() == 1);
    CHECK(Shape{8, 6, 197, 64}.elements() == 8 * 6 * 197 * 64);
    CHECK(Shape{3, 0, 5}.elements() == 0);
    CHECK(Shape{2, 3}.text() == "[2, 3]");
    CHECK(Shape{2, 3} == Shape{2, 3});
    CHECK_FALSE(Shape{2, 3} == Shape{3, 2});
    CHECK_FALSE(Shape{2, 3} == Shape{2, 3, 1});
    check_error([] { Shape{2, -1}; }, {"[2, -1]", "negative"});
    check_error([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }, {"rank 9"});
    const std::int64_t large = std::int64_t{1} << 32;
    check_error([&] { Shape{large, large}; }, {"4294967296", "64 bits"});
    // A zero extent does not hide an overflow that strides would meet.
    check_error([&] { Shape{0, large, large}; }, {"64 bits"});
  }

  TEST_CASE("a view checks its strides and its pointer") {
    float data[24] = {};
    const TensorView dense(data, DType::f32, {2, 3, 4});
    CHECK(dense.is_dense());
    CHECK(dense.stride(0) == 12);
    CHECK(dense.stride(2) == 1);
    CHECK(dense.span_bytes() == 24 * sizeof(float));
    check_error([&] { TensorView(data, DType::f32, {2, 3}, {3}); }, {"[2, 3]", "1 strides"});
    check_error([&] { TensorView(data, DType::f32, {2, 3}, {3, -1}); }, {"negative stride -1", "axis 1"});
    check_error([&] { TensorView(nullptr, DType::f32, {2, 3}); }, {"null pointer"});
    CHECK_FALSE(TensorView(nullptr, DType::f32, {0, 3}));
    check_error(
        [&] {
          TensorView(data, DType::f32, {3, 3}, {std::numeric_limits<std::int64_t>::max() / 2, 1});
        },
        {"64 bits"});
  }

  TEST_CASE("slices and permutations name the same elements") {
    float data[24];
    for (int i = 0; i < 24; ++i) data[i] = static_cast<float>(i);
    const TensorView view(data, DType::f32, {2, 3, 4});
    const TensorView part = view.slice(1, 1, 2);
    CHECK(part.shape() == Shape{2, 2, 4});
    CHECK(part.as<float>()[part.stride(0) + part.stride(1) * 1 + 2] == 12 + 2 * 4 + 2);
    CHECK_FALSE(part.is_dense());
    const TensorView turned = view.permute({2, 0, 1});
    CHECK(turned.shape() == Shape{4, 2, 3});
    CHECK(turned.as<float>()[3 * turned.stride(0) + 1 * turned.stride(1) + 2 * turned.stride(2)] == 12 + 8 + 3);
    check_error([&] { view.slice(1, 2, 2); }, {"[2, 3, 4]"});
    check_error([&] { view.slice(3, 0, 1); }, {"axis 3"});
    check_error([&] { view.permute({0, 0, 1}); }, {"permute"});
  }

  TEST_CASE("overlap is found where it is and only there") {
    float data[4096] = {};
    // One packed QKV buffer [batch 2, L 5, 3, heads 2, d 8].
    const auto packed = [&](std::int64_t which, std::int64_t heads = 2) {
      return TensorView(data + which * 16, DType::f32, {2, heads, 5, 8}, {5 * 48, 8, 48, 1});
    };
    CHECK_FALSE(packed(0).overlaps(packed(1)));
    CHECK_FALSE(packed(2).overlaps(packed(0)));
    CHECK_FALSE(packed(0).overlaps(packed(1, 1)));  // one KV head: that view has no stride along heads
    CHECK(packed(0).overlaps(packed(0)));
    CHECK(packed(0, 3).overlaps(packed(1)));  // a third head runs into the next slice
    CHECK_FALSE(packed(0).may_alias_itself());
    CHECK(packed(0, 7).may_alias_itself());  // and a seventh into the next row
    const TensorView dense(data, DType::f32, {16, 16});
    CHECK_FALSE(dense.overlaps(TensorView(data + 256, DType::f32, {16})));
    CHECK(dense.overlaps(TensorView(data + 255, DType::f32, {16})));
    CHECK(dense.overlaps(TensorView(data + 3, DType::bf16, {16})));
    CHECK(TensorView(data, DType::f32, {4, 4}, {0, 1}).may_alias_itself());
    // Every pair of small strided views against the plain definition.
    int pairs = 0;
    for (std::int64_t offset = 0; offset < 24; ++offset)
      for (const std::int64_t row : {4, 6, 9})
        for (const std::int64_t other_row : {6, 9}) {
          const TensorView a(data, DType::f32, {3, 2}, {row, 1});
          const TensorView b(data + offset, DType::f32, {2, 3}, {other_row, 2});
          bool meet = false;
          for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 2; ++j)
              for (int k = 0; k < 2; ++k)
                for (int l = 0; l < 3; ++l) meet = meet || i * row + j == offset + k * other_row + l * 2;
          CAPTURE(offset);
          CAPTURE(row);
          CAPTURE(other_row);
          CHECK(a.overlaps(b) == meet);
          CHECK(b.overlaps(a) == meet);
          ++pairs;
        }
    CHECK(pairs == 24 * 6);
  }

  TEST_CASE("element types by name") {
    CHECK(parse_dtype("bf16") == DType::bf16);
    CHECK(name_of(DType::f16) == "f16");
    check_error([] { parse_dtype("fp8"); }, {"fp8", "f32, bf16 or f16"});
    check_error([] { parse_dtype("i64"); }, {"i64"});
  }
}
