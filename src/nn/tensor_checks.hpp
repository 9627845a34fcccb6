// What host functions ask of the tensors they are given, and how they say what is wrong.
#pragma once

#include <sylvit/error.hpp>
#include <sylvit/tensor.hpp>

#include <initializer_list>
#include <limits>
#include <string>

namespace sylvit::nn {

inline bool is_storage(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }

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

inline std::size_t groups_of(std::int64_t count, std::int64_t each) {
  return static_cast<std::size_t>((count + each - 1) / each);
}

}  // namespace sylvit::nn
