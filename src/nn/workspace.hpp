// Parts of one piece of memory, handed out in order.
#pragma once

#include <sylvit/memory.hpp>

#include <algorithm>
#include <cstddef>

#include "base/counts.hpp"
#include "runtime/pretended.hpp"

namespace sylvit::nn {

/// Gives out aligned parts of a piece of memory. Made of a null pointer it only counts: the addresses it then gives are
/// no memory, but as different from each other as real ones.
class Workspace {
 public:
  explicit Workspace(void* memory)
      : memory_(memory != nullptr ? static_cast<std::byte*>(memory) : runtime::PretendedMemory().take(0)) {}

  template <class T = void>
  T* take(std::size_t bytes) {
    std::byte* here = memory_ + used_;
    used_ += base::padded(bytes);
    peak_ = std::max(peak_, used_);
    return reinterpret_cast<T*>(here);
  }
  TensorView take(DType dtype, const Shape& shape) {
    return {take(static_cast<std::size_t>(shape.elements()) * size_of(dtype)), dtype, shape};
  }
  /// An empty view where it is not wanted.
  TensorView take_if(bool wanted, DType dtype, const Shape& shape) {
    return wanted ? take(dtype, shape) : TensorView();
  }

  /// What is taken after mark() may be used again after release(mark).
  std::size_t mark() const { return used_; }
  void release(std::size_t mark) { used_ = mark; }
  /// The most that was in use at once.
  std::size_t peak() const { return peak_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
};

}  // namespace sylvit::nn
