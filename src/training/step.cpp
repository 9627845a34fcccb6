// The public training step: it owns what a step needs besides the parameters, and goes through it once on a rehearsal's
// device, so that all kernels are known, and built, before anything runs.
#include <sylvit/error.hpp>
#include <sylvit/training.hpp>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include "base/counts.hpp"
#include "nn/loss.hpp"
#include "nn/optimizer.hpp"
#include "runtime/memory_error.hpp"
#include "runtime/rehearsal.hpp"
#include "training/numbers.hpp"

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
    const float rate = options.rate ? options.rate(parameters[i]) : 1.0F;
    segments.push_back({end - buffer.offset(parameters[i].name), decays, rate});
  }
  return segments;
}

/// What an optimiser keeps from one update to the next.
struct Optimizer {
  Optimizer(const Device& device, const VitConfig& config, const TrainingOptions& options)
      : first(device, config, "the optimiser's moments"),
        segments(device, segments_of(first, options)),
        state(device, segments.total(), checked_history(options.history)) {
    if (std::holds_alternative<AdamWOptions>(options.optimizer))
      second.emplace(device, config, "the optimiser's moments");
    if (options.average) average.emplace(device, config, "the parameters' average");
  }

  static std::int64_t checked_history(std::int64_t updates) {
    if (updates < 1 || updates > 1 << 20)
      throw Error("metrics of " + std::to_string(updates) + " updates are to be kept, and it must be 1 to 1048576");
    return updates;
  }

  VitBuffer first;                  // AdamW's first moment, or SGD's momentum
  std::optional<VitBuffer> second;  // AdamW's second moment
  std::optional<VitBuffer> average;
  bool averages = false;  // Has the average begun?
  nn::Segments segments;
  nn::StepState state;
};

/// The micro-batches whose gradients make up an update.
struct Window {
  std::int64_t passes = 0;  // so far
  std::int64_t images = 0;  // of all of them
  std::int64_t share = 0;   // what an image's gradient is divided by meanwhile
  float scale = 1;          // loss scale
  bool open = false;        // Can there be more of them?
  bool used = false;        // Was there an update with them?

  /// What the sum of all gradients is more than the gradient of the mean loss.
  double factor() const {
    return static_cast<double>(scale) * static_cast<double>(images) / static_cast<double>(share);
  }
};

/// The inner nodes of the tree over a window of that many micro-batches, one for each level. All but the window's last
/// micro-batch are in them: node n is there if bit n of their number is set.
std::vector<VitBuffer> window_nodes(const Device& device, const VitConfig& config, const TrainingOptions& options) {
  constexpr std::int64_t most = std::int64_t{1} << kernels::most_window_levels;
  if (options.window < 1 || options.window > most)
    throw Error("a window of " + std::to_string(options.window) + " micro-batches is asked for, and it must be 1 to " +
                std::to_string(most));
  std::vector<VitBuffer> nodes;
  for (std::int64_t last = options.window - 1; last > 0; last /= 2)
    nodes.emplace_back(device, config, "the sums of gradients");
  return nodes;
}

/// The memory of a step, and the order of its operations. The same code runs on a device and in a rehearsal.
struct Step {
  Step(const Device& on, const VitConfig& config, const TrainingOptions& wanted)
      : device(on),
        options(wanted),
        model(on, config, model_options(wanted)),
        gradients(on, config, "the gradients"),
        nodes(window_nodes(on, config, wanted)),
        logits(on, DType::f32, {wanted.batch, config.classes}),
        losses(on, DType::f32, {wanted.batch}),
        right(on, DType::f32, {wanted.batch}),
        sums(on, DType::f32, {static_cast<std::int64_t>(nodes.size()) + 1, 2}),
        mean(on, DType::f32, {1}),
        logits_gradient(on, wanted.dtype, {wanted.batch, config.classes}),
        next_scale(wanted.loss_scale.value_or(default_loss_scale(wanted.dtype))),
        last_batch(wanted.batch) {
    check_scale(next_scale);
    if (!std::holds_alternative<std::monostate>(options.optimizer)) optimizer.emplace(device, config, options);
  }

  sycl::event forward_backward(const VitParameters& parameters, const TensorView& images, const TensorView& targets,
                               Events after) {
    if (window.open)
      throw Error("forward_backward() was called in a window of " + std::to_string(window.passes) + " micro-batches",
                  "end it by update() or sum_window() first");
    return pass(parameters, images, targets, {.share = batch_of(images), .scale = next_scale}, after);
  }

  sycl::event accumulate(const VitParameters& parameters, const TensorView& images, const TensorView& targets,
                         Events after) {
    if (!window.open)
      return pass(parameters, images, targets, {.share = options.batch, .scale = next_scale, .open = true}, after);
    if (window.passes == options.window)
      throw Error("a window of " + std::to_string(options.window) + " micro-batches is full",
                  "call update(), or ask for more by TrainingOptions::window");
    // The last micro-batch's memory is wanted again: it goes into the tree, as a binary counter counts. Doing so twice,
    // should the pass throw, changes nothing.
    const auto before = base::size(window.passes - 1);
    const int carries = std::countr_one(before);
    const sycl::event kept = add_nodes(before & ((std::size_t{1} << carries) - 1), node(base::size(carries)), after);
    return pass(parameters, images, targets, window, {&kept, 1});
  }

  /// Adds up what is left of the tree.
  sycl::event sum_window(Events after) {
    if (!window.open) throw Error("there is no window of micro-batches to be added up", "call accumulate() first");
    window.open = false;
    return add_nodes(base::size(window.passes - 1), leaf(), after);
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
    nn::check(now);
  }

  sycl::event update(const VitParameters& parameters, const UpdateOptions& now, Events after) {
    check_update(parameters, now);
    if (window.passes == 0) throw Error("an update needs gradients, and there was no forward_backward() yet");
    sycl::event summed;
    if (window.open && window.passes > 1) {
      summed = sum_window(after);
      after = {&summed, 1};
    }
    window.open = false;
    window.used = true;
    sycl::event decided =
        nn::write_step_control(device, gradients.flat(), optimizer->state,
                               {.gradient_scale = static_cast<float>(1 / window.factor()), .max_norm = now.max_norm},
                               after, {.update = updates, .sums = leaf().sums, .images = window.images});
    unread.push_back({.update = updates, .loss_scale = window.scale, .images = window.images});
    if (unread.size() > base::size(options.history)) unread.pop_front();
    ++updates;
    const TensorView values = parameters.values().flat();
    if (optimizer->average && !optimizer->averages) {
      decided =
          runtime::copy(device, optimizer->average->flat().data(), values.data(), values.span_bytes(), {&decided, 1});
      optimizer->averages = true;
    }
    last_update = optimise(values, parameters.copy(), now, {&decided, 1});
    if (optimizer->average)
      last_update = nn::average(device, values, optimizer->average->flat(), optimizer->state, now.average_decay,
                                {&last_update, 1});
    return last_update;
  }

  /// What there is to be saved besides the parameters, as it is when the device has done all its work.
  TrainingState get_state() const {
    TrainingState result;
    std::map<std::string, double>& numbers = result.numbers;
    const auto note = [&](const std::string& name, auto value) { numbers[name] = static_cast<double>(value); };
    note("updates", updates);
    note("loss_scale", next_scale);
    if (optimizer) {
      const kernels::StepControl control = optimizer->state.wait_and_read(device);
      note("taken", control.taken);
      note("skipped", control.skipped);
      note("averages", optimizer->averages ? 1 : 0);
    }
    const bool wanted = window.passes > 0 && !window.used;
    note("window.passes", wanted ? window.passes : 0);
    if (wanted) {
      note("window.images", window.images);
      note("window.share", window.share);
      note("window.scale", window.scale);
      note("window.open", window.open ? 1 : 0);
      std::vector<float> all(base::size(sums.view.shape().elements()));
      runtime::copy(device, all.data(), sums.view.data(), sums.view.span_bytes()).wait();
      for (const std::size_t index : nodes_in_use())
        for (std::size_t i = 0; i < 2; ++i) note(name_of_sum(index, i), all[2 * index + i]);
    }
    result.buffers = buffers_in_use();
    return result;
  }

  void restore(const std::map<std::string, double>& given,
               const std::function<void(const std::string&, const VitBuffer&)>& fill) {
    training::NumberReader numbers(given, "the training step");
    constexpr std::int64_t most_steps = std::numeric_limits<std::int32_t>::max();
    const std::int64_t new_updates = numbers.count("updates");
    const float new_scale = numbers.scale("loss_scale");
    std::int64_t taken = 0;
    std::int64_t skipped = 0;
    bool averages = false;
    if (optimizer) {
      taken = numbers.count("taken", most_steps);
      skipped = numbers.count("skipped", most_steps);
      averages = numbers.count("averages", optimizer->average ? 1 : 0) == 1;
    }
    Window restored{.passes = numbers.count("window.passes", options.window), .scale = new_scale};
    if (restored.passes > 0) {
      restored.images = numbers.count("window.images");
      restored.share = numbers.count("window.share");
      restored.scale = numbers.scale("window.scale");
      restored.open = numbers.count("window.open", 1) == 1;
      if (restored.images < 1 || restored.share < 1)
        throw Error("the state of the training step has a window without images");
    }
    const Window before = std::exchange(window, restored);
    std::vector<float> all(base::size(sums.view.shape().elements()));
    try {
      if (restored.passes > 0)
        for (const std::size_t index : nodes_in_use())
          for (std::size_t i = 0; i < 2; ++i)
            all[2 * index + i] = static_cast<float>(numbers.number(name_of_sum(index, i)));
      numbers.finish();
    } catch (...) {
      window = before;
      throw;
    }
    updates = new_updates;
    next_scale = new_scale;
    unread.clear();
    device.wait();
    runtime::copy(device, sums.view.data(), all.data(), sums.view.span_bytes()).wait();
    if (optimizer) {
      optimizer->state.wait_and_set(device, static_cast<std::int32_t>(taken), static_cast<std::int32_t>(skipped));
      optimizer->averages = averages;
    }
    for (const TrainingState::Buffer& buffer : buffers_in_use()) fill(buffer.name, *buffer.buffer);
  }

  float gradient_scale() const { return window.passes > 0 ? static_cast<float>(window.factor()) : next_scale; }
  TensorView of_last_batch(const OwnTensor& tensor) const { return tensor.view.slice(0, 0, last_batch); }

  Device device;
  TrainingOptions options;
  Vit model;
  VitBuffer gradients;
  std::vector<VitBuffer> nodes;
  OwnTensor logits, losses, right;
  OwnTensor sums;  // of each node, and, last, of the last micro-batch
  OwnTensor mean, logits_gradient;
  std::optional<Optimizer> optimizer = {};
  float next_scale;  // of the next window
  Window window = {};
  std::int64_t updates = 0;             // so far
  std::deque<StepMetrics> unread = {};  // what the host knows of the last ones
  sycl::event last_update = {};
  std::int64_t last_batch;

 private:
  static std::int64_t batch_of(const TensorView& images) { return images.shape().rank() > 0 ? images.extent(0) : 0; }

  /// Forward pass, loss and backward pass of one more micro-batch of the window.
  sycl::event pass(const VitParameters& parameters, const TensorView& images, const TensorView& targets, Window next,
                   Events after) {
    const std::int64_t batch = batch_of(images);
    const bool fits = batch >= 1 && batch <= options.batch;  // if not, the forward pass says so
    // Before anything is on its way; the passes check the rest.
    if (fits) nn::require_targets(targets, {batch, model.config().classes});
    const auto used = [&](const OwnTensor& tensor) { return fits ? tensor.view.slice(0, 0, batch) : tensor.view; };
    const sycl::event seen = model.forward(parameters, images, used(logits), after);
    last_batch = batch;
    next.passes += 1;
    next.images += batch;
    window = next;
    const sycl::event scored = nn::cross_entropy(device, used(logits), targets, used(losses), mean.view,
                                                 used(logits_gradient), options.loss, window.scale, {&seen, 1},
                                                 {.images = window.share, .right = used(right), .sums = leaf().sums});
    return model.backward(parameters, images, used(logits_gradient), gradients, {&scored, 1});
  }

  sycl::event optimise(const TensorView& values, const TensorView& copy, const UpdateOptions& now, Events after) const {
    const TensorView from = gradients.flat();
    const TensorView first = optimizer->first.flat();
    if (const auto* const adamw = std::get_if<AdamWOptions>(&options.optimizer))
      return nn::adamw(device, values, from, first, optimizer->second->flat(), copy, optimizer->segments,
                       optimizer->state, with_rate(*adamw, now), after, now.decay_factor);
    return nn::sgd(device, values, from, first, copy, optimizer->segments, optimizer->state,
                   with_rate(std::get<SgdOptions>(options.optimizer), now), after, now.decay_factor);
  }

  /// Those nodes that hold a part of the window's sum, and, last, the leaf.
  std::vector<std::size_t> nodes_in_use() const {
    std::vector<std::size_t> used;
    if (window.open)
      for (std::size_t level = 0; level < nodes.size(); ++level)
        if ((base::size(window.passes - 1) >> level & 1U) != 0) used.push_back(level);
    used.push_back(nodes.size());
    return used;
  }
  std::string name_of_sum(std::size_t index, std::size_t which) const {
    std::string name = which == 0 ? "window.loss" : "window.right";
    if (index < nodes.size()) name.append(".").append(std::to_string(index));
    return name;
  }
  std::vector<TrainingState::Buffer> buffers_in_use() const {
    std::vector<TrainingState::Buffer> used;
    if (optimizer) {
      used.push_back({optimizer->second ? "adamw.first" : "sgd.momentum", &optimizer->first});
      if (optimizer->second) used.push_back({"adamw.second", &*optimizer->second});
      if (optimizer->averages) used.push_back({"average", &*optimizer->average});
    }
    if (window.passes == 0 || window.used) return used;
    for (const std::size_t index : nodes_in_use())
      used.push_back(index < nodes.size()
                         ? TrainingState::Buffer{"window.gradients." + std::to_string(index), &nodes[index]}
                         : TrainingState::Buffer{"window.gradients", &gradients});
    return used;
  }

  TensorView sums_of(std::size_t index) const { return {sums.view.as<float>() + 2 * index, DType::f32, {2}}; }
  nn::WindowNode node(std::size_t level) const { return {nodes[level].flat(), sums_of(level)}; }
  nn::WindowNode leaf() const { return {gradients.flat(), sums_of(nodes.size())}; }

  /// out = the last micro-batch and those nodes whose bits are set.
  sycl::event add_nodes(std::size_t which, const nn::WindowNode& out, Events after) const {
    std::vector<nn::WindowNode> chosen;
    for (std::size_t level = 0; level < nodes.size(); ++level)
      if ((which >> level & 1U) != 0) chosen.push_back(node(level));
    return nn::window_sum(device, chosen, leaf(), out, after);
  }

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
  const TensorView all{images.data(), DType::f32, shape};
  const TensorView targets{labels.data(), DType::i64, {options.batch}};
  step.forward_backward(parameters, all, targets, {});
  if (options.window > 1) {
    for (int i = 0; i < 2; ++i) step.accumulate(parameters, all, targets, {});
    step.sum_window({});
  }
  if (step.optimizer) step.update(parameters, {}, {});
  return {rehearsal.kernels(), bytes};
}

}  // namespace

/// A copy of all records, on its way to the host.
struct PendingMetrics::State {
  State(const Device& on, const nn::StepState& state, std::vector<StepMetrics> of, std::vector<sycl::event> after)
      : device(on), records(base::size(state.history())), metrics(std::move(of)) {
    copied = runtime::copy(device, records.data(), state.records(), records.size() * sizeof(records[0]), after);
  }
  ~State() {
    try {
      copied.wait();                    // the copy wants its place
    } catch (const sycl::exception&) {  // then there is no copy any more
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Device device;
  std::vector<kernels::StepRecord> records;
  std::vector<StepMetrics> metrics;
  sycl::event copied;
};

bool PendingMetrics::ready() const {
  return !state_ || state_->copied.get_info<sycl::info::event::command_execution_status>() ==
                        sycl::info::event_command_status::complete;
}

std::vector<StepMetrics> PendingMetrics::wait() const {
  if (!state_) return {};
  sycl::event copied = state_->copied;
  copied.wait();
  std::vector<StepMetrics> result = state_->metrics;
  for (StepMetrics& metrics : result) {
    const kernels::StepRecord& record = state_->records[base::size(metrics.update) % state_->records.size()];
    metrics.loss = record.loss;
    metrics.norm = record.norm;
    metrics.applied = record.apply == 1;
    metrics.right = record.right;
  }
  return result;
}

bool decays_by_rank(const VitParameter& parameter) { return parameter.shape.rank() > 1; }

bool decays_by_weight(const VitParameter& parameter) {
  return parameter.shape.rank() > 1 && parameter.name.ends_with(".weight");
}

float layer_rate(const VitConfig& config, const VitParameter& parameter, float decay) {
  const std::string_view name = parameter.name;
  constexpr std::string_view blocks = "blocks.";
  std::int64_t layer = config.depth + 1;
  if (name == "cls_token" || name == "pos_embed" || name.starts_with("patch_embed.")) layer = 0;
  if (name.starts_with(blocks)) layer = std::strtoll(name.data() + blocks.size(), nullptr, 10) + 1;
  if (name.starts_with("norm.")) layer = config.depth;
  return static_cast<float>(std::pow(static_cast<double>(decay), static_cast<double>(config.depth + 1 - layer)));
}

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

sycl::event TrainingStep::accumulate(const VitParameters& parameters, const TensorView& images,
                                     const TensorView& targets, std::span<const sycl::event> after) {
  return state_->step.accumulate(parameters, images, targets, after);
}

sycl::event TrainingStep::sum_window(std::span<const sycl::event> after) { return state_->step.sum_window(after); }

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

PendingMetrics TrainingStep::read_metrics(std::span<const sycl::event> after) {
  Step& step = state_->step;
  if (!step.optimizer || step.unread.empty()) return PendingMetrics(nullptr);
  std::vector<sycl::event> events(after.begin(), after.end());
  events.push_back(step.last_update);
  std::vector<StepMetrics> of(step.unread.begin(), step.unread.end());
  step.unread.clear();
  return PendingMetrics(std::make_shared<const PendingMetrics::State>(step.device, step.optimizer->state, std::move(of),
                                                                      std::move(events)));
}

TrainingState TrainingStep::wait_and_get_state() const {
  state_->step.device.wait();
  return state_->step.get_state();
}

void TrainingStep::restore(const std::map<std::string, double>& numbers,
                           const std::function<void(const std::string& name, const VitBuffer& buffer)>& fill) {
  state_->step.restore(numbers, fill);
}

void TrainingStep::set_loss_scale(float scale) {
  check_scale(scale);
  state_->step.next_scale = scale;
}

float TrainingStep::loss_scale() const noexcept {
  const Step& step = state_->step;
  return step.window.passes > 0 ? step.window.scale : step.next_scale;
}

float TrainingStep::gradient_scale() const noexcept { return state_->step.gradient_scale(); }

Vit& TrainingStep::model() noexcept { return state_->step.model; }
const VitConfig& TrainingStep::config() const noexcept { return state_->step.model.config(); }
std::size_t TrainingStep::bytes() const noexcept { return state_->bytes; }
const VitBuffer& TrainingStep::gradients() const noexcept { return state_->step.gradients; }
const VitBuffer& TrainingStep::average() const {
  const std::optional<Optimizer>& optimizer = state_->step.optimizer;
  if (!optimizer || !optimizer->average)
    throw Error("the training step keeps no average of the parameters", "choose TrainingOptions::average");
  if (!optimizer->averages) throw Error("there is no average of the parameters before the first update");
  return *optimizer->average;
}

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
  const Window& window = state_->step.window;
  if (window.open && window.passes > 1)
    throw Error("the gradients of " + std::to_string(window.passes) + " micro-batches are not added up yet",
                "call sum_window() or update() first");
  std::vector<float> values = state_->step.gradients.read(parameter);
  for (float& value : values) value /= gradient_scale();
  return values;
}

}  // namespace sylvit
