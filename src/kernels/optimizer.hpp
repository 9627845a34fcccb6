// One step of an optimiser over all parameters, which lie in one flat f32 buffer as their gradients and moments do:
//
//     norm = sqrt(Σ (scale g)²)       clip = min(1, max_norm / (norm + 1e-6))       g' = scale clip g
//     AdamW:  p ← p (1 - lr wd)       m ← m + (1 - β₁)(g' - m)      v ← β₂ v + (1 - β₂) g'²
//             p ← p - lr/(1 - β₁ᵗ) m / (sqrt(v / (1 - β₂ᵗ)) + ε)
//     SGD:    d = g' + wd p           m ← μ m + d                   p ← p - lr (m, or with Nesterov d + μ m)
//     after either, where it is wanted:                             a ← a + (1 - δ)(p - a)
//
// The formulas are PyTorch's. wd acts on the segments of the buffer whose decay is 1, and lr is lr times a segment's
// rate. BigVision's decay is no share of lr: p ← p (1 - f wd) with a factor f of the caller's, in SGD too, which then
// has d = g'. The scale undoes a loss scale. If the norm is not finite, the step is skipped: the control says so and
// nothing else changes, t neither.
//
// A work-group owns a run of lanes x columns x steps elements. A run may cross the borders of segments (|), so it is
// taken piece by piece; the first segment is found by bisection.
//
//      |<-------- run 0 -------->|<-------- run 1 -------->|
//      |   segment 0   |  1  |         segment 2        |  …
//
// The norm takes two kernels: each run's sum of squares, then one work-group adds these and writes the control. The
// order of both sums depends on the number of parameters and the configuration alone.
//
// Gradients of several micro-batches are added up in a binary tree whose shape depends on their number alone. The tree
// grows as a binary counter counts, so a node for each level is all that is kept:
//
//     micro-batch   0    1    2    3    4        a carry of 0 + 1, and of (0 + 1) + (2 + 3); in the end all that is
//     left:
//                   └─+──┘    └─+──┘    │        ((0 + 1) + (2 + 3)) + 4
//                     └────+────┘       │
//                          └─────+──────┘
#pragma once

#include <sylvit/float16.hpp>

#include "kernels/columns.hpp"
#include "kernels/description.hpp"
#include "kernels/sycl.hpp"

namespace sylvit::kernels {

struct OptimizerConfig {
  int lanes;
  int columns;
  int steps;
  int sub_group;  ///< the size of the sub-groups that it is meant for; 0: the compiler chooses

  static constexpr const char *name = "OptimizerConfig", *record = "optimizer";
  static constexpr bool by_type = false;  ///< one record for all types
  template <class Visit>
  static constexpr void members(const Visit& visit) {
    visit("lanes", &OptimizerConfig::lanes);
    visit("columns", &OptimizerConfig::columns);
    visit("steps", &OptimizerConfig::steps);
    visit("sub_group", &OptimizerConfig::sub_group);
  }
  constexpr int work_items() const { return lanes; }
  constexpr int sub_group_size() const { return sub_group; }
  constexpr int run() const { return lanes * columns * steps; }
  constexpr int local_floats() const { return lanes; }
  constexpr bool valid() const { return lanes > 0 && columns > 0 && steps > 0 && (lanes & (lanes - 1)) == 0; }
};

/// What the norm's second kernel tells the optimiser, in device memory. All zeros before the first step.
struct StepControl {
  float norm;            ///< of the gradients, without the loss scale, before clipping
  float factor;          ///< what each gradient is multiplied with: scale and clip
  std::int32_t apply;    ///< 1: take this step; 0: skip it, the norm is not finite
  std::int32_t taken;    ///< steps taken so far, with this one
  std::int32_t skipped;  ///< steps skipped so far, with this one
};

/// A micro-batch's gradients, or the sum of those of several.
struct WindowNode {
  float* gradients;
  float* sums;  ///< of losses and of right images, as LossMean writes them
};

/// Levels of the tree, enough for a million micro-batches.
inline constexpr int most_window_levels = 20;

/// Launched over (1, 1, ceil(count / run)) work-groups: out = nodes[n - 1] + (… + (nodes[0] + leaf)), for gradients and
/// sums; without nodes a copy of the leaf. out may be the leaf.
struct WindowSumArguments {
  WindowNode nodes[most_window_levels];
  WindowNode leaf;
  WindowNode out;
  std::int64_t count;
  int node_count;
};

template <OptimizerConfig config>
struct WindowSum {
  using Arguments = WindowSumArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& args, const sycl::nd_item<3>& item, float* /*local*/) {
    const int lane = lane_of(item);
    const std::int64_t begin = group_of(item, 2) * config.run();
    const int count = args.count - begin < config.run() ? static_cast<int>(args.count - begin) : config.run();
    const float* sum = args.leaf.gradients + begin;
    float* out = args.out.gradients + begin;
    if (args.node_count == 0)
      each_column<config.lanes, config.columns>(0, count, lane, [&](int /*x*/, int i) { out[i] = sum[i]; });
    for (int n = 0; n < args.node_count; ++n) {
      const float* node = args.nodes[n].gradients + begin;
      each_column<config.lanes, config.columns>(0, count, lane, [&](int /*x*/, int i) { out[i] = sum[i] + node[i]; });
      sum = out;
    }
    if (begin > 0 || lane > 0) return;
    for (int i = 0; i < 2; ++i) {
      float both = args.leaf.sums[i];
      for (int n = 0; n < args.node_count; ++n) both += args.nodes[n].sums[i];
      args.out.sums[i] = both;
    }
  }
};

struct WindowSumKernel : Description<OptimizerConfig, WindowSumArguments, Parameters::none> {
  static constexpr const char *header = "optimizer.hpp", *functor = "WindowSum", *arguments = "WindowSumArguments";
};

/// Launched over (1, 1, ceil(count / run)) work-groups.
struct SquareSumsArguments {
  const float* gradients;
  float* partials;  ///< one a work-group
  std::int64_t count;
  float scale;
};

template <OptimizerConfig config>
struct SquareSums {
  using Arguments = SquareSumsArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    const Arguments args = arguments;
    const int lane = lane_of(item);
    const std::int64_t begin = group_of(item, 2) * config.run();
    const float* gradients = args.gradients + begin;
    const int count = args.count - begin < config.run() ? static_cast<int>(args.count - begin) : config.run();
    float sums[config.columns] = {};
    each_column<config.lanes, config.columns>(0, count, lane, [&](int x, int i) {
      const float g = gradients[i] * args.scale;
      sums[x] = sycl::fma(g, g, sums[x]);
    });
    const float sum = sum_lanes<config.lanes>(item, local, sums);
    if (lane == 0) args.partials[group_of(item, 2)] = sum;
  }
};

struct SquareSumsKernel : Description<OptimizerConfig, SquareSumsArguments, Parameters::none> {
  static constexpr const char *header = "optimizer.hpp", *functor = "SquareSums", *arguments = "SquareSumsArguments";
  static constexpr int local_floats(const OptimizerConfig& config) { return config.local_floats(); }
};

/// What is remembered of an update for the host, in device memory.
struct StepRecord {
  float loss;  ///< mean of the window
  float norm;
  std::int32_t right;  ///< images
  std::int32_t apply;
};

/// Launched as one work-group.
struct StepControlArguments {
  const float* partials;
  StepControl* control;
  StepRecord* record;  ///< null: not wanted
  const float* sums;   ///< for the record: of the window, as LossMean writes them
  std::int64_t count;  ///< of partial sums
  float scale;
  float max_norm;  ///< 0: no clipping
  float images;    ///< of the window
};

template <OptimizerConfig config>
struct WriteStepControl {
  using Arguments = StepControlArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    const Arguments args = arguments;
    const int lane = lane_of(item);
    float sums[config.columns] = {};
    each_column<config.lanes, config.columns>(std::int64_t{0}, args.count, lane,
                                              [&](int x, std::int64_t i) { sums[x] += args.partials[i]; });
    const float norm = sycl::sqrt(sum_lanes<config.lanes>(item, local, sums));
    if (lane != 0) return;
    const bool finite = norm <= 3.4028234e38F;  // false for NaN
    const float clip = args.max_norm / (norm + 1e-6F);
    args.control->norm = norm;
    args.control->factor = args.max_norm > 0.0F && clip < 1.0F ? args.scale * clip : args.scale;
    args.control->apply = finite ? 1 : 0;
    args.control->taken += finite ? 1 : 0;
    args.control->skipped += finite ? 0 : 1;
    if (args.record == nullptr) return;
    args.record->loss = args.sums[0] / args.images;
    args.record->norm = norm;
    args.record->right = static_cast<std::int32_t>(args.sums[1]);
    args.record->apply = finite ? 1 : 0;
  }
};

struct WriteStepControlKernel : Description<OptimizerConfig, StepControlArguments, Parameters::none> {
  static constexpr const char *header = "optimizer.hpp", *functor = "WriteStepControl",
                              *arguments = "StepControlArguments";
  static constexpr int local_floats(const OptimizerConfig& config) { return config.local_floats(); }
};

/// What differs from one part of the buffer to the next: segment s reaches from the end of the one before to ends[s].
struct ParameterSegments {
  const std::int64_t* ends;  ///< ascending; the last is the number of parameters
  const float* decay;        ///< 1 or 0: whether weight decay acts on it
  const float* rate;         ///< what the learning rate is multiplied with
  int count;

  /// The first segment that reaches beyond an element.
  [[gnu::always_inline]] int find(std::int64_t element) const {
    int low = 0;
    int high = count - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (ends[middle] > element)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }
};

/// piece(begin, end, decay, rate) for each part of this work-group's run that lies in one segment.
template <OptimizerConfig config, class Piece>
[[gnu::always_inline]] inline void each_piece(const ParameterSegments& segments, const sycl::nd_item<3>& item,
                                              std::int64_t count, Piece&& piece) {
  std::int64_t begin = group_of(item, 2) * config.run();
  const std::int64_t end = begin + config.run() < count ? begin + config.run() : count;
  for (int segment = segments.find(begin); begin < end && segment < segments.count; ++segment) {
    const std::int64_t stop = segments.ends[segment] < end ? segments.ends[segment] : end;
    piece(begin, stop, segments.decay[segment], segments.rate[segment]);
    begin = stop;
  }
}

/// Launched over (1, 1, ceil(count / run)) work-groups.
struct AdamWArguments {
  float* parameters;
  const float* gradients;
  float* first;   ///< m
  float* second;  ///< v
  void* copy;     ///< the parameters in type T; null: not wanted
  const StepControl* control;
  ParameterSegments segments;
  std::int64_t count;
  float learning_rate;
  float beta1;
  float beta2;
  float log_beta1;
  float log_beta2;
  float epsilon;
  float weight_decay;
  float decay_factor;      ///< f
  std::int32_t separates;  ///< 1: weight decay is times f; 0: times the learning rate
};

/// T: the type of the copy; float: there is none.
template <class T, OptimizerConfig config>
struct AdamW {
  using Arguments = AdamWArguments;
  static_assert(config.valid());
  static constexpr bool copies = sizeof(T) < sizeof(float);

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    const StepControl control = *args.control;
    if (control.apply == 0) return;
    const int lane = lane_of(item);
    const auto taken = static_cast<float>(control.taken);
    // 1 - βᵗ without cancellation.
    const float step = args.learning_rate / -sycl::expm1(taken * args.log_beta1);
    const float second_factor = 1.0F / sycl::sqrt(-sycl::expm1(taken * args.log_beta2));
    const float gain1 = 1.0F - args.beta1;
    const float gain2 = 1.0F - args.beta2;
    T* copy = static_cast<T*>(args.copy);
    each_piece<config>(
        args.segments, item, args.count, [&](std::int64_t begin, std::int64_t end, float decay, float rate) {
          const float decay_factor = args.separates != 0 ? args.decay_factor : args.learning_rate * rate;
          const float keep = 1.0F - decay_factor * args.weight_decay * decay;
          const float pace = step * rate;
          each_column<config.lanes, config.columns>(begin, end, lane, [&](int /*x*/, std::int64_t i) {
            const float g = args.gradients[i] * control.factor;
            const float m = args.first[i] + gain1 * (g - args.first[i]);
            const float v = args.beta2 * args.second[i] + gain2 * g * g;
            const float p = args.parameters[i] * keep - pace * m / (sycl::sqrt(v) * second_factor + args.epsilon);
            args.first[i] = m;
            args.second[i] = v;
            args.parameters[i] = p;
            if constexpr (copies) copy[i] = static_cast<T>(p);
          });
        });
  }
};

struct AdamWKernel : Description<OptimizerConfig, AdamWArguments, Parameters::type> {
  static constexpr const char *header = "optimizer.hpp", *functor = "AdamW", *arguments = "AdamWArguments";
};

/// Launched as AdamW is.
struct SgdArguments {
  float* parameters;
  const float* gradients;
  float* momentum;  ///< m
  void* copy;       ///< the parameters in type T; null: not wanted
  const StepControl* control;
  ParameterSegments segments;
  std::int64_t count;
  float learning_rate;
  float friction;  ///< μ
  float weight_decay;
  float decay_factor;      ///< f
  std::int32_t separates;  ///< 1: weight decay is times f and pulls the parameter; 0: it adds to the gradient
  std::int32_t nesterov;
};

template <class T, OptimizerConfig config>
struct Sgd {
  using Arguments = SgdArguments;
  static_assert(config.valid());
  static constexpr bool copies = sizeof(T) < sizeof(float);

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    const StepControl control = *args.control;
    if (control.apply == 0) return;
    const int lane = lane_of(item);
    T* copy = static_cast<T*>(args.copy);
    each_piece<config>(
        args.segments, item, args.count, [&](std::int64_t begin, std::int64_t end, float decay, float rate) {
          const float pull = args.separates != 0 ? 0.0F : args.weight_decay * decay;
          const float keep = args.separates != 0 ? 1.0F - args.decay_factor * args.weight_decay * decay : 1.0F;
          const float pace = args.learning_rate * rate;
          each_column<config.lanes, config.columns>(begin, end, lane, [&](int /*x*/, std::int64_t i) {
            const float d = args.gradients[i] * control.factor + pull * args.parameters[i];
            const float m = args.friction * args.momentum[i] + d;
            const float direction = args.nesterov != 0 ? d + args.friction * m : m;
            const float p = sycl::fma(-pace, direction, args.parameters[i] * keep);
            args.momentum[i] = m;
            args.parameters[i] = p;
            if constexpr (copies) copy[i] = static_cast<T>(p);
          });
        });
  }
};

struct SgdKernel : Description<OptimizerConfig, SgdArguments, Parameters::type> {
  static constexpr const char *header = "optimizer.hpp", *functor = "Sgd", *arguments = "SgdArguments";
};

/// Launched as AdamW is, after it.
struct AverageArguments {
  const float* parameters;
  float* average;  ///< a
  const StepControl* control;
  std::int64_t count;
  float gain;  ///< 1 - δ
};

template <OptimizerConfig config>
struct Average {
  using Arguments = AverageArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* /*local*/) {
    const Arguments args = arguments;
    if (args.control->apply == 0) return;
    const std::int64_t begin = group_of(item, 2) * config.run();
    const float* parameters = args.parameters + begin;
    float* average = args.average + begin;
    const int count = args.count - begin < config.run() ? static_cast<int>(args.count - begin) : config.run();
    each_column<config.lanes, config.columns>(0, count, lane_of(item), [&](int /*x*/, int i) {
      average[i] = sycl::fma(args.gain, parameters[i] - average[i], average[i]);
    });
  }
};

struct AverageKernel : Description<OptimizerConfig, AverageArguments, Parameters::none> {
  static constexpr const char *header = "optimizer.hpp", *functor = "Average", *arguments = "AverageArguments";
};

}  // namespace sylvit::kernels
