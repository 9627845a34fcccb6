#include <sylvit/error.hpp>
#include <sylvit/tensor.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "base/storage_types.hpp"

namespace sylvit {

std::size_t size_of(DType type) noexcept {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
    case DType::i16:
      return 2;
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return 1;
  }
  return 0;
}

std::string_view name_of(DType type) noexcept {
  switch (type) {
    case DType::f64:
      return "f64";
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::i64:
      return "i64";
    case DType::i32:
      return "i32";
    case DType::i16:
      return "i16";
    case DType::i8:
      return "i8";
    case DType::u8:
      return "u8";
    case DType::boolean:
      return "bool";
  }
  return "?";
}

DType parse_dtype(std::string_view name) {
  for (const DType type : base::storage_types)
    if (name == name_of(type)) return type;
  throw Error("'" + std::string(name) + "' is not an element type that kernels take", "use f32, bf16 or f16");
}

Shape::Shape(std::span<const std::int64_t> extents) : rank_(extents.size()) {
  if (rank_ > max_rank)
    throw Error("a tensor of rank " + std::to_string(rank_) + " was given, and " + std::to_string(max_rank) +
                " is the largest rank there is");
  std::copy(extents.begin(), extents.end(), extents_.begin());
  bool has_zero = false;
  for (const std::int64_t extent : extents) {
    if (extent < 0) throw Error("the shape " + text() + " has a negative extent");
    if (extent == 0) has_zero = true;
  }
  for (const std::int64_t extent : extents) {
    // The product of the extents that are not zero must fit too: strides are made of it.
    if (extent > 0 && elements_ > std::numeric_limits<std::int64_t>::max() / extent)
      throw Error("the shape " + text() + " has more elements than 64 bits can count");
    if (extent > 0) elements_ *= extent;
  }
  if (has_zero) elements_ = 0;
}

std::string Shape::text() const {
  std::string result = "[";
  for (std::size_t axis = 0; axis < rank_; ++axis) {
    if (axis > 0) result += ", ";
    result += std::to_string(extents_[axis]);
  }
  return result + "]";
}

bool Shape::operator==(const Shape& other) const noexcept { return std::ranges::equal(extents(), other.extents()); }

namespace {

std::array<std::int64_t, Shape::max_rank> dense_strides(const Shape& shape) {
  std::array<std::int64_t, Shape::max_rank> strides{};
  std::int64_t stride = 1;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= std::max<std::int64_t>(shape[axis], 1);
  }
  return strides;
}

}  // namespace

TensorView::TensorView(void* data, DType dtype, const Shape& shape)
    : TensorView(data, dtype, shape, std::span<const std::int64_t>(dense_strides(shape).data(), shape.rank())) {}

TensorView::TensorView(void* data, DType dtype, const Shape& shape, std::span<const std::int64_t> strides)
    : data_(data), dtype_(dtype), shape_(shape) {
  if (strides.size() != shape.rank())
    throw Error("a view of shape " + shape.text() + " was given " + std::to_string(strides.size()) + " strides");
  std::copy(strides.begin(), strides.end(), strides_.begin());
  std::int64_t last = 0;  // offset of the last element, in elements
  const auto limit = std::numeric_limits<std::int64_t>::max() / 16;
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    if (strides[axis] < 0)
      throw Error("a view of shape " + shape.text() + " was given the negative stride " +
                  std::to_string(strides[axis]) + " for axis " + std::to_string(axis));
    if (shape.elements() == 0) continue;
    const std::int64_t steps = shape[axis] - 1;
    if (steps > 0 && strides[axis] > (limit - last) / steps)
      throw Error("a view of shape " + shape.text() + " with stride " + std::to_string(strides[axis]) + " for axis " +
                  std::to_string(axis) + " reaches beyond what 64 bits can address");
    last += steps * strides[axis];
  }
  if (data == nullptr && shape.elements() > 0)
    throw Error("a view of shape " + shape.text() + " was given a null pointer");
}

std::size_t TensorView::span_bytes() const noexcept {
  if (shape_.elements() == 0) return 0;
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < shape_.rank(); ++axis) last += (shape_[axis] - 1) * strides_[axis];
  return static_cast<std::size_t>(last + 1) * size_of(dtype_);
}

bool TensorView::is_dense() const noexcept {
  const auto dense = dense_strides(shape_);
  for (std::size_t axis = 0; axis < shape_.rank(); ++axis)
    if (shape_[axis] > 1 && strides_[axis] != dense[axis]) return false;
  return true;
}

namespace {

/// A stride and how far two views that have it can step along it.
struct Axis {
  std::int64_t stride;
  std::int64_t steps;        // in the view itself, or in the lower of two
  std::int64_t other_steps;  // in the higher of two
};

/// The axes along which the view moves, smallest stride first.
std::vector<Axis> moving_axes(const TensorView& view) {
  std::vector<Axis> axes;
  for (std::size_t axis = 0; axis < view.shape().rank(); ++axis)
    if (view.extent(axis) > 1) axes.push_back({view.stride(axis), view.extent(axis) - 1, 0});
  std::ranges::sort(axes, {}, &Axis::stride);
  return axes;
}

/// Is there a step along each axis, within what the two views can do, that together cover the offset? Goes from the
/// largest stride down and tries only steps that the smaller strides can still correct.
bool can_cover(std::span<const Axis> axes, std::int64_t offset) {
  if (axes.empty()) return offset == 0;
  const Axis& axis = axes.back();
  const std::span<const Axis> smaller = axes.first(axes.size() - 1);
  std::int64_t up = 0;
  std::int64_t down = 0;
  for (const Axis& other : smaller) {
    up += other.steps * other.stride;
    down += other.other_steps * other.stride;
  }
  const auto floor_div = [](std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
  const std::int64_t first = std::max(-axis.other_steps, -floor_div(up - offset, axis.stride));
  const std::int64_t last = std::min(axis.steps, floor_div(offset + down, axis.stride));
  constexpr std::int64_t most = 4;  // more candidates than that: not slices of one buffer, say yes to be safe
  if (last - first >= most) return true;
  for (std::int64_t step = first; step <= last; ++step)
    if (can_cover(smaller, offset - step * axis.stride)) return true;
  return false;
}

}  // namespace

bool TensorView::may_alias_itself() const noexcept {
  if (shape_.elements() == 0) return false;
  std::int64_t reach = 0;  // offset of the last element over the axes so far
  for (const Axis& axis : moving_axes(*this)) {
    if (axis.stride <= reach) return true;
    reach += axis.steps * axis.stride;
  }
  return false;
}

bool TensorView::overlaps(const TensorView& other) const noexcept {
  if (shape_.elements() == 0 || other.shape_.elements() == 0) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(data_);
  const auto other_begin = reinterpret_cast<std::uintptr_t>(other.data_);
  if (begin > other_begin) return other.overlaps(*this);
  if (begin + span_bytes() <= other_begin) return false;
  // Slices of one packed buffer interleave: their spans meet, their elements need not.
  const std::uintptr_t distance = other_begin - begin;
  if (dtype_ != other.dtype_ || distance % size_of(dtype_) != 0) return true;
  std::vector<Axis> axes = moving_axes(*this);
  for (const Axis& axis : moving_axes(other)) {
    const auto same = std::ranges::find(axes, axis.stride, &Axis::stride);
    if (same == axes.end())
      axes.push_back({axis.stride, 0, axis.steps});
    else
      same->other_steps += axis.steps;
  }
  std::erase_if(axes, [](const Axis& axis) { return axis.stride == 0; });
  std::ranges::sort(axes, {}, &Axis::stride);
  return can_cover(axes, static_cast<std::int64_t>(distance / size_of(dtype_)));
}

TensorView TensorView::slice(std::size_t axis, std::int64_t begin, std::int64_t count) const {
  if (axis >= shape_.rank() || begin < 0 || count < 0 || begin > shape_[axis] - count)
    throw Error("the slice [" + std::to_string(begin) + ", " + std::to_string(begin) + " + " + std::to_string(count) +
                ") of axis " + std::to_string(axis) + " is not inside the shape " + shape_.text());
  std::array<std::int64_t, Shape::max_rank> extents{};
  std::ranges::copy(shape_.extents(), extents.begin());
  extents[axis] = count;
  std::byte* data = as<std::byte>() + static_cast<std::size_t>(begin * strides_[axis]) * size_of(dtype_);
  return {data, dtype_, Shape(std::span<const std::int64_t>(extents.data(), shape_.rank())),
          std::span<const std::int64_t>(strides_.data(), shape_.rank())};
}

TensorView TensorView::permute(std::initializer_list<std::size_t> axes) const {
  std::array<std::int64_t, Shape::max_rank> extents{};
  std::array<std::int64_t, Shape::max_rank> strides{};
  std::array<bool, Shape::max_rank> seen{};
  std::size_t position = 0;
  for (const std::size_t axis : axes) {
    if (axes.size() != shape_.rank() || axis >= shape_.rank() || seen[axis])
      throw Error("the axes given to permute are not those of the shape " + shape_.text());
    seen[axis] = true;
    extents[position] = shape_[axis];
    strides[position++] = strides_[axis];
  }
  return {data_, dtype_, Shape(std::span<const std::int64_t>(extents.data(), shape_.rank())),
          std::span<const std::int64_t>(strides.data(), shape_.rank())};
}

}  // namespace sylvit
