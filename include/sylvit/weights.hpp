// Files of a Vision Transformer's weights: safetensors under timm's names, or an .npz checkpoint of big_vision.
#pragma once

#include <sylvit/export.hpp>
#include <sylvit/vit.hpp>

#include <filesystem>
#include <memory>
#include <string>

namespace sylvit {

/// Whether weights may be used otherwise than they were written for.
enum class Contradictions : std::uint8_t {
  refused,  ///< an Error names the first
  allowed   ///< to try another score with the same weights, for instance
};

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

  /// The model that the weights belong to. What sylvit wrote says all of it, in metadata of the file; else timm's
  /// config.json beside it and the tensors say what they can: sizes, classes, and which options have parameters in the
  /// file. What nothing tells (then score, alpha, gelu_tanh, …) is as in a default VitConfig (but relu where the file
  /// has learned alphas, which softmax has not), and the number of heads is a guess (head size 64). Throws Error when
  /// the file holds no Vision Transformer, or when what it says of itself is damaged or does not fit its tensors.
  VitConfig guess() const;

  /// With Score::custom in guess(): the name of the score. Its code is in no file, so VitConfig::custom_score is the
  /// application's to set. Else empty.
  std::string custom_score() const;

  /// In what the configuration speaks against what was written down with the weights, as a sentence without a full
  /// stop: "score softmax contradicts w.safetensors, which was written for relu". Empty where it does not. The images'
  /// size may be another.
  std::string contradiction(const VitConfig& config) const;

  /// The given configuration with what must agree with the file and is nobody's choice: a class token, and where
  /// average pooling has its norm.
  VitConfig adapt(const VitConfig& config) const;

  /// Fills the parameters, from any floating type. Learned positions of another grid are interpolated as timm does;
  /// returns true then. Throws Error that names the first missing, extra or misshapen tensor, or the contradiction()
  /// of the parameters' configuration; nothing is written then. Waits for the device.
  bool load(VitParameters& parameters, Contradictions contradictions = Contradictions::refused) const;

 private:
  struct File;
  std::shared_ptr<const File> file_;
};

}  // namespace sylvit
