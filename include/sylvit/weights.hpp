// Files of a Vision Transformer's weights: safetensors under timm's names, or an .npz checkpoint of big_vision.
#pragma once

#include <sylvit/export.hpp>
#include <sylvit/vit.hpp>

#include <filesystem>
#include <memory>
#include <string>

namespace sylvit {

/// An open file of weights. What it is is told by its content, not by its name. It is mapped, not read: tensors are
/// read when load() wants them.
///
///     const VitWeights weights("vit.safetensors");
///     VitParameters parameters(device, weights.guess(), DType::f32);
///     weights.load(parameters);
///
/// Copies share the file. One thread at a time may use a file.
class SYLVIT_API VitWeights {
 public:
  /// Throws Error with one sentence that names the file and what is wrong with it.
  explicit VitWeights(const std::filesystem::path& path);

  /// The file's name, as messages show it.
  const std::string& name() const noexcept;

  /// What the tensors say about the model they belong to: sizes, classes, and which options have parameters in the
  /// file. What leaves no trace (score, alpha, gelu_tanh, …) is as in a default VitConfig (but relu where the
  /// file has learned alphas, which softmax has not), and the number of heads is a
  /// guess (head size 64) unless the format or a tensor tells. Throws Error when the file holds no Vision Transformer.
  VitConfig guess() const;

  /// The given configuration with what must agree with the file and is nobody's choice: a class token, and where
  /// average pooling has its norm.
  VitConfig adapt(const VitConfig& config) const;

  /// Fills the parameters, from any floating type. Learned positions of another grid are interpolated as timm does;
  /// returns true then. Throws Error that names the first missing, extra or misshapen tensor; nothing is written then.
  /// Waits for the device.
  bool load(VitParameters& parameters) const;

 private:
  struct File;
  std::shared_ptr<const File> file_;
};

}  // namespace sylvit
