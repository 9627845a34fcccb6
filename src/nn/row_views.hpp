// What the layers that work on rows ask of the views they are given.
#pragma once

#include <sylvit/error.hpp>
#include <sylvit/tensor.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace sylvit::nn {

inline bool is_storage(const TensorView& view) {
  return view.dtype() == DType::f32 || view.dtype() == DType::bf16 || view.dtype() == DType::f16;
}

inline bool has_contiguous_rows(const TensorView& view) {
  const std::size_t last = view.shape().rank() - 1;
  return view.stride(last) == 1 || view.extent(last) <= 1;
}

/// Kernels count columns, and rows of a head, in 32 bits, with room for a tile beyond the last.
inline bool fits_int(std::int64_t extent) { return extent <= std::numeric_limits<std::int32_t>::max() - 65536; }

/// Do the two name the same elements in the same order, or have none in common? Then an element may be written as soon
/// as the one at the same place was read.
inline bool same_or_apart(const TensorView& written, const TensorView& read) {
  if (!written || !read || !written.overlaps(read)) return true;
  if (written.data() != read.data() || written.dtype() != read.dtype() || !(written.shape() == read.shape()))
    return false;
  for (std::size_t axis = 0; axis < written.shape().rank(); ++axis)
    if (written.extent(axis) > 1 && written.stride(axis) != read.stride(axis)) return false;
  return true;
}

inline std::size_t divided_up(std::int64_t count, std::int64_t each) {
  return static_cast<std::size_t>((count + each - 1) / each);
}

inline std::string described(const TensorView& view) {
  return view ? std::string(name_of(view.dtype())) + " " + view.shape().text() : "none";
}

/// Throws what the operation needs and what was given for it.
inline void require(bool condition, std::string_view operation, std::string_view rule, const TensorView& given,
                    const TensorView& beside) {
  if (condition) return;
  throw Error(std::string(operation) + " needs " + std::string(rule) + ", and was given " + described(given) +
              " beside " + described(beside));
}

}  // namespace sylvit::nn
