// What a file says of its tensors, and finding one of them by name.
#pragma once

#include <sylvit/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sylvit::io {

/// What a file says of one tensor, already checked against the file.
struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  /// Byte range within all tensors' data: end - begin = elements x element size.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  /// A type that the format has and nothing here reads, such as "U16"; `dtype` then says nothing. Else empty.
  std::string foreign = {};

  std::string dtype_text() const { return foreign.empty() ? std::string(name_of(dtype)) : foreign; }
};

class TensorList {
 public:
  TensorList() = default;
  /// `file` stands for the file in errors. Throws Error for a name that is there twice.
  TensorList(std::vector<TensorInfo> tensors, std::string file);

  /// In the order given.
  const std::vector<TensorInfo>& all() const noexcept { return tensors_; }
  /// Null when there is no such tensor.
  const TensorInfo* find(std::string_view tensor) const noexcept;
  /// Throws Error that says what the file holds when there is no such tensor, or when its shape is not the expected
  /// one.
  const TensorInfo& at(std::string_view tensor, const std::optional<Shape>& expected) const;

 private:
  std::string file_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::size_t> by_name_;  // positions in tensors_, for binary search
};

}  // namespace sylvit::io
