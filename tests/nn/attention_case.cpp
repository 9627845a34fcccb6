#include "nn/attention_case.hpp"

#include <cmath>
#include <cstring>
#include <deque>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <random>

#include "base/scores.hpp"
#include "runtime/rehearsal.hpp"

namespace sylvit::test {

namespace {

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

float rounded(float value, DType dtype) {
  if (dtype == DType::bf16) return bf16(value);
  if (dtype == DType::f16) return f16(value);
  return value;
}

AttentionDescription description_of(const AttentionCase& wanted) {
  return {.score = wanted.score,
          .alpha = wanted.alpha,
          .divisor = wanted.divisor,
          .scale = wanted.scale,
          .causal = wanted.causal,
          .qk_norm = wanted.qk_norm};
}

Shape query_shape(const AttentionCase& c) { return {c.batch, c.heads, c.queries, c.head_size}; }
Shape key_shape(const AttentionCase& c) { return {c.batch, c.kv_heads, c.keys, c.head_size}; }

/// Device buffers with guard bands around each, which hold a pattern that no kernel may touch.
class Guarded {
 public:
  static constexpr std::size_t guard = 512;  // bytes on each side

  struct Buffer {
    Memory memory;
    std::size_t bytes;
  };

  void* make(std::size_t bytes) {
    Buffer& buffer = buffers_.emplace_back(Buffer{Memory(device(), bytes + 2 * guard, "a test"), bytes});
    device().queue().memset(buffer.memory.data(), 0x5a, bytes + 2 * guard);
    device().wait();
    return buffer.memory.as<std::byte>() + guard;
  }

  bool guards_are_intact() const {
    for (const Buffer& buffer : buffers_) {
      std::vector<std::byte> bytes(buffer.bytes + 2 * guard);
      device().queue().memcpy(bytes.data(), buffer.memory.data(), bytes.size());
      device().wait();
      for (std::size_t i = 0; i < guard; ++i)
        if (bytes[i] != std::byte{0x5a} || bytes[bytes.size() - 1 - i] != std::byte{0x5a}) return false;
    }
    return true;
  }

 private:
  std::deque<Buffer> buffers_;
};

/// The elements of a view in row-major order, widened.
std::vector<float> download(const TensorView& view) {
  std::vector<std::byte> bytes(view.span_bytes());
  device().queue().memcpy(bytes.data(), view.data(), bytes.size());
  device().wait();
  std::vector<float> values;
  values.reserve(size(view.shape().elements()));
  const std::size_t rank = view.shape().rank();
  std::vector<std::int64_t> index(rank, 0);
  for (std::int64_t n = 0; n < view.shape().elements(); ++n) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) offset += index[axis] * view.stride(axis);
    const std::byte* at = bytes.data() + size(offset) * size_of(view.dtype());
    if (view.dtype() == DType::f32) {
      float value = 0;
      std::memcpy(&value, at, sizeof(value));
      values.push_back(value);
    } else {
      std::uint16_t raw = 0;
      std::memcpy(&raw, at, sizeof(raw));
      values.push_back(view.dtype() == DType::bf16 ? static_cast<float>(bf16::from_bits(raw))
                                                   : static_cast<float>(f16::from_bits(raw)));
    }
    for (std::size_t axis = rank; axis-- > 0;) {
      if (++index[axis] < view.shape()[axis]) break;
      index[axis] = 0;
    }
  }
  return values;
}

void upload(const TensorView& view, const std::vector<float>& values) {
  std::vector<std::byte> bytes(view.span_bytes());
  device().queue().memcpy(bytes.data(), view.data(), bytes.size());  // what lies between strided rows stays
  device().wait();
  const std::size_t rank = view.shape().rank();
  std::vector<std::int64_t> index(rank, 0);
  for (const float value : values) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) offset += index[axis] * view.stride(axis);
    std::byte* at = bytes.data() + size(offset) * size_of(view.dtype());
    if (view.dtype() == DType::f32) {
      std::memcpy(at, &value, sizeof(value));
    } else {
      const std::uint16_t raw = view.dtype() == DType::bf16 ? bf16(value).bits : f16(value).bits;
      std::memcpy(at, &raw, sizeof(raw));
    }
    for (std::size_t axis = rank; axis-- > 0;) {
      if (++index[axis] < view.shape()[axis]) break;
      index[axis] = 0;
    }
  }
  device().queue().memcpy(view.data(), bytes.data(), bytes.size());
  device().wait();
}

struct Triple {
  TensorView q, k, v;
};

/// q, k, v (or their gradients), each in a buffer of its own or as slices of one [B, L, heads of all three, d].
Triple make_triple(Guarded& memory, const AttentionCase& c) {
  const std::size_t bytes = size_of(c.dtype);
  if (!c.packed) {
    const auto one = [&](const Shape& shape) {
      return TensorView(memory.make(size(shape.elements()) * bytes), c.dtype, shape);
    };
    return {one(query_shape(c)), one(key_shape(c)), one(key_shape(c))};
  }
  const std::int64_t all_heads = c.heads + 2 * c.kv_heads;
  const std::int64_t rows = std::max(c.queries, c.keys);
  const TensorView all(memory.make(size(c.batch * rows * all_heads * c.head_size) * bytes), c.dtype,
                       {c.batch, rows, all_heads, c.head_size});
  const TensorView turned = all.permute({0, 2, 1, 3});
  return {turned.slice(1, 0, c.heads).slice(2, 0, c.queries), turned.slice(1, c.heads, c.kv_heads).slice(2, 0, c.keys),
          turned.slice(1, c.heads + c.kv_heads, c.kv_heads).slice(2, 0, c.keys)};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace

std::string AttentionCase::text() const {
  return fmt::format("B{} H{}/{} L{}x{} d{} {} {}{}{}{}{}{} alpha {} divisor {} lengths [{}]", batch, heads, kv_heads,
                     queries, keys, head_size, name_of(score), name_of(dtype), causal ? " causal" : "",
                     qk_norm ? " qk_norm" : "", head_scale ? " head_scale" : "", head_alpha ? " head_alpha" : "",
                     packed ? " packed" : "", alpha, divisor, fmt::join(lengths, " "));
}

bool AttentionResult::operator==(const AttentionResult& other) const {
  return same_bits(o, other.o) && same_bits(lse, other.lse) && same_bits(dq, other.dq) && same_bits(dk, other.dk) &&
         same_bits(dv, other.dv) && same_bits(dhead_scale, other.dhead_scale) &&
         same_bits(dhead_alpha, other.dhead_alpha) && same_bits(dq_weight, other.dq_weight) &&
         same_bits(dq_bias, other.dq_bias) && same_bits(dk_weight, other.dk_weight) &&
         same_bits(dk_bias, other.dk_bias);
}

AttentionData::AttentionData(const AttentionCase& c, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  const auto random = [&](std::int64_t count, float amplitude, DType dtype, float centre = 0.0F) {
    std::vector<float> values(size(count));
    for (float& value : values) value = rounded(centre + amplitude * normal(generator), dtype);
    return values;
  };
  q = random(query_shape(c).elements(), c.amplitude, c.dtype);
  k = random(key_shape(c).elements(), c.amplitude, c.dtype);
  v = random(key_shape(c).elements(), 1, c.dtype);
  grad_o = random(query_shape(c).elements(), 1, c.dtype);
  if (c.head_scale) head_scale = random(c.heads, 0.3F, DType::f32, 1.0F);
  if (c.head_alpha) head_alpha = random(c.heads, 0.2F, DType::f32, 0.9F);
  if (c.qk_norm && c.norm_parameters) {
    q_weight = random(c.head_size, 0.2F, DType::f32, 1.0F);
    q_bias = random(c.head_size, 0.2F, DType::f32);
    k_weight = random(c.head_size, 0.2F, DType::f32, 1.0F);
    k_bias = random(c.head_size, 0.2F, DType::f32);
  }
  // What lies beyond a sequence's length must not matter: let it be the worst there is.
  for (std::size_t b = 0; b < c.lengths.size(); ++b)
    for (std::int64_t h = 0; h < c.kv_heads; ++h)
      for (std::int64_t j = c.lengths[b]; j < c.keys; ++j)
        for (std::int64_t x = 0; x < c.head_size; ++x) {
          const std::size_t at = size(((static_cast<std::int64_t>(b) * c.kv_heads + h) * c.keys + j) * c.head_size + x);
          k[at] = v[at] = std::numeric_limits<float>::quiet_NaN();
        }
}

AttentionResult run_attention(const AttentionCase& c, const AttentionData& data) {
  Guarded memory;
  const AttentionDescription description = description_of(c);
  const Triple in = make_triple(memory, c);
  upload(in.q, data.q);
  upload(in.k, data.k);
  upload(in.v, data.v);
  const auto optional = [&](const std::vector<float>& values) {
    if (values.empty()) return TensorView();
    const TensorView view(memory.make(values.size() * sizeof(float)), DType::f32,
                          {static_cast<std::int64_t>(values.size())});
    upload(view, values);
    return view;
  };
  AttentionInputs inputs{.q = in.q,
                         .k = in.k,
                         .v = in.v,
                         .head_scale = optional(data.head_scale),
                         .head_alpha = optional(data.head_alpha),
                         .q_norm_weight = optional(data.q_weight),
                         .q_norm_bias = optional(data.q_bias),
                         .k_norm_weight = optional(data.k_weight),
                         .k_norm_bias = optional(data.k_bias)};
  if (!c.lengths.empty()) {
    inputs.lengths = TensorView(memory.make(c.lengths.size() * 4), DType::i32, {c.batch});
    device().queue().memcpy(inputs.lengths.data(), c.lengths.data(), c.lengths.size() * 4).wait();
  }
  const auto empty_like = [&](const TensorView& view) {
    return view ? TensorView(memory.make(view.span_bytes()), view.dtype(), view.shape()) : TensorView();
  };
  const TensorView o(memory.make(size(query_shape(c).elements()) * size_of(c.dtype)), c.dtype, query_shape(c));
  const TensorView lse = c.score == Score::softmax ? TensorView(memory.make(size(c.batch * c.heads * c.queries) * 4),
                                                                DType::f32, {c.batch, c.heads, c.queries})
                                                   : TensorView();
  const TensorView grad_o(memory.make(o.span_bytes()), c.dtype, query_shape(c));
  upload(grad_o, data.grad_o);
  const Triple out = make_triple(memory, c);
  const AttentionGradients gradients{.q = out.q,
                                     .k = out.k,
                                     .v = out.v,
                                     .head_scale = empty_like(inputs.head_scale),
                                     .head_alpha = empty_like(inputs.head_alpha),
                                     .q_norm_weight = empty_like(inputs.q_norm_weight),
                                     .q_norm_bias = empty_like(inputs.q_norm_bias),
                                     .k_norm_weight = empty_like(inputs.k_norm_weight),
                                     .k_norm_bias = empty_like(inputs.k_norm_bias)};
  void* forward_scratch = memory.make(attention_forward_workspace(device(), description, inputs));
  void* backward_scratch = memory.make(attention_backward_workspace(device(), description, inputs, gradients));
  attention_forward(device(), description, inputs, o, lse, forward_scratch);
  attention_backward(device(), description, inputs, o, lse, grad_o, gradients, backward_scratch);
  device().wait();
  CHECK(memory.guards_are_intact());
  CHECK(same_bits(download(in.q), data.q));
  CHECK(same_bits(download(in.k), data.k));
  CHECK(same_bits(download(in.v), data.v));
  CHECK(same_bits(download(grad_o), data.grad_o));
  const auto read = [](const TensorView& view) { return view ? download(view) : std::vector<float>(); };
  return {read(o),
          read(lse),
          read(gradients.q),
          read(gradients.k),
          read(gradients.v),
          read(gradients.head_scale),
          read(gradients.head_alpha),
          read(gradients.q_norm_weight),
          read(gradients.q_norm_bias),
          read(gradients.k_norm_weight),
          read(gradients.k_norm_bias)};
}

namespace {

std::vector<double> wide(const std::vector<float>& values) { return {values.begin(), values.end()}; }

reference::AttentionProblem problem_of(const AttentionCase& c, const AttentionData& data) {
  reference::AttentionProblem problem;
  problem.shape = {c.batch, c.heads, c.kv_heads, c.queries, c.keys, c.head_size};
  problem.score = c.score;
  problem.alpha = c.alpha;
  if (c.scale) problem.scale = *c.scale;
  if (c.divisor > 0) problem.divisor = c.divisor;
  problem.causal = c.causal;
  problem.qk_norm = c.qk_norm;
  problem.q = wide(data.q);
  problem.k = wide(data.k);
  problem.v = wide(data.v);
  problem.lengths.assign(c.lengths.begin(), c.lengths.end());
  problem.head_scale = wide(data.head_scale);
  problem.head_alpha = wide(data.head_alpha);
  problem.q_norm = {wide(data.q_weight), wide(data.q_bias)};
  problem.k_norm = {wide(data.k_weight), wide(data.k_bias)};
  return problem;
}

/// Compares what the device gave with what the reference says, tensor by tensor.
class Comparison {
 public:
  explicit Comparison(const AttentionCase& c) : case_(c) {}

  /// Is every error within `bound` times the largest expected number, and `on_top`? Where 16-bit rounding of the normed
  /// queries and keys can carry a score over a kink, single gradients jump: there the bound is on the mean square.
  void close(const std::string& what, const std::vector<float>& got, const std::vector<double>& expected, double bound,
             double on_top = 0) {
    if (got.size() != expected.size())
      return fail(fmt::format("{} has {} numbers instead of {}", what, got.size(), expected.size()));
    double largest = 0;
    double square = 0;
    std::size_t zeros = 0;
    for (const double value : expected) {
      largest = std::max(largest, std::isfinite(value) ? std::abs(value) : 0.0);
      square += std::isfinite(value) ? value * value : 0.0;
      if (value == 0) ++zeros;
    }
    // With a handful of keys a gradient may vanish altogether; there errors count against inputs of size 1. Otherwise
    // results that are mostly zero are no evidence, unless a mask makes them so.
    const bool few = std::min(case_.keys, case_.queries) < 7;
    if (!few && !is_masked() && (largest < 1e-12 || zeros > expected.size() / 2))
      return fail(what + " is nearly all zero, so the comparison means nothing");
    const double scale = few ? std::max(largest, 1.0) : largest;
    double worst = 0;
    double error_square = 0;
    std::size_t where = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const bool both_infinite = std::isinf(expected[i]) && static_cast<double>(got[i]) == expected[i];
      const double error = both_infinite ? 0 : std::abs(static_cast<double>(got[i]) - expected[i]) / scale;
      error_square += error * error * scale * scale;
      if (!(error <= worst)) {
        worst = std::isnan(error) ? HUGE_VAL : error;
        where = i;
      }
    }
    const bool jumps = base::score_row(case_.score).kink && case_.qk_norm && case_.dtype != DType::f32;
    const double measured = jumps && std::isfinite(worst) ? std::sqrt(error_square / square) : worst;
    const double allowed = bound + on_top / scale;
    if (!(measured <= allowed))
      fail(fmt::format("{}[{}] is {} instead of {}: error {:.3g}, bound {:.3g}", what, where, got[where],
                       expected[where], measured, allowed));
  }

  bool good() const { return good_; }

 private:
  bool is_masked() const {
    return case_.causal || std::ranges::any_of(case_.lengths, [&](std::int32_t n) { return n < case_.keys; });
  }
  void fail(const std::string& sentence) {
    MESSAGE(case_.text() << ": " << sentence);
    good_ = false;
  }

  const AttentionCase& case_;
  bool good_ = true;
};

constexpr double f32_epsilon = 6e-8;

/// What softmax may be off by beside what every score may.
struct SoftmaxError {
  double weights = 0;     ///< of each weight, relative to it
  double dq = 0, dk = 0;  ///< absolute, the largest
};

/// An error of a score is a relative error of its weight: √d rounding errors of the largest score.
///
/// The backward pass takes D_i = Σ_j p_ij dP_ij as Σ_c dO_ic O_ic from the stored output, as flash attention does. Each
/// O_ic is off by up to ε |O_ic|, so D_i by up to e_i = ε Σ_c |dO_ic O_ic|, and dS_ij = scale p_ij (dP_ij - D_i) by
/// scale p_ij e_i. In dQ = dS K and dK = dSᵀ Q that makes scale e_i |Σ_j p_ij k_j| and scale Σ_i p_ij e_i |q_i|. It
/// does not shrink with the gradients: where one key has nearly all the weight, dP_ij - D_i is nearly 0 and e_i is not.
SoftmaxError softmax_error(const reference::AttentionProblem& problem, const reference::AttentionOutput& forward,
                           const std::vector<double>& grad_o, double epsilon) {
  const auto& [batch, heads, kv_heads, queries, keys, head_size] = problem.shape;
  const std::size_t d = size(head_size);
  const double scale = problem.scale.value_or(1 / std::sqrt(static_cast<double>(head_size)));
  const std::vector<double> scores = reference::attention_scores(problem);
  std::vector<double> dk(problem.k.size(), 0);
  std::vector<double> mean_key(d);
  double largest_score = 0;
  SoftmaxError error;
  for (std::size_t row = 0; row < size(batch * heads * queries); ++row) {
    const std::size_t head = row / size(queries);
    const std::size_t kv_head = head / size(heads) * size(kv_heads) + head % size(heads) / size(heads / kv_heads);
    double row_error = 0;
    for (std::size_t c = row * d; c < (row + 1) * d; ++c) row_error += epsilon * std::abs(grad_o[c] * forward.o[c]);
    std::ranges::fill(mean_key, 0);
    for (std::size_t j = 0; j < size(keys); ++j) {
      const double score = scores[row * size(keys) + j];
      if (std::isnan(score)) continue;  // the query does not see this key
      largest_score = std::max(largest_score, std::abs(score));
      const double weight = std::exp(score - forward.log_sum_exp[row]);
      const std::size_t key = (kv_head * size(keys) + j) * d;
      for (std::size_t c = 0; c < d; ++c) {
        mean_key[c] += weight * problem.k[key + c];
        dk[key + c] += scale * weight * row_error * std::abs(problem.q[row * d + c]);
      }
    }
    for (const double value : mean_key) error.dq = std::max(error.dq, scale * row_error * std::abs(value));
  }
  error.dk = *std::ranges::max_element(dk);
  error.weights = std::sqrt(static_cast<double>(head_size)) * f32_epsilon * largest_score;
  return error;
}

}  // namespace

bool agrees_with_reference(const AttentionCase& c, const AttentionData& data, const AttentionResult& got) {
  const reference::AttentionProblem problem = problem_of(c, data);
  const std::vector<double> grad_o = wide(data.grad_o);
  const reference::AttentionOutput forward = reference::attention_forward(problem);
  const reference::AttentionGradients backward = reference::attention_backward(problem, grad_o);
  // f32 accumulation over the keys, and one rounding (or a few) to the storage type.
  const double storage = c.dtype == DType::bf16 ? 1.0 / 256 : c.dtype == DType::f16 ? 1.0 / 2048 : f32_epsilon;
  const double steps = static_cast<double>(1 + std::max(c.keys, c.queries));
  const double norm = c.qk_norm ? 4 : 1;  // normed queries and keys are rounded to the storage type once more
  SoftmaxError softmax;
  if (c.score == Score::softmax) softmax = softmax_error(problem, forward, grad_o, storage + f32_epsilon);
  // What the norms' backward pass makes of that error is not worked out: it is a factor, good for scales up to 1/√d.
  double rounded_output = 1;
  if (c.qk_norm) {
    softmax.dq = softmax.dk = 0;
    if (c.score == Score::softmax && c.dtype != DType::f32) rounded_output = 4;
  }
  const double forward_bound = 4 * f32_epsilon * steps + 2 * norm * storage + softmax.weights;
  const double backward_bound = 8 * f32_epsilon * steps + 4 * norm * rounded_output * storage + softmax.weights;
  const double sum_bound = 2 * backward_bound;
  Comparison compare(c);
  compare.close("o", got.o, forward.o, forward_bound);
  if (c.score == Score::softmax) compare.close("lse", got.lse, forward.log_sum_exp, forward_bound);
  compare.close("dq", got.dq, backward.q, backward_bound, softmax.dq);
  compare.close("dk", got.dk, backward.k, backward_bound, softmax.dk);
  compare.close("dv", got.dv, backward.v, backward_bound);
  if (c.head_scale) compare.close("dhead_scale", got.dhead_scale, backward.head_scale, sum_bound);
  if (c.head_alpha) compare.close("dhead_alpha", got.dhead_alpha, backward.head_alpha, sum_bound);
  if (c.qk_norm && c.norm_parameters) {
    compare.close("dq_norm.weight", got.dq_weight, backward.q_norm.weight, sum_bound);
    compare.close("dq_norm.bias", got.dq_bias, backward.q_norm.bias, sum_bound);
    compare.close("dk_norm.weight", got.dk_weight, backward.k_norm.weight, sum_bound);
    if (c.score != Score::softmax) {
      compare.close("dk_norm.bias", got.dk_bias, backward.k_norm.bias, sum_bound);
    } else {
      // A bias of the keys moves all scores of a row alike, which softmax does not see: the gradient is 0, and only
      // rounding is left, to be compared beside the gradient of the other bias.
      std::vector<double> shifted(backward.k_norm.bias);
      const double size =
          std::abs(*std::ranges::max_element(backward.q_norm.bias, {}, [](double value) { return std::abs(value); }));
      std::vector<float> moved(got.dk_bias);
      for (double& value : shifted) value += size;
      for (float& value : moved) value += static_cast<float>(size);
      compare.close("dk_norm.bias", moved, shifted, sum_bound * (c.dtype == DType::f32 ? 1 : 4));
    }
  }
  return compare.good();
}

void prepare_attention(const std::vector<AttentionCase>& cases) {
  const runtime::Rehearsal rehearsal(device());
  for (const AttentionCase& c : cases) {
    std::byte nothing{};
    AttentionInputs inputs{.q = TensorView(&nothing, c.dtype, query_shape(c)),
                           .k = TensorView(&nothing, c.dtype, key_shape(c)),
                           .v = TensorView(&nothing, c.dtype, key_shape(c))};
    attention_prepare(rehearsal.device(), description_of(c), inputs, true);
  }
  std::vector<runtime::KernelName> kernels;
  for (const runtime::KernelName& kernel : rehearsal.kernels())
    if (std::ranges::find(kernels, kernel.type, &runtime::KernelName::type) == kernels.end()) kernels.push_back(kernel);
  constexpr std::size_t batch = 24;
  for (std::size_t first = 0; first < kernels.size(); first += batch)
    runtime::prepare(device(), std::span(kernels).subspan(first, std::min(batch, kernels.size() - first)));
}

}  // namespace sylvit::test
