// Training a Vision Transformer: losses, optimisers, and a step that has all of it in one plan.
//
//     VitParameters parameters(device, config, DType::bf16);
//     parameters.initialise(1);
//     TrainingStep step(device, config, {.dtype = DType::bf16, .batch = 64, .optimizer = AdamWOptions{}});
//     for (…) step.train(parameters, images, labels, {.learning_rate = rate, .max_norm = 1});
//     const StepReport report = step.wait_and_read_report();
//
// A step is a forward pass, the loss, a backward pass (forward_backward), and a change of the parameters (update). A
// large batch goes through it in parts, whose gradients are added up:
//
//     for (const Part& part : parts) step.accumulate(parameters, part.images, part.labels);
//     step.update(parameters, {.learning_rate = rate, .max_norm = 1});
//
// Loss, norm, clip factor and number of steps stay in device memory, so that no step waits for the host. All results
// are bitwise repeatable.
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/export.hpp>
#include <sylvit/pass.hpp>
#include <sylvit/tensor.hpp>
#include <sylvit/vit.hpp>
#include <sylvit/vit_config.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sylvit {

/// Cross-entropies.
enum class Loss : std::uint8_t {
  softmax,  ///< PyTorch's cross_entropy
  sigmoid   ///< one binary cross-entropy for each class, added up
};

/// Which loss, and what it is given.
struct LossOptions {
  Loss loss = Loss::softmax;  ///< which
  float smoothing = 0.0F;     ///< s: targets become (1 - s) t + s / classes
};

/// What a loss is multiplied with where nobody says otherwise: a power of two that keeps f16 gradients away from the
/// smallest numbers.
constexpr float default_loss_scale(DType dtype) { return dtype == DType::f16 ? 1024.0F : 1.0F; }

/// Throws Error naming the first image whose label is not 0 to classes - 1. Labels in host memory: on a device they are
/// not looked at, and a label that is no class makes NaN.
SYLVIT_API void check_labels(std::span<const std::int64_t> labels, std::int64_t classes);
/// The same for labels of 32 bits.
SYLVIT_API void check_labels(std::span<const std::int32_t> labels, std::int64_t classes);

/// PyTorch's AdamW.
struct AdamWOptions {
  float learning_rate = 1e-3F;  ///< of updates that name no other
  float beta1 = 0.9F;           ///< of the gradients' mean
  float beta2 = 0.999F;         ///< of their squares' mean
  float epsilon = 1e-8F;        ///< added to the root of the latter
  float weight_decay = 0.01F;   ///< times the learning rate: the share of a parameter that a step takes away
};

/// PyTorch's SGD without dampening. The momentum starts as zeros.
struct SgdOptions {
  float learning_rate = 0.1F;  ///< of updates that name no other
  float momentum = 0.9F;       ///< the share of the last step that the next one has
  float weight_decay = 0.0F;   ///< times the parameter: added to its gradient
  bool nesterov = false;       ///< Nesterov's momentum
};

/// Which optimiser, if any.
using OptimizerOptions = std::variant<std::monostate, AdamWOptions, SgdOptions>;

/// What differs from one update to the next.
struct UpdateOptions {
  std::optional<float> learning_rate = {};  ///< empty: that of the optimiser's options
  float max_norm = 0.0F;                    ///< clip the norm of all gradients to this; 0: no clipping
  /// Weight decay is times this instead of the learning rate, as BigVision's is times the schedule alone; rates of
  /// single parameters do not change it. SGD's decay then pulls the parameters instead of adding to their gradients.
  std::optional<float> decay_factor = {};
  float average_decay = 0.9999F;  ///< TrainingOptions::average: the share that stays of it
};

/// The usual rule, and the default: weight decay acts on parameters of more than one axis (matrices, positions, class
/// token), not on biases and norms.
SYLVIT_API bool decays_by_rank(const VitParameter& parameter);
/// BigVision's rule: weight decay acts on the weights of linear layers and of the patch embedding.
SYLVIT_API bool decays_by_weight(const VitParameter& parameter);
/// Timm's layer decay: a parameter's rate is decay^n, n layers before the head. The embeddings are the first layer,
/// each block is one, the norm behind them belongs to the last block.
SYLVIT_API float layer_rate(const VitConfig& config, const VitParameter& parameter, float decay);

/// How a training step is made.
struct TrainingOptions {
  DType dtype = DType::f32;                              ///< of activations and products: f32, bf16 or f16
  std::int64_t batch = 1;                                ///< the largest that it will be given: a micro-batch
  bool recompute = false;                                ///< VitOptions::recompute
  LossOptions loss = {};                                 ///< of the logits
  std::optional<float> loss_scale = {};                  ///< empty: default_loss_scale(dtype)
  OptimizerOptions optimizer = {};                       ///< none: update() is not there
  std::function<bool(const VitParameter&)> decays = {};  ///< Does weight decay act on it? Empty: decays_by_rank
  std::function<float(const VitParameter&)> rate = {};   ///< what its learning rate is multiplied with. Empty: 1
  bool average = false;                                  ///< keep a moving average of the parameters
  std::int64_t window = 1;    ///< the most micro-batches that accumulate() is given before an update, up to 2^20
  std::int64_t history = 64;  ///< updates whose metrics are kept until read_metrics() is called
};

/// What the last update did, and all before it.
struct StepReport {
  float norm = 0;            ///< of the gradients, without the loss scale, before clipping
  bool applied = false;      ///< false: the norm was not finite, and the update changed nothing
  std::int64_t taken = 0;    ///< updates that counted
  std::int64_t skipped = 0;  ///< updates that did not
};

/// What an update did, and what it was made of.
struct StepMetrics {
  std::int64_t update = 0;  ///< its number, from 0
  float loss = 0;           ///< the mean over all images of its window
  float norm = 0;           ///< StepReport::norm
  float loss_scale = 1;     ///< of its window
  bool applied = false;     ///< false: the norm was not finite, and the update changed nothing
  std::int64_t images = 0;  ///< of its window
  /// Those of them whose largest logit is their label's or, with soft targets, that of a largest target.
  std::int64_t right = 0;
};

/// Metrics on their way from the device.
///
/// Threads: an object belongs to one thread at a time.
class SYLVIT_API PendingMetrics {
 public:
  /// Does wait() return at once?
  bool ready() const;
  /// Waits for the updates that they are of, and for nothing later; one for each update, in order.
  std::vector<StepMetrics> wait() const;

 private:
  friend class TrainingStep;
  struct State;
  explicit PendingMetrics(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// How a loss scale follows the gradients.
struct LossScalerOptions {
  float first = 65536;           ///< where it begins
  float growth = 2;              ///< what it is multiplied with after `interval` updates in a row that counted
  float backoff = 0.5F;          ///< and after an update that was skipped
  std::int64_t interval = 2000;  ///< updates
  float least = 1;               ///< it stays between this
  float most = 16777216;         ///< and this
  std::int64_t delay = 1;        ///< the scale of an update does not depend on so many updates right before it
};

/// The loss scale of f16 training: as large as gradients allow. It lives on the host and sees each update's metrics
/// some updates later, so that nobody waits for the device; when it sees them, earlier or later, changes nothing.
///
///     for (std::int64_t i = 0; …; ++i) {
///       if (i > 1) for (const StepMetrics& metrics : pending.wait()) scaler.see(metrics);    // of update i - 2
///       step.set_loss_scale(scaler.scale(i));
///       step.train(…);
///       pending = step.read_metrics();
///     }
class SYLVIT_API LossScaler {
 public:
  /// Throws Error naming the first number that cannot be.
  explicit LossScaler(const LossScalerOptions& options = {});
  /// The scale of an update. Throws Error if the metrics of updates before update - delay, which it depends on, have
  /// not been seen, or if it is not known any more.
  float scale(std::int64_t update) const;
  /// Takes the metrics of the next update, one after the other. Throws Error if it is another's.
  void see(const StepMetrics& metrics);
  /// All that restore() needs.
  std::map<std::string, double> state() const;
  /// Goes on where another scaler of the same options was.
  void restore(const std::map<std::string, double>& state);

 private:
  LossScalerOptions options_;
  std::int64_t seen_ = 0;      // updates
  std::int64_t in_a_row_ = 0;  // updates that counted, at this scale
  std::deque<float> scales_;   // after the last updates that were seen, delay + 1 of them; the newest is last
};

/// All that a training step has besides the parameters, for a run that goes on later with the same bits.
struct TrainingState {
  /// A buffer under its name.
  struct Buffer {
    std::string name;         ///< "adamw.first", "average", "window.gradients", …
    const VitBuffer* buffer;  ///< the training step's own
  };

  std::map<std::string, double> numbers;  ///< counters and scales, all exact
  std::vector<Buffer> buffers;            ///< what of the device's memory is still needed
};

/// Bytes that a TrainingStep of these options allocates: activations, scratch memory, gradients and their sums, the
/// optimiser's moments and the average, without the parameters.
SYLVIT_API std::size_t training_bytes(const Device& device, const VitConfig& config, const TrainingOptions& options);

/// A training step of a Vision Transformer on a device: its model, gradients, loss and optimiser.
///
/// Threads: a TrainingStep belongs to one thread at a time, as its memory is used by one step after the other; on an
/// out-of-order queue its steps must also follow one another by events. Different ones, also of one Device, may be used
/// by different threads at once, with one VitParameters as long as nobody updates it.
class SYLVIT_API TrainingStep {
 public:
  /// Checks the options, allocates training_bytes(), and builds every kernel of a whole step over the planned batch at
  /// once (rtc builds what a smaller batch wants besides at its first use). Waits.
  TrainingStep(const Device& device, const VitConfig& config, const TrainingOptions& options);
  ~TrainingStep();
  /// Takes the step over.
  TrainingStep(TrainingStep&&) noexcept;
  /// Takes the step over.
  TrainingStep& operator=(TrainingStep&&) noexcept;

  /// Adds forward pass, loss and backward pass to the device's queue, after the given events, and returns at once.
  /// images: dense f32 [B, channels, height, width], B at most the planned batch; targets: dense labels, i64 or i32
  /// [B], or dense f32 [B, classes]. Writes logits(), losses(), mean_loss() and gradients().
  sycl::event forward_backward(const VitParameters& parameters, const TensorView& images, const TensorView& targets,
                               std::span<const sycl::event> after = {});
  /// The same for a micro-batch of a larger batch: the gradients of all micro-batches since the last update() or
  /// sum_window() are added up in a binary tree, whose shape and bits depend on their number alone. Every image counts
  /// the same, also those of a last micro-batch that is smaller. TrainingOptions::batch, not the micro-batch that is
  /// given, is what gradients are scaled by meanwhile; it is a part of the numerics. Throws Error after
  /// TrainingOptions::window micro-batches, and in the middle of them if forward_backward() is called.
  sycl::event accumulate(const VitParameters& parameters, const TensorView& images, const TensorView& targets,
                         std::span<const sycl::event> after = {});
  /// Ends the window: gradients() has the sum of all its micro-batches. update() does it by itself.
  sycl::event sum_window(std::span<const sycl::event> after = {});
  /// Adds the optimiser's step with the gradients of the last forward_backward(), or of the window that was
  /// accumulated, and returns at once. The parameters change through their views, with their 16-bit copy; a Vit with
  /// VitOptions::constant that runs with them wants VitParameters::update_copy() afterwards. If the gradients' norm is
  /// not finite, nothing changes and the update is counted as skipped. Throws Error if there is no optimiser, or were
  /// no gradients yet.
  sycl::event update(VitParameters& parameters, const UpdateOptions& options = {},
                     std::span<const sycl::event> after = {});
  /// forward_backward(), and update() after it.
  sycl::event train(VitParameters& parameters, const TensorView& images, const TensorView& targets,
                    const UpdateOptions& options = {}, std::span<const sycl::event> after = {});

  /// Brings the metrics of the updates since the last call, and of no more than the last TrainingOptions::history, to
  /// the host, after the given events, and returns at once.
  PendingMetrics read_metrics(std::span<const sycl::event> after = {});

  /// Waits for everything on the device. What this tells, with the parameters, makes another TrainingStep of the same
  /// options go on with the same bits, also from the middle of a window. Metrics that nobody has read are lost.
  TrainingState wait_and_get_state() const;
  /// Goes on from such a state, in place of all that was: takes its numbers, and calls `fill` for each of its buffers,
  /// to be written by VitBuffer::write(). Throws Error when the numbers are not those of a step of these options.
  void restore(const std::map<std::string, double>& numbers,
               const std::function<void(const std::string& name, const VitBuffer& buffer)>& fill);

  /// The loss scale of the next forward_backward(), or of the next window; its update undoes the same.
  void set_loss_scale(float scale);
  /// What the loss of the last forward_backward() or accumulate() was multiplied with; of the next one, before the
  /// first.
  float loss_scale() const noexcept;

  /// The model: for its observer, or for forward passes between steps.
  Vit& model() noexcept;
  /// Which model.
  const VitConfig& config() const noexcept;
  /// What training_bytes() said.
  std::size_t bytes() const noexcept;

  // Device memory that a forward_backward() writes, and the next one overwrites. Of the last batch (of a window: the
  // last micro-batch), or, before the first, of the planned one.
  /// Of the mean loss times gradient_scale(). In a window: of the last micro-batch alone, before sum_window().
  const VitBuffer& gradients() const noexcept;
  /// loss_scale(); of a window, times its images, by TrainingOptions::batch.
  float gradient_scale() const noexcept;
  /// The moving average of the parameters over all updates: a <- a + (1 - decay) (p - a), beginning with the parameters
  /// before the first. VitParameters::assign() takes it for a model that is to run with it. Throws Error without
  /// TrainingOptions::average, and before the first update.
  const VitBuffer& average() const;
  /// f32 [B, classes].
  TensorView logits() const;
  /// Each image's loss, without the loss scale, f32 [B].
  TensorView losses() const;
  /// Their mean, f32 [1].
  TensorView mean_loss() const;

  /// Waits for everything on the device, and reads what the updates did. All zeros without an optimiser.
  StepReport wait_and_read_report() const;
  /// Waits, and reads the gradient of the mean loss with respect to a parameter. Throws Error in the middle of a window
  /// of several micro-batches: call sum_window() first.
  std::vector<float> wait_and_read_gradient(std::string_view parameter) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sylvit
