// The public Vision Transformer: checks, plans memory, and sends passes on their way.
#include <sylvit/error.hpp>
#include <sylvit/vit.hpp>

#include <algorithm>

#include "nn/attention_choice.hpp"
#include "runtime/memory_error.hpp"
#include "runtime/rehearsal.hpp"
#include "vit/memory.hpp"
#include "vit/pass.hpp"

namespace sylvit {

namespace {

struct Needs {
  std::vector<runtime::KernelName> kernels;
  std::size_t scratch_bytes;
  std::size_t bytes;
  vit::VitPacked packed;
};

bool keeps_packed(const VitOptions& options) { return options.constant && options.use == VitUse::inference; }

/// Refuses what no device could hold before it is planned: products of its sizes need not fit in 64 bits, nor its
/// tensors between the addresses that planning pretends.
void check_plannable(const Device& device, const VitConfig& config, const VitOptions& options) {
  const double most = std::max(static_cast<double>(device.info().memory_bytes), 0x1p41);
  const auto check = [&](double bytes, const char* purpose) {
    if (bytes > most) runtime::check_fits(device.info(), bytes, purpose);
  };
  const auto batch = static_cast<double>(options.batch);
  const double pixels = static_cast<double>(config.channels) * static_cast<double>(config.image_height) *
                        static_cast<double>(config.image_width);
  const double rows = batch * static_cast<double>(config.tokens());
  const auto row = static_cast<double>(std::max(3 * config.width, config.mlp));
  constexpr const char* activations = "the model's activations";
  check(batch * pixels * sizeof(float), "the images");
  check(batch * static_cast<double>(config.classes) * sizeof(float), "the logits");
  check(rows * row * static_cast<double>(size_of(options.dtype)), activations);
  nn::Workspace counted(nullptr);
  const vit::VitMemory without_scratch(config, options, options.batch, 0, counted);
  check(static_cast<double>(counted.peak()), activations);
}

/// Goes through the passes without running them.
Needs needs_of(const Device& device, const VitConfig& config, const VitOptions& options) {
  config.check();
  if (options.batch < 1) throw Error("a model needs room for at least one image, not " + std::to_string(options.batch));
  if (options.dtype == DType::f16 && !device.info().fp16)
    throw Error("the device has no f16", "use f32 or bf16", device.name());
  if (options.dtype == DType::bf16 && !device.info().bf16)
    throw Error("the device has no bf16", "use f32", device.name());
  check_plannable(device, config, options);
  const runtime::Rehearsal rehearsal(device);
  const VitParameters parameters(rehearsal.device(), config, options.dtype);
  // More scratch memory than any operation wants, and more of everything than any model has.
  constexpr std::size_t plenty = std::size_t{1} << 40;
  const Memory pretended(rehearsal.device(), 16 * plenty, "planning");
  const Memory pretended_outside(rehearsal.device(), 16 * plenty, "planning");
  nn::Workspace outside(pretended_outside.data());
  const std::function<void(const VitStep&)> observer;
  vit::VitPacked packed(rehearsal.device());
  std::size_t scratch_bytes = 0;
  const auto rehearse = [&](std::int64_t batch) {
    nn::Workspace space(pretended.data());
    const vit::VitMemory memory(config, options, batch, plenty, space);
    vit::VitPass pass(rehearsal.device(), parameters, options, memory, keeps_packed(options) ? &packed : nullptr, batch,
                      observer, {}, &scratch_bytes);
    const TensorView images =
        outside.take(DType::f32, {batch, config.channels, config.image_height, config.image_width});
    pass.forward(images, outside.take(DType::f32, {batch, config.classes}));
    if (options.use == VitUse::training)
      pass.backward(images, outside.take(options.dtype, {batch, config.classes}),
                    VitBuffer(rehearsal.device(), config, "gradients"));
  };
  rehearse(options.batch);
  // The largest smaller batch for which attention's backward pass may be cut otherwise and want more memory.
  const std::int64_t few = std::min(options.batch - 1, nn::most_heads_for_partial_cut(device) / config.heads);
  if (options.use == VitUse::training && few > 0) rehearse(few);
  nn::Workspace counted(nullptr);
  const vit::VitMemory with_scratch(config, options, options.batch, scratch_bytes, counted);
  return {rehearsal.kernels(), scratch_bytes, counted.peak(), std::move(packed)};
}

}  // namespace

std::size_t activation_bytes(const Device& device, const VitConfig& config, const VitOptions& options) {
  const Needs needs = needs_of(device, config, options);
  return needs.bytes + needs.packed.bytes();
}

struct Vit::State {
  Device device;
  VitConfig config;
  VitOptions options;
  std::size_t scratch_bytes;
  Memory memory;
  vit::VitPacked packed;
  std::function<void(const VitStep&)> observer = nullptr;
  std::int64_t last_batch = 0;  // of the last forward pass

  /// A smaller batch uses the front of the memory.
  vit::VitMemory layout(std::int64_t batch) const {
    nn::Workspace space(memory.data());
    return {config, options, batch, scratch_bytes, space};
  }

  std::int64_t check(const VitParameters& parameters, const TensorView& images) const {
    if (!(parameters.config() == config) || parameters.dtype() != options.dtype)
      throw Error("the parameters are those of another model, or of another type");
    const Shape expected{images.extent(0), config.channels, config.image_height, config.image_width};
    if (images.shape().rank() != 4 || !(images.shape() == expected) || images.dtype() != DType::f32 ||
        !images.is_dense())
      throw Error("the images are " + images.shape().text() + " " + std::string(name_of(images.dtype())) +
                  ", and the model takes dense f32 " + expected.text());
    if (images.extent(0) < 1 || images.extent(0) > options.batch)
      throw Error("a batch of " + std::to_string(images.extent(0)) + " images does not fit a model made for 1 to " +
                  std::to_string(options.batch));
    return images.extent(0);
  }
};

Vit::Vit(const Device& device, const VitConfig& config, const VitOptions& options) {
  Needs needs = needs_of(device, config, options);
  // Before kernels are built, which takes long.
  runtime::check_fits(device.info(), static_cast<double>(needs.bytes), "the model's activations");
  runtime::prepare(device, needs.kernels);
  if (needs.packed.bytes() > 0) needs.packed.allocate(device);
  state_ =
      std::make_unique<State>(State{device, config, options, needs.scratch_bytes,
                                    Memory(device, needs.bytes, "the model's activations"), std::move(needs.packed)});
}

Vit::~Vit() = default;
Vit::Vit(Vit&&) noexcept = default;
Vit& Vit::operator=(Vit&&) noexcept = default;

const VitConfig& Vit::config() const noexcept { return state_->config; }
std::size_t Vit::bytes() const noexcept { return state_->memory.bytes() + state_->packed.bytes(); }
void Vit::observe(std::function<void(const VitStep&)> observer) { state_->observer = std::move(observer); }

sycl::event Vit::forward(const VitParameters& parameters, const TensorView& images, const TensorView& logits,
                         std::span<const sycl::event> after) {
  const std::int64_t batch = state_->check(parameters, images);
  const Shape expected{batch, state_->config.classes};
  if (!(logits.shape() == expected) || logits.dtype() != DType::f32 || !logits.is_dense())
    throw Error("the logits are " + logits.shape().text() + " " + std::string(name_of(logits.dtype())) +
                ", and must be dense f32 " + expected.text());
  const vit::VitMemory memory = state_->layout(batch);
  vit::VitPacked* packed = state_->packed.bytes() > 0 ? &state_->packed : nullptr;
  if (packed != nullptr) packed->want(parameters.version());
  vit::VitPass pass(state_->device, parameters, state_->options, memory, packed, batch, state_->observer, after);
  pass.forward(images, logits);
  state_->last_batch = batch;
  if (packed != nullptr) packed->packed();
  return pass.last();
}

TensorView Vit::features() const {
  if (state_->last_batch == 0) throw Error("a model has no features before its first forward pass");
  return state_->layout(state_->last_batch).pooled;
}

sycl::event Vit::backward(const VitParameters& parameters, const TensorView& images, const TensorView& logits_gradient,
                          const VitBuffer& gradients, std::span<const sycl::event> after) {
  if (state_->options.use != VitUse::training) throw Error("a model made for inference has no backward pass");
  const std::int64_t batch = state_->check(parameters, images);
  const Shape expected{batch, state_->config.classes};
  if (!(logits_gradient.shape() == expected) || logits_gradient.dtype() != state_->options.dtype ||
      !logits_gradient.is_dense())
    throw Error("the logits' gradient is " + logits_gradient.shape().text() + " " +
                std::string(name_of(logits_gradient.dtype())) + ", and must be dense " +
                std::string(name_of(state_->options.dtype)) + " " + expected.text());
  if (!(gradients.config() == state_->config)) throw Error("the gradients are those of another model");
  const vit::VitMemory memory = state_->layout(batch);
  vit::VitPass pass(state_->device, parameters, state_->options, memory, nullptr, batch, state_->observer, after);
  pass.backward(images, logits_gradient, gradients);
  return pass.last();
}

}  // namespace sylvit
