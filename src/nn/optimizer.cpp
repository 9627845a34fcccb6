#include "nn/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "catalogue/kernel.hpp"
#include "kernels/optimizer.hpp"
#include "nn/tensor_checks.hpp"
#include "tuning/choice.hpp"

namespace sylvit::nn {

namespace {

kernels::OptimizerConfig config_for(const Device& device) {
  return tuning::config_for<kernels::OptimizerConfig>(tuning::table_for(device));
}

/// One work-group for each run.
sycl::range<3> groups_over(std::int64_t count, const kernels::OptimizerConfig& config) {
  return {1, 1, divided_up(count, config.run())};
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
  std::vector<float> rate;
  for (const Segment& segment : segments) {
    if (segment.count < 0) throw Error("a segment of parameters has " + std::to_string(segment.count) + " elements");
    require_number(is_not_negative(segment.rate), "an optimiser", "rate of a parameter", segment.rate);
    if (segment.count == 0) continue;
    total_ += segment.count;
    const float value = segment.decays ? 1.0F : 0.0F;
    if (!decay.empty() && decay.back() == value && rate.back() == segment.rate) {
      ends.back() = total_;
    } else {
      ends.push_back(total_);
      decay.push_back(value);
      rate.push_back(segment.rate);
    }
  }
  count_ = static_cast<int>(ends.size());
  if (count_ == 0) return;
  std::vector<std::byte> all;
  const auto append = [&](const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    all.insert(all.end(), bytes.begin(), bytes.end());
  };
  append(ends);
  append(decay);
  append(rate);
  memory_ = Memory(device, all.size(), "the segments of the parameters");
  runtime::copy(device, memory_.data(), all.data(), all.size()).wait();
}

kernels::ParameterSegments Segments::on_device() const {
  const auto* decay = reinterpret_cast<const float*>(memory_.as<std::int64_t>() + count_);
  return {.ends = memory_.as<std::int64_t>(), .decay = decay, .rate = decay + count_, .count = count_};
}

StepState::StepState(const Device& device, std::int64_t parameters, std::int64_t history)
    : control_(device, sizeof(kernels::StepControl), "the control of the optimiser's steps"),
      partials_(device, std::max<std::size_t>(1, divided_up(parameters, config_for(device).run())) * sizeof(float),
                "the norm of the gradients"),
      records_(device, size(history) * sizeof(kernels::StepRecord), "the metrics of updates"),
      parameters_(parameters),
      history_(history) {
  const kernels::StepControl zeros{};
  runtime::copy(device, control_.data(), &zeros, sizeof(zeros)).wait();
}

kernels::StepControl StepState::wait_and_read(const Device& device) const {
  kernels::StepControl result{};
  device.wait();
  runtime::copy(device, &result, control_.data(), sizeof(result)).wait();
  return result;
}

void StepState::wait_and_set(const Device& device, std::int32_t taken, std::int32_t skipped) const {
  const kernels::StepControl control{.norm = 0, .factor = 0, .apply = 0, .taken = taken, .skipped = skipped};
  device.wait();
  runtime::copy(device, control_.data(), &control, sizeof(control)).wait();
}

sycl::event window_sum(const Device& device, std::span<const WindowNode> nodes, const WindowNode& leaf,
                       const WindowNode& out, Events after) {
  constexpr const char* operation = "window_sum";
  const Shape& shape = leaf.gradients.shape();
  if (shape.rank() != 1 || nodes.size() > kernels::most_window_levels)
    throw Error("window_sum adds up to " + std::to_string(kernels::most_window_levels) +
                " nodes to flat gradients, not " + std::to_string(nodes.size()) + " to " + described(leaf.gradients));
  kernels::WindowSumArguments arguments{};
  arguments.count = shape[0];
  arguments.node_count = static_cast<int>(nodes.size());
  const auto checked = [&](const WindowNode& node, const char* name) -> kernels::WindowNode {
    require_dense(node.gradients, DType::f32, shape, operation, name);
    require_dense(node.sums, DType::f32, {2}, operation, "sums");
    return {.gradients = node.gradients.as<float>(), .sums = node.sums.as<float>()};
  };
  arguments.leaf = checked(leaf, "gradients of the leaf");
  arguments.out = checked(out, "gradients of the sum");
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    arguments.nodes[i] = checked(nodes[i], "gradients of a node");
    require_apart(out.gradients, {nodes[i].gradients}, operation, "gradients of the sum");
    require_apart(out.sums, {nodes[i].sums}, operation, "sum");
  }
  for (const auto& [written, read] : {std::pair(out.gradients, leaf.gradients), std::pair(out.sums, leaf.sums)})
    require(same_or_apart(written, read), operation, "a sum that is the leaf itself or apart from it", written, read);
  const auto config = config_for(device);
  return launch(device, catalogue::kernel<kernels::WindowSumKernel>(config), groups_over(shape[0], config), arguments,
                after);
}

sycl::event write_step_control(const Device& device, const TensorView& gradients, const StepState& state,
                               const ClipOptions& options, Events after, const StepNote& note) {
  constexpr const char* operation = "write_step_control";
  require_dense(gradients, DType::f32, {state.parameters()}, operation, "gradients");
  require_number(options.gradient_scale > 0.0F && std::isfinite(options.gradient_scale), operation, "gradient scale",
                 options.gradient_scale);
  require_number(is_not_negative(options.max_norm), operation, "largest norm", options.max_norm);
  if (note.sums) require_dense(note.sums, DType::f32, {2}, operation, "sums");
  const auto config = config_for(device);
  const sycl::range<3> groups = groups_over(state.parameters(), config);
  const sycl::event summed = launch(device, catalogue::kernel<kernels::SquareSumsKernel>(config), groups,
                                    {.gradients = gradients.as<float>(),
                                     .partials = state.partials(),
                                     .count = state.parameters(),
                                     .scale = options.gradient_scale},
                                    after);
  return launch(device, catalogue::kernel<kernels::WriteStepControlKernel>(config), {1, 1, 1},
                {.partials = state.partials(),
                 .control = state.control(),
                 .record = note.sums ? state.record_of(note.update) : nullptr,
                 .sums = note.sums.as<float>(),
                 .count = static_cast<std::int64_t>(groups[2]),
                 .scale = options.gradient_scale,
                 .max_norm = options.max_norm,
                 .images = static_cast<float>(note.images)},
                std::span(&summed, 1));
}

void check(const AdamWOptions& options) {
  constexpr const char* operation = "adamw";
  require_number(is_not_negative(options.learning_rate), operation, "learning rate", options.learning_rate);
  require_number(is_share(options.beta1), operation, "first beta", options.beta1);
  require_number(is_share(options.beta2), operation, "second beta", options.beta2);
  require_number(is_not_negative(options.epsilon), operation, "epsilon", options.epsilon);
  require_number(is_not_negative(options.weight_decay), operation, "weight decay", options.weight_decay);
}

void check(const SgdOptions& options) {
  constexpr const char* operation = "sgd";
  require_number(is_not_negative(options.learning_rate), operation, "learning rate", options.learning_rate);
  require_number(is_share(options.momentum), operation, "momentum", options.momentum);
  require_number(is_not_negative(options.weight_decay), operation, "weight decay", options.weight_decay);
}

void check(const UpdateOptions& options) {
  constexpr const char* operation = "update";
  if (options.decay_factor)
    require_number(is_not_negative(*options.decay_factor), operation, "decay factor", *options.decay_factor);
  require_number(is_share(options.average_decay), operation, "average's decay", options.average_decay);
  require_number(is_not_negative(options.max_norm), operation, "largest norm", options.max_norm);
}

sycl::event adamw(const Device& device, const TensorView& parameters, const TensorView& gradients,
                  const TensorView& first_moment, const TensorView& second_moment, const TensorView& copy,
                  const Segments& segments, const StepState& state, const AdamWOptions& options, Events after,
                  std::optional<float> decay_factor) {
  constexpr const char* operation = "adamw";
  require_flat(operation,
               {{"gradients", gradients},
                {"parameters", parameters},
                {"first moment", first_moment},
                {"second moment", second_moment}},
               copy, segments, state);
  check(options);
  const auto config = config_for(device);
  return launch(device, catalogue::kernel<kernels::AdamWKernel>(config, copy_type(copy)),
                groups_over(segments.total(), config),
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
                 .weight_decay = options.weight_decay,
                 .decay_factor = decay_factor.value_or(0.0F),
                 .separates = decay_factor ? 1 : 0},
                after);
}

sycl::event sgd(const Device& device, const TensorView& parameters, const TensorView& gradients,
                const TensorView& momentum, const TensorView& copy, const Segments& segments, const StepState& state,
                const SgdOptions& options, Events after, std::optional<float> decay_factor) {
  constexpr const char* operation = "sgd";
  require_flat(operation, {{"gradients", gradients}, {"parameters", parameters}, {"momentum", momentum}}, copy,
               segments, state);
  check(options);
  const auto config = config_for(device);
  return launch(device, catalogue::kernel<kernels::SgdKernel>(config, copy_type(copy)),
                groups_over(segments.total(), config),
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
                 .decay_factor = decay_factor.value_or(0.0F),
                 .separates = decay_factor ? 1 : 0,
                 .nesterov = options.nesterov ? 1 : 0},
                after);
}

sycl::event average(const Device& device, const TensorView& parameters, const TensorView& average,
                    const StepState& state, float decay, Events after) {
  constexpr const char* operation = "average";
  const Shape shape{state.parameters()};
  require_dense(parameters, DType::f32, shape, operation, "parameters");
  require_dense(average, DType::f32, shape, operation, "average");
  require_apart(average, {parameters}, operation, "average");
  require_number(is_share(decay), operation, "decay", decay);
  const auto config = config_for(device);
  return launch(device, catalogue::kernel<kernels::AverageKernel>(config), groups_over(shape[0], config),
                {.parameters = parameters.as<float>(),
                 .average = average.as<float>(),
                 .control = state.control(),
                 .count = shape[0],
                 .gain = 1.0F - decay},
                after);
}

}  // namespace sylvit::nn
