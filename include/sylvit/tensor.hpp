// Element types, shapes and views: how the library is told where numbers lie in memory. A view owns nothing.
//
// Threads: all of these are values; any number of threads may read one at once.
#pragma once

#include <sylvit/export.hpp>
#include <sylvit/float16.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace sylvit {

/// Types of elements.
enum class DType : std::uint8_t { f64, f32, bf16, f16, i64, i32, i16, i8, u8, boolean };

/// Bytes of an element.
SYLVIT_API std::size_t size_of(DType type) noexcept;
/// "f32", "bf16", …
SYLVIT_API std::string_view name_of(DType type) noexcept;
/// The floating-point types that kernels take (f32, bf16, f16) by name; throws Error listing them otherwise.
SYLVIT_API DType parse_dtype(std::string_view name);

/// The DType of a C++ element type: float, double, bf16, f16, std::int64_t or std::int32_t.
template <class T>
inline constexpr DType dtype_of = std::is_same_v<T, double>         ? DType::f64
                                  : std::is_same_v<T, bf16>         ? DType::bf16
                                  : std::is_same_v<T, f16>          ? DType::f16
                                  : std::is_same_v<T, std::int64_t> ? DType::i64
                                  : std::is_same_v<T, std::int32_t> ? DType::i32
                                                                    : DType::f32;

/// The extents of a tensor, at most `max_rank` of them; a scalar has none. Construction checks that no extent is
/// negative and that the element count fits in 64 bits.
class SYLVIT_API Shape {
 public:
  /// The most extents that there may be.
  static constexpr std::size_t max_rank = 8;

  /// A scalar's.
  Shape() = default;
  /// Of these extents.
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  /// Of these extents.
  explicit Shape(std::span<const std::int64_t> extents);

  /// How many extents there are.
  std::size_t rank() const noexcept { return rank_; }
  /// The extent of an axis, which must be below rank().
  std::int64_t operator[](std::size_t axis) const noexcept { return extents_[axis]; }
  /// All extents.
  std::span<const std::int64_t> extents() const noexcept { return {extents_.data(), rank_}; }
  /// Their product.
  std::int64_t elements() const noexcept { return elements_; }
  /// "[8, 6, 197, 64]"
  std::string text() const;
  /// The same extents?
  bool operator==(const Shape& other) const noexcept;

 private:
  std::array<std::int64_t, max_rank> extents_{};
  std::size_t rank_ = 0;
  std::int64_t elements_ = 1;
};

/// Where a tensor's elements lie: a pointer, an element type, extents, and the distance in elements from one index of
/// an axis to the next. Strides may be any non-negative numbers for reading (0 repeats), and must not make two elements
/// of one view share memory for writing.
class SYLVIT_API TensorView {
 public:
  /// No tensor.
  TensorView() = default;
  /// A dense row-major tensor.
  TensorView(void* data, DType dtype, const Shape& shape);
  /// Throws Error when the number of strides is not the rank, a stride is negative, or data is null but elements exist.
  TensorView(void* data, DType dtype, const Shape& shape, std::span<const std::int64_t> strides);
  /// The same with the strides written out.
  TensorView(void* data, DType dtype, const Shape& shape, std::initializer_list<std::int64_t> strides)
      : TensorView(data, dtype, shape, std::span(strides.begin(), strides.size())) {}

  /// The first element; null for no tensor.
  void* data() const noexcept { return data_; }
  /// The first element as one of that type, which is not checked.
  template <class T>
  T* as() const noexcept {
    return static_cast<T*>(data_);
  }
  /// The elements' type.
  DType dtype() const noexcept { return dtype_; }
  /// The extents.
  const Shape& shape() const noexcept { return shape_; }
  /// The extent of an axis, which must be below the rank.
  std::int64_t extent(std::size_t axis) const noexcept { return shape_[axis]; }
  /// Elements from one index of an axis to the next.
  std::int64_t stride(std::size_t axis) const noexcept { return strides_[axis]; }
  /// Is there a tensor?
  explicit operator bool() const noexcept { return data_ != nullptr; }

  /// Bytes from the first element to the end of the last one.
  std::size_t span_bytes() const noexcept;
  /// Do the elements lie one after the other, row by row?
  bool is_dense() const noexcept;
  /// Do two different index tuples of this view name the same element? (A sufficient check: true when it cannot rule
  /// that out by ordering the axes by stride.)
  bool may_alias_itself() const noexcept;
  /// Does any element of this view lie where an element of the other does? Exact for slices of one packed buffer; in
  /// doubt (unrelated strides, different element types over the same bytes) the answer is yes.
  bool overlaps(const TensorView& other) const noexcept;

  /// The view of indices [begin, begin + count) of one axis.
  TensorView slice(std::size_t axis, std::int64_t begin, std::int64_t count) const;
  /// The same elements with the axes in another order.
  TensorView permute(std::initializer_list<std::size_t> axes) const;

 private:
  void* data_ = nullptr;
  DType dtype_ = DType::f32;
  Shape shape_{0};  // an empty view has no elements
  std::array<std::int64_t, Shape::max_rank> strides_{};
};

}  // namespace sylvit
