// What host functions ask of the tensors they are given, and how they say what is wrong.
#pragma once

#include <sylvit/error.hpp>
#include <sylvit/tensor.hpp>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

#include "base/counts.hpp"
#include "base/storage_types.hpp"

namespace sylvit::nn {

using base::divided_up;
using base::is_storage;
using base::size;

inline bool is_storage(const TensorView& view) { return is_storage(view.dtype()); }

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

/// "f32 [8, 16]"
inline std::string described(const TensorView& view) {
  return std::string(name_of(view.dtype())) + " " + view.shape().text();
}

/// A dense tensor of this type and shape, or Error: "assemble_tokens: the bias must be a dense f32 [8], and is …".
inline void require_dense(const TensorView& view, DType dtype, const Shape& shape, const char* operation,
                          const char* name) {
  if (view.dtype() == dtype && view.shape() == shape && view.is_dense()) return;
  throw Error(std::string(operation) + ": the " + name + " must be a dense " + std::string(name_of(dtype)) + " " +
              shape.text() + ", and is " + (view.is_dense() ? "" : "a strided ") + described(view));
}

/// A dense tensor of a storage type and this rank, or Error.
inline void require_storage(const TensorView& view, std::size_t rank, const char* operation, const char* name) {
  if (is_storage(view.dtype()) && view.shape().rank() == rank && view.is_dense()) return;
  throw Error(std::string(operation) + ": the " + name + " must be a dense f32, bf16 or f16 tensor of rank " +
              std::to_string(rank) + ", and is " + (view.is_dense() ? "" : "a strided ") + described(view));
}

/// No output lies where an input does.
inline void require_apart(const TensorView& out, std::initializer_list<TensorView> others, const char* operation,
                          const char* name) {
  for (const TensorView& other : others)
    if (out && other && out.overlaps(other))
      throw Error(std::string(operation) + ": the " + name + " overlaps another tensor of the call");
}

/// Kernels count rows and columns in 32 bits.
inline int narrow(std::int64_t value, const char* operation, const char* name) {
  if (value < 0 || value > std::numeric_limits<int>::max() / 2)
    throw Error(std::string(operation) + ": the " + name + " " + std::to_string(value) + " is too large");
  return static_cast<int>(value);
}

/// Throws what the operation needs and what was given for it.
inline void require(bool condition, std::string_view operation, std::string_view rule, const TensorView& given,
                    const TensorView& beside) {
  if (condition) return;
  const auto text = [](const TensorView& view) { return view ? described(view) : "none"; };
  throw Error(std::string(operation) + " needs " + std::string(rule) + ", and was given " + text(given) + " beside " +
              text(beside));
}

}  // namespace sylvit::nn
