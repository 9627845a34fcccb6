#include "io/weights_file.hpp"

#include "io/files.hpp"

namespace sylvit::io {

namespace {

/// How a zip file begins, be it without members.
bool is_zip(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  return text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06");
}

}  // namespace

WeightsFile WeightsFile::parse(std::span<const std::byte> file, const std::string& name) {
  if (is_zip(file)) return WeightsFile(BigVisionFile(NpzFile::parse(file, name)));
  return WeightsFile(SafetensorsFile::parse(file, name));
}

WeightsFile WeightsFile::open(const std::filesystem::path& path) {
  MappedFile file = map_file(path, "a file with weights");
  WeightsFile result = parse(file.bytes, path.string());
  result.mapping_ = std::move(file.owner);
  return result;
}

const std::string& WeightsFile::name() const noexcept {
  return std::visit([](const auto& file) -> const std::string& { return file.name(); }, format_);
}

const std::vector<TensorInfo>& WeightsFile::tensors() const noexcept {
  return std::visit([](const auto& file) -> const std::vector<TensorInfo>& { return file.tensors(); }, format_);
}

const TensorInfo* WeightsFile::find(std::string_view tensor) const noexcept {
  return std::visit([&](const auto& file) { return file.find(tensor); }, format_);
}

const TensorInfo& WeightsFile::at(std::string_view tensor, const std::optional<Shape>& expected) const {
  return std::visit([&](const auto& file) -> const TensorInfo& { return file.at(tensor, expected); }, format_);
}

std::vector<float> WeightsFile::read_f32(std::string_view tensor, const std::optional<Shape>& expected) const {
  return std::visit([&](const auto& file) { return file.read_f32(tensor, expected); }, format_);
}

const SafetensorsMetadata& WeightsFile::metadata() const noexcept {
  static const SafetensorsMetadata none;
  const auto* safetensors = std::get_if<SafetensorsFile>(&format_);
  return safetensors == nullptr ? none : safetensors->metadata();
}

std::optional<std::int64_t> WeightsFile::heads() const noexcept {
  const auto* big_vision = std::get_if<BigVisionFile>(&format_);
  return big_vision == nullptr ? std::nullopt : std::optional(big_vision->heads());
}

}  // namespace sylvit::io
