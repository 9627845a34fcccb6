// Softmax and sigmoid cross-entropy of one image's logits z against targets t, with label smoothing s:
//
//     q_c = (1 - s) t_c + s / classes           t: one where c is the label, or the caller's soft targets
//     softmax:  loss = Σ_c q_c (log Σ_k exp(z_k) - z_c)                   dz_c = (Σ_k q_k) softmax(z)_c - q_c
//     sigmoid:  loss = Σ_c max(z_c, 0) - z_c q_c + log(1 + exp(-|z_c|))   dz_c = sigmoid(z_c) - q_c
//
// With m = max z, softmax's loss is (Σ q) log Σ exp(z - m) - Σ q (z - m): two terms that are not negative, whatever the
// size of the logits. The gradient is that of the mean over the batch, times a factor of the caller's.
//
// An image is right if the first of its largest logits is its label or, with soft targets, a class whose target is the
// largest.
//
// One work-group owns an image. A lane takes every lanes-th class, and the lanes' sums meet in local memory:
//
//     z[b]:   | 0 1 … l-1 | 0 1 … l-1 | …        max; then both sums; then the gradient
#pragma once

#include <sylvit/float16.hpp>

#include <bit>

#include "kernels/columns.hpp"
#include "kernels/description.hpp"
#include "kernels/sycl.hpp"

namespace sylvit::kernels {

struct LossConfig {
  int lanes;
  int columns;
  int sub_group;  ///< the size of the sub-groups that it is meant for; 0: the compiler chooses

  static constexpr const char *name = "LossConfig", *record = "loss";
  static constexpr bool by_type = false;  ///< one record for all types
  template <class Visit>
  static constexpr void members(const Visit& visit) {
    visit("lanes", &LossConfig::lanes);
    visit("columns", &LossConfig::columns);
    visit("sub_group", &LossConfig::sub_group);
  }
  constexpr int work_items() const { return lanes; }
  constexpr int sub_group_size() const { return sub_group; }
  constexpr int local_floats() const { return lanes; }
  constexpr bool valid() const { return lanes > 0 && columns > 0 && (lanes & (lanes - 1)) == 0; }
};

/// Launched over (1, 1, batch) work-groups. Targets are one of labels64, labels32, soft. A label that is no class gives
/// NaN for the loss and the gradient of its image.
struct CrossEntropyArguments {
  const void* logits;
  const std::int64_t* labels64;
  const std::int32_t* labels32;
  const float* soft;
  float* losses;
  float* right;    ///< 1 or 0 for each image; null: not wanted
  void* gradient;  ///< null: not wanted
  int classes;
  float smoothing;
  float gradient_factor;
};

/// What is wanted of one image, as q_c. With `soft` the targets are the caller's numbers, else a label.
template <bool soft>
struct Target {
  const float* numbers;
  std::int64_t label;
  float keep;    ///< 1 - s
  float spread;  ///< s / classes

  [[gnu::always_inline]] Target(const CrossEntropyArguments& args, std::int64_t image)
      : numbers(args.soft + (soft ? image * args.classes : 0)),
        label(soft ? 0 : (args.labels64 != nullptr ? args.labels64[image] : args.labels32[image])),
        keep(1.0F - args.smoothing),
        spread(args.smoothing / static_cast<float>(args.classes)) {}

  [[gnu::always_inline]] float at(int c) const {
    if constexpr (soft)
      return keep * numbers[c] + spread;
    else
      return c == label ? keep + spread : spread;
  }
  /// NaN if the label is no class, else 0.
  [[gnu::always_inline]] float unknown(int classes) const {
    return soft || (label >= 0 && label < classes) ? 0.0F : std::bit_cast<float>(std::uint32_t{0x7fc00000});
  }
};

/// The largest of the numbers that a lane has seen, and where it saw it first, in each of its accumulators.
template <LossConfig config>
struct Largest {
  float value[config.columns];
  int place[config.columns];

  [[gnu::always_inline]] Largest() {
#pragma unroll
    for (int x = 0; x < config.columns; ++x) {
      value[x] = -3.4028234e38F;
      place[x] = 0;
    }
  }
  [[gnu::always_inline]] void note(int x, int c, float number) {
    place[x] = number > value[x] ? c : place[x];
    value[x] = sycl::fmax(value[x], number);
  }
  /// Of all lanes.
  [[gnu::always_inline]] float of_all(const sycl::nd_item<3>& item, float* local) const {
    float largest = value[0];
#pragma unroll
    for (int x = 1; x < config.columns; ++x) largest = sycl::fmax(largest, value[x]);
    return combine_lanes<config.lanes>(item, local, largest, [](float a, float b) { return sycl::fmax(a, b); });
  }
  /// The first place that any lane saw of_all() at. Exact up to 2^24.
  [[gnu::always_inline]] int place_of(const sycl::nd_item<3>& item, float* local, float largest) const {
    float first = 16777216.0F;
#pragma unroll
    for (int x = 0; x < config.columns; ++x)
      first = value[x] == largest ? sycl::fmin(first, static_cast<float>(place[x])) : first;
    return static_cast<int>(
        combine_lanes<config.lanes>(item, local, first, [](float a, float b) { return sycl::fmin(a, b); }));
  }
};

/// Writes whether an image is right. `top`: its largest logit; `wanted`: with soft targets, the largest of them.
template <LossConfig config, bool soft>
[[gnu::always_inline]] inline void write_right(const CrossEntropyArguments& args, const sycl::nd_item<3>& item,
                                               float* local, const Target<soft>& target, const Largest<config>& logits,
                                               float top, const Largest<config>& wanted) {
  const int first = logits.place_of(item, local, top);
  float right = 0.0F;
  if constexpr (soft) {
    const float most = wanted.of_all(item, local);
    right = first < args.classes && target.numbers[first] == most ? 1.0F : 0.0F;
  } else {
    right = first == target.label ? 1.0F : 0.0F;
  }
  if (lane_of(item) == 0) args.right[group_of(item, 2)] = right;
}

/// Logit: the type of the logits; T: that of their gradient.
template <class Logit, class T, LossConfig config>
struct SoftmaxCrossEntropy {
  using Arguments = CrossEntropyArguments;
  static_assert(config.valid());

  template <bool soft>
  [[gnu::always_inline]] static void image(const Arguments& args, const sycl::nd_item<3>& item, float* local) {
    const std::int64_t row = group_of(item, 2);
    const int lane = lane_of(item);
    const Logit* logits = static_cast<const Logit*>(args.logits) + row * args.classes;
    const Target<soft> target(args, row);
    Largest<config> largest;
    Largest<config> wanted;
    each_column<config.lanes, config.columns>(0, args.classes, lane, [&](int x, int c) {
      largest.note(x, c, static_cast<float>(logits[c]));
      if constexpr (soft) wanted.note(x, c, target.numbers[c]);
    });
    const float top = largest.of_all(item, local);
    if (args.right != nullptr) write_right<config, soft>(args, item, local, target, largest, top, wanted);
    float exponentials[config.columns] = {};
    float products[config.columns] = {};
    float weights[config.columns] = {};
    each_column<config.lanes, config.columns>(0, args.classes, lane, [&](int x, int c) {
      const float z = static_cast<float>(logits[c]) - top;
      const float q = target.at(c);
      exponentials[x] += sycl::exp(z);
      products[x] += q == 0.0F ? 0.0F : q * z;  // a logit of -inf counts only where something is wanted of it
      weights[x] += q;
    });
    const float sum = sum_lanes<config.lanes>(item, local, exponentials);
    const float product = sum_lanes<config.lanes>(item, local, products);
    const float weight = soft ? sum_lanes<config.lanes>(item, local, weights) : 1.0F;
    const float unknown = target.unknown(args.classes);
    if (lane == 0) args.losses[row] = weight * sycl::log(sum) - product + unknown;
    if (args.gradient == nullptr) return;
    T* gradient = static_cast<T*>(args.gradient) + row * args.classes;
    const float share = weight / sum + unknown;
    each_column<config.lanes, config.columns>(0, args.classes, lane, [&](int /*x*/, int c) {
      const float p = sycl::exp(static_cast<float>(logits[c]) - top) * share;
      gradient[c] = static_cast<T>((p - target.at(c)) * args.gradient_factor);
    });
  }

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    const Arguments args = arguments;
    if (args.soft != nullptr)
      image<true>(args, item, local);
    else
      image<false>(args, item, local);
  }
};

struct SoftmaxCrossEntropyKernel : Description<LossConfig, CrossEntropyArguments, Parameters::logits_gradient> {
  static constexpr const char *header = "loss.hpp", *functor = "SoftmaxCrossEntropy",
                              *arguments = "CrossEntropyArguments";
  static constexpr int local_floats(const LossConfig& config) { return config.local_floats(); }
};

template <class Logit, class T, LossConfig config>
struct SigmoidCrossEntropy {
  using Arguments = CrossEntropyArguments;
  static_assert(config.valid());

  template <bool soft, bool backward>
  [[gnu::always_inline]] static void image(const Arguments& args, const sycl::nd_item<3>& item, float* local) {
    const std::int64_t row = group_of(item, 2);
    const int lane = lane_of(item);
    const Logit* logits = static_cast<const Logit*>(args.logits) + row * args.classes;
    T* gradient = static_cast<T*>(args.gradient) + (backward ? row * args.classes : 0);
    const Target<soft> target(args, row);
    const float unknown = target.unknown(args.classes);
    float sums[config.columns] = {};
    Largest<config> largest;
    Largest<config> wanted;
    each_column<config.lanes, config.columns>(0, args.classes, lane, [&](int x, int c) {
      const float z = static_cast<float>(logits[c]);
      const float q = target.at(c);
      largest.note(x, c, z);
      if constexpr (soft) wanted.note(x, c, target.numbers[c]);
      const float decayed = sycl::exp(-sycl::fabs(z));
      sums[x] += (z > 0.0F ? z : 0.0F) - (q == 0.0F ? 0.0F : q * z) + sycl::log1p(decayed);
      if constexpr (backward) {
        const float sigmoid = (z >= 0.0F ? 1.0F : decayed) / (1.0F + decayed);
        gradient[c] = static_cast<T>((sigmoid - q + unknown) * args.gradient_factor);
      }
    });
    const float loss = sum_lanes<config.lanes>(item, local, sums);
    if (lane == 0) args.losses[row] = loss + unknown;
    if (args.right != nullptr)
      write_right<config, soft>(args, item, local, target, largest, largest.of_all(item, local), wanted);
  }

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    const Arguments args = arguments;
    if (args.soft != nullptr) {
      if (args.gradient != nullptr)
        image<true, true>(args, item, local);
      else
        image<true, false>(args, item, local);
    } else {
      if (args.gradient != nullptr)
        image<false, true>(args, item, local);
      else
        image<false, false>(args, item, local);
    }
  }
};

struct SigmoidCrossEntropyKernel : Description<LossConfig, CrossEntropyArguments, Parameters::logits_gradient> {
  static constexpr const char *header = "loss.hpp", *functor = "SigmoidCrossEntropy",
                              *arguments = "CrossEntropyArguments";
  static constexpr int local_floats(const LossConfig& config) { return config.local_floats(); }
};

/// Launched as one work-group: mean = 1/batch Σ_b losses[b]; sums = Σ_b losses[b], Σ_b right[b].
struct LossMeanArguments {
  const float* losses;
  const float* right;
  float* mean;
  float* sums;  ///< null: not wanted; then right is not read
  int batch;
};

template <LossConfig config>
struct LossMean {
  using Arguments = LossMeanArguments;
  static_assert(config.valid());

  [[gnu::always_inline]] static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local) {
    const Arguments args = arguments;
    const int lane = lane_of(item);
    float sums[config.columns] = {};
    each_column<config.lanes, config.columns>(0, args.batch, lane, [&](int x, int b) { sums[x] += args.losses[b]; });
    const float sum = sum_lanes<config.lanes>(item, local, sums);
    if (lane == 0) args.mean[0] = sum / static_cast<float>(args.batch);
    if (args.sums == nullptr) return;
    float counts[config.columns] = {};
    each_column<config.lanes, config.columns>(0, args.batch, lane, [&](int x, int b) { counts[x] += args.right[b]; });
    const float count = sum_lanes<config.lanes>(item, local, counts);
    if (lane == 0) args.sums[0] = sum;
    if (lane == 0) args.sums[1] = count;
  }
};

struct LossMeanKernel : Description<LossConfig, LossMeanArguments, Parameters::none> {
  static constexpr const char *header = "loss.hpp", *functor = "LossMean", *arguments = "LossMeanArguments";
  static constexpr int local_floats(const LossConfig& config) { return config.local_floats(); }
};

}  // namespace sylvit::kernels
