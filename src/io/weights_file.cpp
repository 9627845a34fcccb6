#include "io/weights_file.hpp"

#include <array>

#include "io/files.hpp"

namespace sylvit::io {

namespace {

/// How a zip file begins, be it without members.
bool is_zip(const ByteSource& file) {
  std::array<char, 4> start{};
  if (file.size() < start.size()) return false;
  file.read(0, std::as_writable_bytes(std::span(start)));
  const std::string_view text(start.data(), start.size());
  return text == "PK\x03\x04" || text == "PK\x05\x06";
}

}  // namespace

WeightsFile WeightsFile::parse(ByteSource source) {
  if (is_zip(source)) return WeightsFile(BigVisionFile(NpzFile::parse(std::move(source))));
  return WeightsFile(SafetensorsFile::parse(std::move(source)));
}

WeightsFile WeightsFile::parse(std::span<const std::byte> file, const std::string& name) {
  return parse(ByteSource::of(file, name));
}

WeightsFile WeightsFile::open(const std::filesystem::path& path) {
  return parse(ByteSource::open(path, "a file with weights"));
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
