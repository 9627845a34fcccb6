// A file with a model's weights, in whichever format.
#pragma once

#include <variant>

#include "io/big_vision.hpp"
#include "io/safetensors.hpp"

namespace sylvit::io {

/// Named tensors that can be read as f32: those of a safetensors file as they are, or those of big_vision's .npz under
/// timm's names. Copies share one open file.
class WeightsFile {
 public:
  /// What the file is is told by its content, not by its name. Throws Error as SafetensorsFile::open does.
  static WeightsFile open(const std::filesystem::path& path);
  /// The same over bytes in memory, which must outlive the result.
  static WeightsFile parse(std::span<const std::byte> file, const std::string& name);
  static WeightsFile parse(ByteSource source);

  const std::string& name() const noexcept;
  const std::vector<TensorInfo>& tensors() const noexcept;
  /// Null when there is no such tensor.
  const TensorInfo* find(std::string_view tensor) const noexcept;
  /// Throws Error that says what the file holds when there is no such tensor, or when its shape is not the expected
  /// one.
  const TensorInfo& at(std::string_view tensor, const std::optional<Shape>& expected = std::nullopt) const;
  std::vector<float> read_f32(std::string_view tensor, const std::optional<Shape>& expected = std::nullopt) const;
  /// What the format keeps beside the tensors; empty for an .npz.
  const SafetensorsMetadata& metadata() const noexcept;
  /// The number of heads, where the format tells it.
  std::optional<std::int64_t> heads() const noexcept;

 private:
  using Format = std::variant<SafetensorsFile, BigVisionFile>;
  explicit WeightsFile(Format format) : format_(std::move(format)) {}

  Format format_;
};

}  // namespace sylvit::io
