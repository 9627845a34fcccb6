// A step of an optimiser over all parameters of a model at once. Parameters, gradients and moments are flat f32 buffers
// of one length. Nothing here blocks, save what says so.
//
//     window_sum(…)           adds up the gradients of several micro-batches
//     write_step_control(…)   the gradients' norm, the clip factor, and whether the step counts
//     adamw(…) or sgd(…)      reads that from device memory
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/memory.hpp>
#include <sylvit/tensor.hpp>
#include <sylvit/training.hpp>

#include <cstdint>
#include <optional>
#include <span>

#include "kernels/optimizer.hpp"
#include "nn/basic.hpp"

namespace sylvit::nn {

/// A part of the flat buffers, e.g. one parameter.
struct Segment {
  std::int64_t count;
  bool decays;        ///< Does weight decay act on it?
  float rate = 1.0F;  ///< what the learning rate is multiplied with
};

/// The segments in device memory. Neighbours that agree are one. Construction waits until they are there.
class Segments {
 public:
  Segments(const Device& device, std::span<const Segment> segments);

  /// Elements of all segments.
  std::int64_t total() const { return total_; }
  kernels::ParameterSegments on_device() const;

 private:
  Memory memory_;
  std::int64_t total_ = 0;
  int count_ = 0;
};

/// The steps' control in device memory, and room for the norm's partial sums. One for each model in training.
class StepState {
 public:
  /// Waits until the counters are zero. history: the number of records that are kept.
  StepState(const Device& device, std::int64_t parameters, std::int64_t history = 1);

  kernels::StepControl* control() const { return control_.as<kernels::StepControl>(); }
  float* partials() const { return partials_.as<float>(); }
  std::int64_t parameters() const { return parameters_; }
  /// What write_step_control() remembers of updates: update n in place n modulo history().
  const kernels::StepRecord* records() const { return records_.as<kernels::StepRecord>(); }
  std::int64_t history() const { return history_; }
  kernels::StepRecord* record_of(std::int64_t update) const {
    return records_.as<kernels::StepRecord>() + update % history_;
  }
  /// The gradients' norm, f32 [1], for whoever wants it on the device.
  TensorView norm() const { return {&control()->norm, DType::f32, {1}}; }

  /// Waits for everything on the device, and reads.
  kernels::StepControl wait_and_read(const Device& device) const;
  /// Goes on from a checkpoint: waits until the numbers of steps are set.
  void wait_and_set(const Device& device, std::int32_t taken, std::int32_t skipped) const;

 private:
  Memory control_;
  Memory partials_;
  Memory records_;
  std::int64_t parameters_;
  std::int64_t history_;
};

/// A micro-batch's gradients, or the sum of those of several: a node of the tree in which a window is added up.
struct WindowNode {
  TensorView gradients;  ///< dense f32
  TensorView sums;       ///< f32 [2]: LossCounts::sums
};

/// out = nodes[n - 1] + (… + (nodes[0] + leaf)), gradients and sums; without nodes a copy of the leaf. out may be the
/// leaf.
sycl::event window_sum(const Device& device, std::span<const WindowNode> nodes, const WindowNode& leaf,
                       const WindowNode& out, Events after = {});

struct ClipOptions {
  float gradient_scale = 1.0F;  ///< 1 / loss scale
  float max_norm = 0.0F;        ///< clip the global norm to this; 0: no clipping
};

/// What is remembered of a step besides: its loss, and right images.
struct StepNote {
  std::int64_t update = 0;  ///< its number
  TensorView sums = {};     ///< f32 [2]: LossCounts::sums of the window; empty: nothing is remembered
  std::int64_t images = 0;  ///< of the window
};

/// Norm of all gradients, clip factor, and the decision: if the norm is not finite the step is skipped and counted as
/// skipped. Call once before each step.
sycl::event write_step_control(const Device& device, const TensorView& gradients, const StepState& state,
                               const ClipOptions& options = {}, Events after = {}, const StepNote& note = {});

/// Throws Error naming the first number that cannot be. The optimisers ask by themselves.
void check(const AdamWOptions& options);
void check(const SgdOptions& options);
void check(const UpdateOptions& options);

/// PyTorch's AdamW. copy: the parameters in bf16 or f16 for the next forward pass; empty: none. A skipped step changes
/// nothing. decay_factor: UpdateOptions::decay_factor.
sycl::event adamw(const Device& device, const TensorView& parameters, const TensorView& gradients,
                  const TensorView& first_moment, const TensorView& second_moment, const TensorView& copy,
                  const Segments& segments, const StepState& state, const AdamWOptions& options, Events after = {},
                  std::optional<float> decay_factor = {});

/// PyTorch's SGD without dampening; weight decay is added to the gradient unless it has a factor of its own. The
/// momentum starts as zeros.
sycl::event sgd(const Device& device, const TensorView& parameters, const TensorView& gradients,
                const TensorView& momentum, const TensorView& copy, const Segments& segments, const StepState& state,
                const SgdOptions& options, Events after = {}, std::optional<float> decay_factor = {});

/// average = decay average + (1 - decay) parameters, f32, after an optimiser's step. A skipped step changes nothing.
sycl::event average(const Device& device, const TensorView& parameters, const TensorView& average,
                    const StepState& state, float decay, Events after = {});

}  // namespace sylvit::nn
