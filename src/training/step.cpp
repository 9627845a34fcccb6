// The public training step: it owns what a step needs besides the parameters, and goes through it once on a rehearsal's
// device, so that all kernels are known, and built, before anything runs.
#include <sylvit/error.hpp>
#include <sylvit/training.hpp>

#include <cmath>

#include "base/counts.hpp"
#include "nn/loss.hpp"
#include "nn/optimizer.hpp"
#include "runtime/memory_error.hpp"
#include "runtime/rehearsal.hpp"

namespace sylvit {

namespace {

using Events = std::span<const sycl::event>;

void check_scale(float scale) {
  if (!(scale > 0.0F && std::isfinite(scale)))
    throw Error("the loss scale is " + std::to_string(scale) + ", and must be a positive number");
}

VitOptions model_options(const TrainingOptions& options) {
  return {.dtype = options.dtype, .batch = options.batch, .use = VitUse::training, .recompute = options.recompute};
}

Shape image_shape(const VitConfig& config, std::int64_t batch) {
  return {batch, config.channels, config.image_height, config.image_width};
}

std::size_t bytes_of(DType dtype, const Shape& shape) { return base::size(shape.elements()) * size_of(dtype); }

/// A tensor with memory of its own.
struct OwnTensor {
  OwnTensor(const Device& device, DType dtype, const Shape& shape)
      : memory(device, bytes_of(dtype, shape), "the training step's loss"), view(memory.data(), dtype, shape) {}

  Memory memory;
  TensorView view;
};

/// A segment for each parameter, with what lies between it and the next one.
std::vector<nn::Segment> segments_of(const VitBuffer& buffer, const TrainingOptions& options) {
  const std::span<const VitParameter> parameters = buffer.parameters();
  std::vector<nn::Segment> segments;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::int64_t end =
        i + 1 < parameters.size() ? buffer.offset(parameters[i + 1].name) : buffer.flat().shape().elements();
    const bool decays = options.decays ? options.decays(parameters[i]) : decays_by_rank(parameters[i]);
    segments.push_back({end - buffer.offset(parameters[i].name), decays});
  }
  return segments;
}

/// What an optimiser keeps from one update to the next.
struct Optimizer {
  Optimizer(const Device& device, const VitConfig& config, const TrainingOptions& options)
      : first(device, config, "the optimiser's moments"),
        segments(device, segments_of(first, options)),
        state(device, segments.total()) {
    if (std::holds_alternative<AdamWOptions>(options.optimizer))
      second.emplace(device, config, "the optimiser's moments");
  }

  VitBuffer first;                  // AdamW's first moment, or SGD's momentum
  std::optional<VitBuffer> second;  // AdamW's second moment
  nn::Segments segments;
  nn::StepState state;
};

/// The memory of a step, and the order of its operations. The same code runs on a device and in a rehearsal.
struct Step {
  Step(const Device& on, const VitConfig& config, const TrainingOptions& wanted)
      : device(on),
        options(wanted),
        model(on, config, model_options(wanted)),
        gradients(on, config, "the gradients"),
        logits(on, DType::f32, {wanted.batch, config.classes}),
        losses(on, DType::f32, {wanted.batch}),
        mean(on, DType::f32, {1}),
        logits_gradient(on, wanted.dtype, {wanted.batch, config.classes}),
        next_scale(wanted.loss_scale.value_or(default_loss_scale(wanted.dtype))),
        scale(next_scale),
        last_batch(wanted.batch) {
    check_scale(next_scale);
    if (!std::holds_alternative<std::monostate>(options.optimizer)) optimizer.emplace(device, config, options);
  }

  sycl::event forward_backward(const VitParameters& parameters, const TensorView& images, const TensorView& targets,
                               Events after) {
    const std::int64_t batch = images.shape().rank() > 0 ? images.extent(0) : 0;
    const bool fits = batch >= 1 && batch <= options.batch;  // if not, the forward pass says so
    // Before anything is on its way; the passes check the rest.
    if (fits) nn::require_targets(targets, {batch, model.config().classes});
    const auto used = [&](const OwnTensor& tensor) { return fits ? tensor.view.slice(0, 0, batch) : tensor.view; };
    const sycl::event seen = model.forward(parameters, images, used(logits), after);
    last_batch = batch;
    scale = next_scale;
    const sycl::event scored = nn::cross_entropy(device, used(logits), targets, used(losses), mean.view,
                                                 used(logits_gradient), options.loss, scale, {&seen, 1});
    has_gradients = true;
    return model.backward(parameters, images, used(logits_gradient), gradients, {&scored, 1});
  }

  /// Throws Error if there can be no such update.
  void check_update(const VitParameters& parameters, const UpdateOptions& now) const {
    if (!optimizer)
      throw Error("a training step made without an optimiser has no update", "choose TrainingOptions::optimizer");
    if (!(parameters.config() == model.config()) || parameters.dtype() != options.dtype)
      throw Error("the parameters are those of another model, or of another type");
    if (const auto* const adamw = std::get_if<AdamWOptions>(&options.optimizer))
      nn::check(with_rate(*adamw, now));
    else
      nn::check(with_rate(std::get<SgdOptions>(options.optimizer), now));
  }

  sycl::event update(const VitParameters& parameters, const UpdateOptions& now, Events after) {
    check_update(parameters, now);
    if (!has_gradients) throw Error("an update needs gradients, and there was no forward_backward() yet");
    const sycl::event decided = nn::write_step_control(device, gradients.flat(), optimizer->state,
                                                       {.gradient_scale = 1 / scale, .max_norm = now.max_norm}, after);
    const TensorView values = parameters.values().flat();
    if (const auto* const adamw = std::get_if<AdamWOptions>(&options.optimizer))
      return nn::adamw(device, values, gradients.flat(), optimizer->first.flat(), optimizer->second->flat(),
                       parameters.copy(), optimizer->segments, optimizer->state, with_rate(*adamw, now), {&decided, 1});
    return nn::sgd(device, values, gradients.flat(), optimizer->first.flat(), parameters.copy(), optimizer->segments,
                   optimizer->state, with_rate(std::get<SgdOptions>(options.optimizer), now), {&decided, 1});
  }

  TensorView of_last_batch(const OwnTensor& tensor) const { return tensor.view.slice(0, 0, last_batch); }

  Device device;
  TrainingOptions options;
  Vit model;
  VitBuffer gradients;
  OwnTensor logits, losses, mean, logits_gradient;
  std::optional<Optimizer> optimizer = {};
  float next_scale;            // of the next forward_backward()
  float scale;                 // that the gradients have
  bool has_gradients = false;  // Was there a forward_backward()?
  std::int64_t last_batch;

 private:
  template <class Options>
  static Options with_rate(Options fixed, const UpdateOptions& now) {
    fixed.learning_rate = now.learning_rate.value_or(fixed.learning_rate);
    return fixed;
  }
};

struct Plan {
  std::vector<runtime::KernelName> kernels;
  std::size_t bytes;
};

/// Goes through a whole step without running it.
Plan plan_of(const Device& device, const VitConfig& config, const TrainingOptions& options) {
  const runtime::Rehearsal rehearsal(device);
  Step step(rehearsal.device(), config, options);
  const std::size_t bytes = rehearsal.bytes();
  const Shape shape = image_shape(config, options.batch);
  const VitParameters parameters(rehearsal.device(), config, options.dtype);
  const Memory images(rehearsal.device(), bytes_of(DType::f32, shape), "planning");
  const Memory labels(rehearsal.device(), bytes_of(DType::i64, {options.batch}), "planning");
  step.forward_backward(parameters, {images.data(), DType::f32, shape}, {labels.data(), DType::i64, {options.batch}},
                        {});
  if (step.optimizer) step.update(parameters, {}, {});
  return {rehearsal.kernels(), bytes};
}

}  // namespace

bool decays_by_rank(const VitParameter& parameter) { return parameter.shape.rank() > 1; }

std::size_t training_bytes(const Device& device, const VitConfig& config, const TrainingOptions& options) {
  return plan_of(device, config, options).bytes;
}

struct TrainingStep::State {
  Step step;
  std::size_t bytes;
};

TrainingStep::TrainingStep(const Device& device, const VitConfig& config, const TrainingOptions& options) {
  const Plan plan = plan_of(device, config, options);
  // Before kernels are built, which takes long.
  runtime::check_fits(device.info(), static_cast<double>(plan.bytes), "the training step");
  runtime::prepare(device, plan.kernels);
  state_ = std::make_unique<State>(State{Step(device, config, options), plan.bytes});
}

TrainingStep::~TrainingStep() = default;
TrainingStep::TrainingStep(TrainingStep&&) noexcept = default;
TrainingStep& TrainingStep::operator=(TrainingStep&&) noexcept = default;

sycl::event TrainingStep::forward_backward(const VitParameters& parameters, const TensorView& images,
                                           const TensorView& targets, std::span<const sycl::event> after) {
  return state_->step.forward_backward(parameters, images, targets, after);
}

sycl::event TrainingStep::update(VitParameters& parameters, const UpdateOptions& options,
                                 std::span<const sycl::event> after) {
  return state_->step.update(parameters, options, after);
}

sycl::event TrainingStep::train(VitParameters& parameters, const TensorView& images, const TensorView& targets,
                                const UpdateOptions& options, std::span<const sycl::event> after) {
  state_->step.check_update(parameters, options);  // before anything is on its way
  const sycl::event differentiated = forward_backward(parameters, images, targets, after);
  return update(parameters, options, {&differentiated, 1});
}

void TrainingStep::set_loss_scale(float scale) {
  check_scale(scale);
  state_->step.next_scale = scale;
}

float TrainingStep::loss_scale() const noexcept {
  const Step& step = state_->step;
  return step.has_gradients ? step.scale : step.next_scale;
}

Vit& TrainingStep::model() noexcept { return state_->step.model; }
const VitConfig& TrainingStep::config() const noexcept { return state_->step.model.config(); }
std::size_t TrainingStep::bytes() const noexcept { return state_->bytes; }
const VitBuffer& TrainingStep::gradients() const noexcept { return state_->step.gradients; }
TensorView TrainingStep::logits() const { return state_->step.of_last_batch(state_->step.logits); }
TensorView TrainingStep::losses() const { return state_->step.of_last_batch(state_->step.losses); }
TensorView TrainingStep::mean_loss() const { return state_->step.mean.view; }

StepReport TrainingStep::wait_and_read_report() const {
  const Step& step = state_->step;
  if (!step.optimizer) return {};
  const kernels::StepControl control = step.optimizer->state.wait_and_read(step.device);
  return {.norm = control.norm, .applied = control.apply == 1, .taken = control.taken, .skipped = control.skipped};
}

std::vector<float> TrainingStep::wait_and_read_gradient(std::string_view parameter) const {
  std::vector<float> values = state_->step.gradients.read(parameter);
  for (float& value : values) value /= state_->step.scale;
  return values;
}

}  // namespace sylvit
