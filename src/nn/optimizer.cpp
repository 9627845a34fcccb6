#include "nn/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "nn/tensor_checks.hpp"
#include "nn/training_kernels.hpp"

namespace sylvit::nn {

namespace {

Tuned<kernels::OptimizerConfig> config_for(const Device& device) { return optimizer_config(tuning::table_for(device)); }

/// One work-group for each run.
runtime::Grid grid_over(std::int64_t count, const Tuned<kernels::OptimizerConfig>& config) {
  return {.groups = {1, 1, divided_up(count, config.run())}, .work_items = static_cast<std::size_t>(config.lanes)};
}

struct Buffer {
  const char* name;
  const TensorView& view;
};

/// The buffers and their count of elements fit together; no two overlap. The gradients stand first.
void require_flat(const char* operation, std::initializer_list<Buffer> buffers, const TensorView& copy,
                  const Segments& segments, const StepState& state) {
  const Shape shape{segments.total()};
  if (state.parameters() != segments.total())
    throw Error(std::string(operation) + ": the state is for " + std::to_string(state.parameters()) +
                " parameters, and the segments have " + std::to_string(segments.total()));
  for (const Buffer& buffer : buffers) {
    require_dense(buffer.view, DType::f32, shape, operation, buffer.name);
    for (const Buffer& other : buffers)
      if (&other != &buffer) require_apart(buffer.view, {other.view, copy}, operation, buffer.name);
  }
  if (!copy) return;
  if (copy.dtype() != DType::bf16 && copy.dtype() != DType::f16)
    throw Error(std::string(operation) + ": the copy of the parameters must be bf16 or f16, and is " + described(copy));
  require_dense(copy, copy.dtype(), shape, operation, "copy of the parameters");
}

void require_number(bool good, const char* operation, const char* name, float value) {
  if (!good) throw Error(std::string(operation) + ": the " + name + " cannot be " + std::to_string(value));
}

bool is_not_negative(float value) { return value >= 0.0F && std::isfinite(value); }
bool is_share(float value) { return value >= 0.0F && value < 1.0F; }

DType copy_type(const TensorView& copy) { return copy ? copy.dtype() : DType::f32; }

/// log β, -inf for 0: exact enough for 1 - βᵗ at any t.
float logarithm(float beta) { return static_cast<float>(std::log(static_cast<double>(beta))); }

}  // namespace

Segments::Segments(const Device& device, std::span<const Segment> segments) {
  std::vector<std::int64_t> ends;
  std::vector<float> decay;
  for (const Segment& segment : segments) {
    if (segment.count < 0) throw Error("a segment of parameters has " + std::to_string(segment.count) + " elements");
    if (segment.count == 0) continue;
    total_ += segment.count;
    const float value = segment.decays ? 1.0F : 0.0F;
    if (!decay.empty() && decay.back() == value) {
      ends.back() = total_;
    } else {
      ends.push_back(total_);
      decay.push_back(value);
    }
  }
  count_ = static_cast<int>(ends.size());
  if (count_ == 0) return;
  const std::size_t ends_bytes = ends.size() * sizeof(std::int64_t);
  std::vector<std::byte> both(ends_bytes + decay.size() * sizeof(float));
  std::memcpy(both.data(), ends.data(), ends_bytes);
  std::memcpy(both.data() + ends_bytes, decay.data(), decay.size() * sizeof(float));
  memory_ = Memory(device, both.size(), "the segments of the parameters");
  device.queue().memcpy(memory_.data(), both.data(), both.size()).wait();
}

kernels::DecaySegments Segments::on_device() const {
  return {.ends = memory_.as<std::int64_t>(),
          .decay = reinterpret_cast<const float*>(memory_.as<std::int64_t>() + count_),
          .count = count_};
}

StepState::StepState(const Device& device, std::int64_t parameters)
    : control_(device, sizeof(kernels::StepControl), "the control of the optimiser's steps"),
      partials_(device, std::max<std::size_t>(1, divided_up(parameters, config_for(device).run())) * sizeof(float),
                "the norm of the gradients"),
      parameters_(parameters) {
  const kernels::StepControl zeros{};
  device.queue().memcpy(control_.data(), &zeros, sizeof(zeros)).wait();
}

kernels::StepControl StepState::wait_and_read(const Device& device) const {
  kernels::StepControl result{};
  device.wait();
  device.queue().memcpy(&result, control_.data(), sizeof(result)).wait();
  return result;
}

void StepState::wait_and_set_taken(const Device& device, std::int32_t taken) const {
  device.wait();
  device.queue().memcpy(&control()->taken, &taken, sizeof(taken)).wait();
}

sycl::event write_step_control(const Device& device, const TensorView& gradients, const StepState& state,
                               const ClipOptions& options, Events after) {
  constexpr const char* operation = "write_step_control";
  require_dense(gradients, DType::f32, {state.parameters()}, operation, "gradients");
  require_number(options.gradient_scale > 0.0F && std::isfinite(options.gradient_scale), operation, "gradient scale",
                 options.gradient_scale);
  require_number(is_not_negative(options.max_norm), operation, "largest norm", options.max_norm);
  const auto config = config_for(device);
  runtime::Grid grid = grid_over(state.parameters(), config);
  grid.local_floats = static_cast<std::size_t>(config.local_floats());
  const sycl::event summed = launch(device, square_sums_kernel(config), grid,
                                    {.gradients = gradients.as<float>(),
                                     .partials = state.partials(),
                                     .count = state.parameters(),
                                     .scale = options.gradient_scale},
                                    after);
  const auto partials = static_cast<std::int64_t>(grid.groups[2]);
  grid.groups = {1, 1, 1};
  return launch(device, step_control_kernel(config), grid,
                {.partials = state.partials(),
                 .control = state.control(),
                 .count = partials,
                 .scale = options.gradient_scale,
                 .max_norm = options.max_norm},
                std::span(&summed, 1));
}

sycl::event adamw(const Device& device, const TensorView& parameters, const TensorView& gradients,
                  const TensorView& first_moment, const TensorView& second_moment, const TensorView& copy,
                  const Segments& segments, const StepState& state, const AdamWOptions& options, Events after) {
  constexpr const char* operation = "adamw";
  require_flat(operation,
               {{"gradients", gradients},
                {"parameters", parameters},
                {"first moment", first_moment},
                {"second moment", second_moment}},
               copy, segments, state);
  require_number(is_not_negative(options.learning_rate), operation, "learning rate", options.learning_rate);
  require_number(is_share(options.beta1), operation, "first beta", options.beta1);
  require_number(is_share(options.beta2), operation, "second beta", options.beta2);
  require_number(is_not_negative(options.epsilon), operation, "epsilon", options.epsilon);
  require_number(is_not_negative(options.weight_decay), operation, "weight decay", options.weight_decay);
  const auto config = config_for(device);
  return launch(device, adamw_kernel(copy_type(copy), config), grid_over(segments.total(), config),
                {.parameters = parameters.as<float>(),
                 .gradients = gradients.as<float>(),
                 .first = first_moment.as<float>(),
                 .second = second_moment.as<float>(),
                 .copy = copy.data(),
                 .control = state.control(),
                 .segments = segments.on_device(),
                 .count = segments.total(),
                 .learning_rate = options.learning_rate,
                 .beta1 = options.beta1,
                 .beta2 = options.beta2,
                 .log_beta1 = logarithm(options.beta1),
                 .log_beta2 = logarithm(options.beta2),
                 .epsilon = options.epsilon,
                 .weight_decay = options.weight_decay},
                after);
}

sycl::event sgd(const Device& device, const TensorView& parameters, const TensorView& gradients,
                const TensorView& momentum, const TensorView& copy, const Segments& segments, const StepState& state,
                const SgdOptions& options, Events after) {
  constexpr const char* operation = "sgd";
  require_flat(operation, {{"gradients", gradients}, {"parameters", parameters}, {"momentum", momentum}}, copy,
               segments, state);
  require_number(is_not_negative(options.learning_rate), operation, "learning rate", options.learning_rate);
  require_number(is_share(options.momentum), operation, "momentum", options.momentum);
  require_number(is_not_negative(options.weight_decay), operation, "weight decay", options.weight_decay);
  const auto config = config_for(device);
  return launch(device, sgd_kernel(copy_type(copy), config), grid_over(segments.total(), config),
                {.parameters = parameters.as<float>(),
                 .gradients = gradients.as<float>(),
                 .momentum = momentum.as<float>(),
                 .copy = copy.data(),
                 .control = state.control(),
                 .segments = segments.on_device(),
                 .count = segments.total(),
                 .learning_rate = options.learning_rate,
                 .friction = options.momentum,
                 .weight_decay = options.weight_decay,
                 .nesterov = options.nesterov ? 1 : 0},
                after);
}

}  // namespace sylvit::nn
