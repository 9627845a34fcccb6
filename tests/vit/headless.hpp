// A file with the weights of a tiny Vision Transformer that has no head, as timm writes it with num_classes=0.
#pragma once

#include <filesystem>
#include <vector>

#include "io/safetensors.hpp"
#include "support.hpp"
#include "vit/tiny.hpp"

namespace sylvit::test {

inline std::filesystem::path write_headless(const TemporaryDirectory& directory) {
  const VitConfig config = tiny_vit([](VitConfig& c) { c.image_height = c.image_width = 8; });
  std::vector<std::vector<float>> values;
  std::vector<io::OutputTensor> tensors;
  const std::vector<VitParameter> parameters = vit_parameters(config);
  values.reserve(parameters.size());
  for (const VitParameter& parameter : parameters) {
    if (parameter.name.starts_with("head.")) continue;
    values.emplace_back(static_cast<std::size_t>(parameter.shape.elements()), 0.01F);
    tensors.push_back({parameter.name, DType::f32, parameter.shape, std::as_bytes(std::span(values.back()))});
  }
  const std::filesystem::path path = directory.path() / "headless.safetensors";
  io::write_safetensors(path, tensors);
  return path;
}

}  // namespace sylvit::test
