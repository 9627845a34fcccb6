// The Vision Transformer: parameters on a device, forward and backward pass over one planned piece of memory.
//
//     VitParameters parameters(device, config, DType::f32);
//     parameters.initialise(1);
//     Vit model(device, config, {.batch = 8, .use = VitUse::training});
//     model.forward(parameters, images, logits);                       // no allocation in here, and no waiting
//     model.backward(parameters, images, logits_gradient, gradients);
//
// All gradients are bitwise repeatable. An image's logits do not depend on the rest of its batch (with the builtin GEMM
// not even in their last bit).
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/export.hpp>
#include <sylvit/gemm.hpp>
#include <sylvit/memory.hpp>
#include <sylvit/tensor.hpp>
#include <sylvit/vit_config.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sylvit {

/// One flat f32 buffer that holds something for each parameter of a model: the parameters themselves, their gradients,
/// an optimiser's moments. Parameters start at multiples of 256 bytes; what lies between them is zero.
///
/// Threads: any number may call the const functions at once; what the memory holds is theirs to order.
class SYLVIT_API VitBuffer {
 public:
  /// All zeros; waits until they are. `purpose` completes "cannot allocate N bytes for …".
  VitBuffer(const Device& device, const VitConfig& config, std::string_view purpose);

  /// Whose parameters.
  const VitConfig& config() const noexcept { return config_; }
  /// Which parameters, in their order.
  std::span<const VitParameter> parameters() const noexcept { return parameters_; }
  /// One parameter; throws Error if there is no such parameter.
  TensorView at(std::string_view name) const;
  /// Where the parameter begins in flat(), in elements.
  std::int64_t offset(std::string_view name) const;
  /// Everything, as one f32 tensor.
  TensorView flat() const;

  /// Writes one parameter and waits. Throws Error when the number of values is not the parameter's.
  void write(std::string_view name, std::span<const float> values) const;
  /// Reads one parameter; waits for the device.
  std::vector<float> read(std::string_view name) const;

 private:
  Device device_;
  VitConfig config_;
  std::vector<VitParameter> parameters_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::vector<std::int64_t> offsets_;
  std::int64_t total_ = 0;
  Memory memory_;
  std::byte* data_ = nullptr;
};

/// The parameters in f32 and, for 16-bit models, a copy of them in that type for the products.
///
/// Threads: any number may call the const functions at once, and run models with one VitParameters. Nobody else may use
/// it while write(), initialise() or update_copy() runs.
class SYLVIT_API VitParameters {
 public:
  /// All zeros, in memory of the device; waits.
  VitParameters(const Device& device, const VitConfig& config, DType dtype);

  /// Whose parameters.
  const VitConfig& config() const noexcept { return values_.config(); }
  /// The model's type.
  DType dtype() const noexcept { return dtype_; }
  /// The parameters in f32.
  const VitBuffer& values() const noexcept { return values_; }
  /// One parameter in the model's type, for products.
  TensorView operand(std::string_view name) const;
  /// The flat 16-bit copy; empty for f32 models.
  TensorView copy() const;
  /// [tokens, width], f32: learned or fixed.
  TensorView positions() const;

  /// Writes one parameter; call update_copy() after the last one. Waits.
  void write(std::string_view name, std::span<const float> values);
  /// Takes all parameters from a buffer of the same model, such as a moving average, with their 16-bit copy. Waits.
  void assign(const VitBuffer& values);
  /// Timm's initialisation from a seed: the same bits on every device and toolchain. Waits.
  void initialise(std::uint64_t seed);
  /// Brings the 16-bit copy up to date. Waits.
  void update_copy();
  /// Another number after each change by the functions above, and in each object.
  std::uint64_t version() const noexcept { return version_; }

 private:
  Device device_;
  DType dtype_;
  VitBuffer values_;
  Memory copy_;
  Memory sincos_;
  std::byte* copy_data_ = nullptr;
  std::byte* sincos_data_ = nullptr;
  std::uint64_t version_ = 0;
};

/// What a model is for.
enum class VitUse : std::uint8_t {
  inference,  ///< forward() only
  training    ///< forward() and backward()
};

/// How a model is run.
struct VitOptions {
  DType dtype = DType::f32;        ///< of activations and products: f32, bf16 or f16
  std::int64_t batch = 1;          ///< the largest that forward() will be given
  VitUse use = VitUse::inference;  ///< what it is for
  /// Inference: the parameters change seldom, so each product's own form of them is kept, for as much memory again.
  /// After a change through views (an optimiser's step) call VitParameters::update_copy(), which makes them be taken
  /// anew.
  bool constant = false;
  bool recompute = false;  ///< training: keep only each block's input, and compute the rest again in the backward pass
};

/// Bytes that a Vit of these options allocates: all activations, scratch memory and what `constant` keeps, without
/// parameters and gradients.
SYLVIT_API std::size_t activation_bytes(const Device& device, const VitConfig& config, const VitOptions& options);

/// A step of a pass as an observer sees it.
struct VitStep {
  std::string name;   ///< e.g. "blocks.3.mlp.fc1"
  double flops;       ///< of products and attention; 0 for the rest
  double bytes;       ///< of its operands and results, each counted once: the least that has to move
  sycl::event event;  ///< that ends it
  /// What it wrote, the first of several: there once the event is, until a later step uses the memory again.
  TensorView output;
  /// Who computed it, if it was a matrix product.
  std::optional<GemmProvider> provider = {};
};

/// A Vision Transformer on a device: the memory and the kernels of its passes.
///
/// Threads: a Vit belongs to one thread at a time, as its activations are one piece of memory; on an out-of-order queue
/// its passes must also follow one another by events. Different models, also of one Device and with one VitParameters,
/// may be run by different threads at once.
class SYLVIT_API Vit {
 public:
  /// Checks the configuration, allocates activation_bytes(), and builds every kernel that the passes need.
  Vit(const Device& device, const VitConfig& config, const VitOptions& options);
  ~Vit();
  /// Takes the model over.
  Vit(Vit&&) noexcept;
  /// Takes the model over.
  Vit& operator=(Vit&&) noexcept;

  /// Which model.
  const VitConfig& config() const noexcept;
  /// What activation_bytes() said.
  std::size_t bytes() const noexcept;

  /// Adds the pass to the device's queue, after the given events, and returns at once.
  /// images: dense f32 [B, channels, height, width], B at most the planned batch; logits: dense f32 [B, classes].
  sycl::event forward(const VitParameters& parameters, const TensorView& images, const TensorView& logits,
                      std::span<const sycl::event> after = {});

  /// What the head saw in the last forward(): [B, width] of the model's type, the images' features. Valid until the
  /// next pass of this model, which overwrites them. Throws Error before the first forward().
  TensorView features() const;

  /// After forward() of the same images. logits_gradient: dense [B, classes] of the model's type. All of `gradients` is
  /// overwritten.
  sycl::event backward(const VitParameters& parameters, const TensorView& images, const TensorView& logits_gradient,
                       const VitBuffer& gradients, std::span<const sycl::event> after = {});

  /// Called with each step as it is submitted, before the next one is, so that an observer that waits for the event
  /// sees the step's output; empty: nobody.
  void observe(std::function<void(const VitStep&)> observer);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sylvit
