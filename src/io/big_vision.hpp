// The checkpoints of big_vision and of its predecessor vision_transformer (.npz files of flax parameters), under timm's
// names and in timm's layout. timm's own loader is the model for this: vision_transformer.py, _load_weights.
#pragma once

#include <array>
#include <optional>

#include "io/npz.hpp"
#include "io/tensor_list.hpp"

namespace sylvit::io {

/// A part of a tensor: elements of one array, as they lie in it, to be laid out with the three axes reversed.
struct TensorPart {
  NpzArray array;
  std::int64_t first = 0;
  std::array<std::int64_t, 3> axes{1, 1, 1};
};

/// How a tensor is made: so many zeros, then the parts one after the other.
struct TensorRecipe {
  std::int64_t zeros = 0;
  std::vector<TensorPart> parts;
};

/// All headers are read and every name is understood when it is made; the elements of a tensor are read when they are
/// asked for.
class BigVisionFile {
 public:
  /// Throws Error that names what is missing, misshapen or not understood. Beside the parameters a checkpoint may hold
  /// other things (the optimiser's state, a text tower); when the parameters have a prefix, these are left alone.
  explicit BigVisionFile(NpzFile file);

  const std::string& name() const noexcept { return file_.name(); }
  /// Their byte ranges are those of a file that would hold them in this order.
  const std::vector<TensorInfo>& tensors() const noexcept { return tensors_.all(); }
  const TensorInfo* find(std::string_view tensor) const noexcept { return tensors_.find(tensor); }
  const TensorInfo& at(std::string_view tensor, const std::optional<Shape>& expected = std::nullopt) const {
    return tensors_.at(tensor, expected);
  }
  std::vector<float> read_f32(std::string_view tensor, const std::optional<Shape>& expected = std::nullopt) const;
  /// The number of heads, which the kernels of attention tell.
  std::int64_t heads() const noexcept { return heads_; }

 private:
  NpzFile file_;
  TensorList tensors_;
  std::vector<TensorRecipe> recipes_;  // of tensors_
  std::int64_t heads_ = 0;
};

}  // namespace sylvit::io
