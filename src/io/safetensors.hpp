// Reading and writing safetensors files: 8 bytes of little-endian header length, a JSON header that gives each tensor
// its dtype, shape and byte range, then the bytes of all tensors back to back. A file may come from anywhere, so the
// reader trusts nothing: every rule of the format is checked before a tensor can be reached.
#pragma once

#include <sylvit/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/files.hpp"
#include "io/tensor_list.hpp"

namespace sylvit::io {

/// As in the format's own implementation: a longer header is refused, by the reader and by the writer.
inline constexpr std::uint64_t safetensors_header_limit = 100'000'000;

using SafetensorsMetadata = std::map<std::string, std::string>;

/// A validated file, of which the header was read; a tensor's data are read when they are asked for. Copies share one
/// open file.
class SafetensorsFile {
 public:
  /// Opens and validates a file; throws Error with one sentence that names the file, the tensor and the numbers.
  static SafetensorsFile open(const std::filesystem::path& path);
  /// The same over bytes in memory, which must outlive the result. `name` stands for the file in errors.
  static SafetensorsFile parse(std::span<const std::byte> file, std::string name);
  static SafetensorsFile parse(ByteSource source);

  const std::string& name() const noexcept { return source_.name(); }
  /// In the order of their data.
  const std::vector<TensorInfo>& tensors() const noexcept { return tensors_.all(); }
  /// Null when there is no such tensor.
  const TensorInfo* find(std::string_view tensor) const noexcept { return tensors_.find(tensor); }
  /// Throws Error that says what the file holds when there is no such tensor, or when its shape is not the expected
  /// one.
  const TensorInfo& at(std::string_view tensor, const std::optional<Shape>& expected = std::nullopt) const {
    return tensors_.at(tensor, expected);
  }
  const SafetensorsMetadata& metadata() const noexcept { return metadata_; }

  /// The little-endian elements as they lie in the file.
  std::vector<std::byte> read_bytes(const TensorInfo& tensor) const;
  /// The elements of an F64 (rounded), F32, F16 or BF16 tensor.
  std::vector<float> read_f32(std::string_view tensor, const std::optional<Shape>& expected = std::nullopt) const;
  /// The elements of an I64, I32, I16, I8 or U8 tensor.
  std::vector<std::int64_t> read_i64(std::string_view tensor,
                                     const std::optional<Shape>& expected = std::nullopt) const;

 private:
  explicit SafetensorsFile(ByteSource source) : source_(std::move(source)) {}

  ByteSource source_;
  std::uint64_t data_begin_ = 0;
  TensorList tensors_;
  SafetensorsMetadata metadata_;
};

/// One tensor to write. `bytes` are its dense elements.
struct OutputTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
};

/// The file's first bytes: the length and the header, padded with spaces so that the data starts at a multiple of 8.
/// Throws Error for a name given twice, reserved or not UTF-8, or for bytes that do not fit dtype and shape.
std::string safetensors_header(std::span<const OutputTensor> tensors, const SafetensorsMetadata& metadata = {});

/// Writes the tensors in the order given. The file appears whole or not at all: it is written beside the target,
/// flushed to the disk and then renamed. On failure it throws Error and leaves what was at `path` as it was.
void write_safetensors(const std::filesystem::path& path, std::span<const OutputTensor> tensors,
                       const SafetensorsMetadata& metadata = {});

}  // namespace sylvit::io
