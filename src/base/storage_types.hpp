// The one list of the types that tensors are stored in.
#pragma once

#include <sylvit/tensor.hpp>

#include <algorithm>
#include <array>

namespace sylvit::base {

inline constexpr std::array storage_types = {DType::f32, DType::bf16, DType::f16};

inline bool is_storage(DType dtype) { return std::ranges::find(storage_types, dtype) != storage_types.end(); }

}  // namespace sylvit::base
