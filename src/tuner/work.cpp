#include "tuner/work.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "bench/timing.hpp"
#include "nn/layer_norm.hpp"
#include "reference/attention.hpp"
#include "reference/layer_norm.hpp"
#include "runtime/rehearsal.hpp"
#include "tuning/table.hpp"

namespace sylvit::tuner {

namespace {

std::vector<double> exact(const std::vector<float>& values) { return {values.begin(), values.end()}; }

/// Rounding of the storage type, of f32 sums, and room for long ones. What is wrong is wrong by far more.
double bound_of(DType dtype) { return dtype == DType::f32 ? 2e-4 : dtype == DType::f16 ? 4e-3 : 3e-2; }

/// The largest difference relative to the largest expected value, as a sentence when it is too large.
std::string difference(const char* what, const std::vector<float>& got, const std::vector<double>& expected,
                       DType dtype) {
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error = std::max(error, std::isfinite(got[i]) ? std::abs(got[i] - expected[i]) : HUGE_VAL);
    size = std::max(size, std::abs(expected[i]));
  }
  if (size == 0) return fmt::format("{} is expected to be all zero, which shows nothing", what);
  if (error <= bound_of(dtype) * size) return {};
  return fmt::format("{} is off by {:.2g} of its largest value", what, error / size);
}

std::string first_of(std::initializer_list<std::string> sentences) {
  for (const std::string& sentence : sentences)
    if (!sentence.empty()) return sentence;
  return {};
}

}  // namespace

const Device& KernelBench::with(const tuning::Record& record) {
  std::string key = record.kernel;
  for (const auto& [name, value] : record.numbers) key += fmt::format(" {} {}", name, value);
  for (const std::string& provider : record.providers) key += " " + provider;
  const auto found = devices_.find(key);
  if (found != devices_.end()) return found->second;
  tuning::Record everywhere;  // whatever the case is
  everywhere.kernel = record.kernel;
  everywhere.numbers = record.numbers;
  everywhere.providers = record.providers;
  everywhere.origin = record.origin;
  auto table = std::make_shared<const tuning::Table>(tuning::table_for(device_.info()).with(std::move(everywhere)));
  return devices_.emplace(key, device_.with_tuning(std::move(table))).first->second;
}

void* KernelBench::scratch(std::size_t bytes) {
  if (bytes > scratch_bytes_) {
    device_.wait();
    scratch_ = std::make_unique<Memory>(device_, bytes, "tuning");
    scratch_bytes_ = bytes;
  }
  return scratch_ ? scratch_->data() : nullptr;
}

std::vector<float> KernelBench::random_values(std::int64_t count, DType dtype) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(generator_);
  return widened(stored(values, dtype), dtype);
}

TensorView KernelBench::upload(const std::vector<float>& values, DType dtype, const Shape& shape) {
  return tensors_.upload(stored(values, dtype), dtype, shape);
}

void KernelBench::build(std::span<const tuning::Record> batch) {
  std::vector<runtime::KernelName> wanted;
  for (const tuning::Record& record : batch) {
    const Device& device = with(record);
    prepare(device);
    const runtime::Rehearsal rehearsal(device);
    submit_before(rehearsal.device());
    submit(rehearsal.device());
    for (const runtime::KernelName& kernel : rehearsal.kernels())
      if (std::ranges::find(built_, kernel.type) == built_.end() &&
          std::ranges::find(wanted, kernel.type, &runtime::KernelName::type) == wanted.end())
        wanted.push_back(kernel);
  }
  if (wanted.empty()) return;
  runtime::prepare(device_, wanted);
  for (const runtime::KernelName& kernel : wanted) built_.push_back(kernel.type);
}

double KernelBench::run(const tuning::Record& record) {
  const Device& device = with(record);
  prepare(device);
  if (!came_before_ || !is_before_once()) submit_before(device);
  came_before_ = true;
  device.wait();
  const auto work = [&] {
    for (int i = 0; i < std::max(1, repeats_); ++i) submit(device);
    device.wait();
  };
  const double ms = milliseconds(work) / std::max(1, repeats_);
  // Short work is repeated, the same number of times for all, so that the clock and the queue do not decide.
  constexpr double long_enough_ms = 2;
  if (repeats_ == 0) repeats_ = std::clamp(static_cast<int>(long_enough_ms / ms), 1, 100);
  return ms;
}

namespace {

class AttentionBench final : public KernelBench {
 public:
  AttentionBench(const Device& device, const AttentionWork& work) : KernelBench(device), work_(work) {
    description_.score = work.score;
    const Shape shape{work.batch, work.heads, work.length, work.head_size};
    measured_ = make(shape, shape);
    // Enough heads that the backward pass is cut as its record says, more than one key block, and tails everywhere.
    const std::int64_t heads = std::max(2, std::min(device.info().compute_units, 256));
    const Shape queries{1, heads, std::min<std::int64_t>(work.length, heads > 8 ? 45 : 149), work.head_size};
    const Shape keys{1, heads, std::min<std::int64_t>(work.length, heads > 8 ? 290 : 431), work.head_size};
    expect(queries, keys);
  }

  std::string verify(const tuning::Record& record) override {
    const Device& device = with(record);
    attention_forward(device, description_, small_.inputs, small_.o, small_.lse, scratch(bytes(device, small_)));
    if (work_.backward)
      attention_backward(device, description_, small_.inputs, small_.o, small_.lse, small_.o_gradient, small_.gradients,
                         scratch(bytes(device, small_)));
    device.wait();
    if (!work_.backward) return difference("o", tensors_.download(small_.o), output_.o, work_.dtype);
    return first_of({difference("dq", tensors_.download(small_.gradients.q), gradients_.q, work_.dtype),
                     difference("dk", tensors_.download(small_.gradients.k), gradients_.k, work_.dtype),
                     difference("dv", tensors_.download(small_.gradients.v), gradients_.v, work_.dtype)});
  }

 protected:
  void prepare(const Device& device) override {
    memory_ = scratch(std::max(bytes(device, measured_), bytes(device, small_)));
  }

  /// A softmax's backward pass needs what the forward pass gave, once; and verifying runs one, to be built with the
  /// rest.
  void submit_before(const Device& device) override {
    if (work_.backward) attention_forward(device, description_, measured_.inputs, measured_.o, measured_.lse, memory_);
  }
  bool is_before_once() const override { return true; }

  void submit(const Device& device) override {
    if (work_.backward)
      attention_backward(device, description_, measured_.inputs, measured_.o, measured_.lse, measured_.o_gradient,
                         measured_.gradients, memory_);
    else
      attention_forward(device, description_, measured_.inputs, measured_.o, measured_.lse, memory_);
  }

 private:
  struct Problem {
    AttentionInputs inputs;
    TensorView o, lse, o_gradient;
    AttentionGradients gradients;
  };

  Problem make(const Shape& queries, const Shape& keys) {
    const DType dtype = work_.dtype;
    Problem problem;
    problem.inputs = {
        .q = tensors_.random(dtype, queries), .k = tensors_.random(dtype, keys), .v = tensors_.random(dtype, keys)};
    problem.o = tensors_.empty(dtype, queries);
    if (work_.score == Score::softmax) problem.lse = tensors_.empty(DType::f32, {queries[0], queries[1], queries[2]});
    if (work_.backward) {
      problem.o_gradient = tensors_.random(dtype, queries);
      problem.gradients = {
          .q = tensors_.empty(dtype, queries), .k = tensors_.empty(dtype, keys), .v = tensors_.empty(dtype, keys)};
    }
    return problem;
  }

  /// The small problem and what the reference makes of it. A score so near to a kink that f32 and f64 see it on two
  /// sides would make gradients differ that are both right: such inputs are drawn again.
  void expect(const Shape& queries, const Shape& keys) {
    reference::AttentionProblem problem;
    problem.shape = {queries[0], queries[1], keys[1], queries[2], keys[2], queries[3]};
    problem.score = work_.score;
    for (int attempt = 0; attempt < 20; ++attempt) {
      const std::vector<float> q = random_values(queries.elements(), work_.dtype);
      const std::vector<float> k = random_values(keys.elements(), work_.dtype);
      const std::vector<float> v = random_values(keys.elements(), work_.dtype);
      problem.q = exact(q);
      problem.k = exact(k);
      problem.v = exact(v);
      if (attempt < 19 && work_.backward && work_.score != Score::softmax) {
        const std::vector<double> scores = reference::attention_scores(problem);
        if (std::ranges::any_of(scores, [](double s) { return std::abs(s) < 2e-6; })) continue;
      }
      small_ = make(queries, keys);
      small_.inputs = {
          .q = upload(q, work_.dtype, queries), .k = upload(k, work_.dtype, keys), .v = upload(v, work_.dtype, keys)};
      break;
    }
    output_ = reference::attention_forward(problem);
    if (!work_.backward) return;
    const std::vector<float> o_gradient = random_values(queries.elements(), work_.dtype);
    small_.o_gradient = upload(o_gradient, work_.dtype, queries);
    gradients_ = reference::attention_backward(problem, exact(o_gradient));
  }

  std::size_t bytes(const Device& device, const Problem& problem) const {
    const std::size_t forward = attention_forward_workspace(device, description_, problem.inputs);
    return work_.backward ? std::max(forward, attention_backward_workspace(device, description_, problem.inputs,
                                                                           problem.gradients))
                          : forward;
  }

  AttentionWork work_;
  AttentionDescription description_;
  Problem measured_, small_;
  reference::AttentionOutput output_;
  reference::AttentionGradients gradients_;
  void* memory_ = nullptr;
};

class GemmBench final : public KernelBench {
 public:
  GemmBench(const Device& device, const GemmWork& work) : KernelBench(device), work_(work) {
    for (const GemmWork::Extents& shape : work.shapes) {
      products_.push_back(make(tensors_.random(work.dtype, {shape.m, shape.k}),
                               tensors_.random(work.dtype, {shape.n, shape.k}), shape));
      packed_.emplace_back(nullptr);
      packed_bytes_.push_back(0);
    }
    expect({61, 83, 150});
  }

  std::string verify(const tuning::Record& record) override {
    const Device& device = with(record);
    gemm(device, small_, scratch(gemm_workspace(device, small_)));
    device.wait();
    return difference("C", tensors_.download(small_.c), expected_, work_.dtype);
  }

 protected:
  /// Weights are packed once and used many times, so packing is not measured.
  void prepare(const Device& device) override {
    std::size_t bytes = gemm_workspace(device, small_);
    for (std::size_t i = 0; i < products_.size(); ++i) {
      products_[i].packed_b = nullptr;
      bytes = std::max(bytes, gemm_workspace(device, products_[i]));
      const std::size_t needed = gemm_packed_bytes(device, products_[i]);
      if (needed == 0) continue;
      if (needed > packed_bytes_[i]) {
        device_.wait();
        packed_[i] = std::make_unique<Memory>(device_, needed, "tuning");
        packed_bytes_[i] = needed;
      }
    }
    memory_ = scratch(bytes);
  }

  void submit_before(const Device& device) override {
    for (std::size_t i = 0; i < products_.size(); ++i) {
      products_[i].packed_b = nullptr;
      if (gemm_packed_bytes(device, products_[i]) == 0) continue;
      gemm_pack(device, products_[i], packed_[i]->data());
      products_[i].packed_b = packed_[i]->data();
    }
  }

  void submit(const Device& device) override {
    for (const Gemm& product : products_) gemm(device, product, memory_);
  }

 private:
  Gemm make(const TensorView& a, const TensorView& weights, const GemmWork::Extents& shape) {
    Gemm product{.a = a, .b = weights.permute({1, 0}), .c = tensors_.empty(work_.dtype, {shape.m, shape.n})};
    if (work_.builtin) product.provider = GemmProvider::builtin;
    return product;
  }

  void expect(const GemmWork::Extents& shape) {
    const std::vector<float> a = random_values(shape.m * shape.k, work_.dtype);
    const std::vector<float> weights = random_values(shape.n * shape.k, work_.dtype);
    small_ = make(upload(a, work_.dtype, {shape.m, shape.k}), upload(weights, work_.dtype, {shape.n, shape.k}), shape);
    for (std::int64_t row = 0; row < shape.m; ++row)
      for (std::int64_t column = 0; column < shape.n; ++column) {
        double sum = 0;
        for (std::int64_t i = 0; i < shape.k; ++i)
          sum += static_cast<double>(a[static_cast<std::size_t>(row * shape.k + i)]) *
                 static_cast<double>(weights[static_cast<std::size_t>(column * shape.k + i)]);
        expected_.push_back(sum);
      }
  }

  GemmWork work_;
  std::vector<Gemm> products_;
  std::vector<std::unique_ptr<Memory>> packed_;
  std::vector<std::size_t> packed_bytes_;
  void* memory_ = nullptr;
  Gemm small_;
  std::vector<double> expected_;
};

class LayerNormBench final : public KernelBench {
 public:
  LayerNormBench(const Device& device, const LayerNormWork& work) : KernelBench(device), work_(work) {
    for (const LayerNormWork::Extents& shape : work.shapes) problems_.push_back(make(shape));
    constexpr std::int64_t rows = 67;
    constexpr std::int64_t channels = 200;
    small_ = make({rows, channels});
    const std::vector<float> x = random_values(rows * channels, work.dtype);
    const std::vector<float> weight = random_values(channels, DType::f32);
    const std::vector<float> y_gradient = random_values(rows * channels, work.dtype);
    small_.pass.in = upload(x, work.dtype, {rows, channels});
    small_.pass.weight = upload(weight, DType::f32, {channels});
    small_.pass.out_gradient = upload(y_gradient, work.dtype, {rows, channels});
    const reference::NormParameters norm{exact(weight), {}};
    output_ = reference::layer_norm(exact(x), rows, norm, small_.pass.epsilon);
    gradients_ = reference::layer_norm_backward(exact(x), rows, norm, small_.pass.epsilon, exact(y_gradient));
  }

  std::string verify(const tuning::Record& record) override {
    const Device& device = with(record);
    submit(device, small_);
    device.wait();
    return first_of({difference("y", tensors_.download(small_.out), output_, work_.dtype),
                     difference("dx", tensors_.download(small_.pass.in_gradient), gradients_.x, work_.dtype),
                     difference("dweight", tensors_.download(small_.pass.weight_gradient), gradients_.parameters.weight,
                                work_.dtype)});
  }

 protected:
  void submit(const Device& device) override {
    for (const Problem& problem : problems_) submit(device, problem);
  }

 private:
  struct Problem {
    nn::LayerNormBackward pass;
    TensorView out;
    void* workspace;
  };

  Problem make(const LayerNormWork::Extents& shape) {
    const Shape matrix{shape.rows, shape.channels};
    Problem problem{{.in = tensors_.random(work_.dtype, matrix),
                     .weight = tensors_.random(DType::f32, {shape.channels}),
                     .out_gradient = tensors_.random(work_.dtype, matrix),
                     .in_gradient = tensors_.empty(work_.dtype, matrix),
                     .weight_gradient = tensors_.empty(DType::f32, {shape.channels})},
                    tensors_.empty(work_.dtype, matrix),
                    nullptr};
    problem.workspace = tensors_.scratch(nn::layer_norm_backward_workspace(problem.pass));
    return problem;
  }

  static void submit(const Device& device, const Problem& problem) {
    nn::layer_norm_forward(device, problem.pass.in, problem.pass.weight, {}, problem.pass.epsilon, problem.out);
    nn::layer_norm_backward(device, problem.pass, problem.workspace);
  }

  LayerNormWork work_;
  std::vector<Problem> problems_;
  Problem small_;
  std::vector<double> output_;
  reference::LayerNormGradients gradients_;
};

}  // namespace

double AttentionWork::flops() const {
  return (backward ? 10.0 : 4.0) * static_cast<double>(batch * heads * length) *
         static_cast<double>(length * head_size);
}

double GemmWork::flops() const {
  double sum = 0;
  for (const Extents& shape : shapes)
    sum += 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n * shape.k);
  return sum;
}

double LayerNormWork::bytes() const {
  double sum = 0;  // forward reads and writes; backward reads two and writes one
  for (const Extents& shape : shapes) sum += 5.0 * static_cast<double>(shape.rows * shape.channels);
  return sum * static_cast<double>(size_of(dtype));
}

std::unique_ptr<Bench> make_bench(const Device& device, const AttentionWork& work) {
  return std::make_unique<AttentionBench>(device, work);
}
std::unique_ptr<Bench> make_bench(const Device& device, const GemmWork& work) {
  return std::make_unique<GemmBench>(device, work);
}
std::unique_ptr<Bench> make_bench(const Device& device, const LayerNormWork& work) {
  return std::make_unique<LayerNormBench>(device, work);
}

}  // namespace sylvit::tuner
