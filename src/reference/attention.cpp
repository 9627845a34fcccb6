#include "reference/attention.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <span>
#include <string>

namespace sylvit::reference {
namespace {

using Row = std::span<double>;
using ConstRow = std::span<const double>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

double sigmoid(double s) {
  // Only e to a negative power, so that nothing overflows.
  const double e = std::exp(-std::abs(s));
  return s < 0 ? e / (1 + e) : 1 / (1 + e);
}

double normal_cdf(double s) { return 0.5 * std::erfc(-s / std::numbers::sqrt2); }
double normal_density(double s) {
  return std::exp(-0.5 * s * s) * 0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
}

/// The tanh in the approximation of gelu, and the slope of its argument.
constexpr double gelu_cubic = 0.044715;
double gelu_tanh_factor() { return std::numbers::sqrt2 * std::numbers::inv_sqrtpi; }
double gelu_tanh_inner(double s) { return std::tanh(gelu_tanh_factor() * (s + gelu_cubic * s * s * s)); }
double gelu_tanh_inner_slope(double s) { return gelu_tanh_factor() * (1 + 3 * gelu_cubic * s * s); }

std::size_t count(std::int64_t a, std::int64_t b = 1, std::int64_t c = 1, std::int64_t d = 1) {
  return static_cast<std::size_t>(a * b * c * d);
}

/// Where rows lie and who sees whom.
class Layout {
 public:
  explicit Layout(const AttentionProblem& problem) : problem_(problem), shape_(problem.shape) {}

  template <class T>
  auto query_row(T& tensor, std::int64_t b, std::int64_t h, std::int64_t i) const {
    return row(tensor, (b * shape_.heads + h) * shape_.queries + i);
  }
  template <class T>
  auto key_row(T& tensor, std::int64_t b, std::int64_t kv_head, std::int64_t j) const {
    return row(tensor, (b * shape_.kv_heads + kv_head) * shape_.keys + j);
  }
  std::int64_t kv_head(std::int64_t h) const { return h / (shape_.heads / shape_.kv_heads); }

  std::int64_t length(std::int64_t b) const {
    return problem_.lengths.empty() ? shape_.keys : problem_.lengths[static_cast<std::size_t>(b)];
  }
  /// Query i sees the keys 0 .. visible(b, i) - 1.
  std::int64_t visible(std::int64_t b, std::int64_t i) const {
    return problem_.causal ? std::min(length(b), i + 1) : length(b);
  }
  /// The keys that any query sees: the last one sees the most.
  std::int64_t seen_keys(std::int64_t b) const { return visible(b, shape_.queries - 1); }

  double scale() const { return problem_.scale.value_or(1 / std::sqrt(static_cast<double>(shape_.head_size))); }
  double divisor(std::int64_t b) const { return problem_.divisor.value_or(static_cast<double>(length(b))); }
  double multiplier(std::int64_t h) const {
    return problem_.head_scale.empty() ? 1 : problem_.head_scale[static_cast<std::size_t>(h)];
  }
  double alpha(std::int64_t h) const {
    return problem_.head_alpha.empty() ? problem_.alpha : problem_.head_alpha[static_cast<std::size_t>(h)];
  }

 private:
  template <class T>
  auto row(T& tensor, std::int64_t index) const {
    return std::span(tensor).subspan(count(index, shape_.head_size), count(shape_.head_size));
  }

  const AttentionProblem& problem_;
  const AttentionShape& shape_;
};

void check_size(const char* name, std::size_t given, std::size_t expected, bool optional) {
  if (given == expected || (optional && given == 0)) return;
  throw Error(std::string("reference attention: ") + name + " has " + std::to_string(given) + " elements instead of " +
              std::to_string(expected));
}

void check(const AttentionProblem& problem) {
  const auto& [batch, heads, kv_heads, queries, keys, head_size] = problem.shape;
  for (const std::int64_t extent : {batch, heads, kv_heads, queries, keys, head_size})
    if (extent < 1) throw Error("reference attention: an extent is " + std::to_string(extent) + ", less than 1");
  if (heads % kv_heads != 0)
    throw Error("reference attention: " + std::to_string(heads) + " heads are not a multiple of " +
                std::to_string(kv_heads) + " key and value heads");
  check_size("q", problem.q.size(), count(batch, heads, queries, head_size), false);
  check_size("k", problem.k.size(), count(batch, kv_heads, keys, head_size), false);
  check_size("v", problem.v.size(), count(batch, kv_heads, keys, head_size), false);
  check_size("lengths", problem.lengths.size(), count(batch), true);
  check_size("head_scale", problem.head_scale.size(), count(heads), true);
  check_size("head_alpha", problem.head_alpha.size(), count(heads), true);
  for (const NormParameters* norm : {&problem.q_norm, &problem.k_norm}) {
    check_size("a norm weight", norm->weight.size(), count(head_size), true);
    check_size("a norm bias", norm->bias.size(), count(head_size), true);
  }
  for (const std::int64_t length : problem.lengths)
    if (length < 0 || length > keys)
      throw Error("reference attention: a length of " + std::to_string(length) + " is not in 0 to " +
                  std::to_string(keys));
  if (std::isnan(problem.alpha)) throw Error("reference attention: alpha is NaN");
  if (problem.divisor && !(*problem.divisor > 0))
    throw Error("reference attention: the divisor " + std::to_string(*problem.divisor) + " is not above 0");
  if (problem.score == Score::softmax && !problem.head_alpha.empty())
    throw Error("reference attention: head_alpha was given for softmax, which has no alpha");
}

/// Calls visit(b, h, i) for the queries that see a key: rows without one are never read.
template <class Visit>
void for_each_query(const AttentionProblem& problem, const Layout& layout, Visit visit) {
  for (std::int64_t b = 0; b < problem.shape.batch; ++b)
    for (std::int64_t h = 0; h < problem.shape.heads; ++h)
      for (std::int64_t i = 0; i < problem.shape.queries; ++i)
        if (layout.visible(b, i) > 0) visit(b, h, i);
}

/// Calls visit(b, kv_head, j) for the keys that are seen: the others may hold anything.
template <class Visit>
void for_each_key(const AttentionProblem& problem, const Layout& layout, Visit visit) {
  for (std::int64_t b = 0; b < problem.shape.batch; ++b)
    for (std::int64_t kv_head = 0; kv_head < problem.shape.kv_heads; ++kv_head)
      for (std::int64_t j = 0; j < layout.seen_keys(b); ++j) visit(b, kv_head, j);
}

/// What enters the product q·k: the rows as given, or after their layer norm.
struct Operands {
  std::vector<double> q;
  std::vector<double> k;
};

Operands make_operands(const AttentionProblem& problem, const Layout& layout) {
  Operands operands{problem.q, problem.k};
  if (!problem.qk_norm) return operands;
  for_each_query(problem, layout, [&](auto b, auto h, auto i) {
    norm_forward(layout.query_row(problem.q, b, h, i), problem.q_norm, problem.epsilon,
                 layout.query_row(operands.q, b, h, i));
  });
  for_each_key(problem, layout, [&](auto b, auto kv_head, auto j) {
    norm_forward(layout.key_row(problem.k, b, kv_head, j), problem.k_norm, problem.epsilon,
                 layout.key_row(operands.k, b, kv_head, j));
  });
  return operands;
}

/// The scores of one query for the keys it sees.
std::vector<double> score_row(const Layout& layout, const Operands& operands, std::int64_t b, std::int64_t h,
                              std::int64_t i) {
  std::vector<double> scores(count(layout.visible(b, i)));
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const auto key = layout.key_row(operands.k, b, layout.kv_head(h), static_cast<std::int64_t>(j));
    scores[j] = layout.scale() * dot(layout.query_row(operands.q, b, h, i), key);
  }
  return scores;
}

/// The weights of one row before the multiplier m: softmax(s) or N^-α h(s).
struct Weights {
  std::vector<double> values;
  double factor = 1;               // N^-α
  double log_sum_exp = -infinity;  // softmax only
};

Weights weigh(Score score, const std::vector<double>& scores, double divisor, double alpha) {
  Weights weights{std::vector<double>(scores.size()), 1, -infinity};
  if (score == Score::softmax) {
    // Less the largest score, so that nothing overflows. A NaN makes the sum and so the whole row NaN.
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (std::size_t j = 0; j < scores.size(); ++j) sum += weights.values[j] = std::exp(scores[j] - largest);
    for (double& value : weights.values) value /= sum;
    weights.log_sum_exp = largest + std::log(sum);
  } else {
    weights.factor = std::pow(divisor, -alpha);
    for (std::size_t j = 0; j < scores.size(); ++j) weights.values[j] = weights.factor * score_value(score, scores[j]);
  }
  return weights;
}

}  // namespace

double score_value(Score score, double s) {
  // Comparisons are written so that a NaN falls through to the branch that returns it.
  switch (score) {
    case Score::softmax:
    case Score::custom:
      break;
    case Score::relu:
      return s < 0 ? 0 : s;
    case Score::relu2:
      return s < 0 ? 0 : s * s;
    case Score::gelu:
      return s * normal_cdf(s);
    case Score::gelu_tanh:
      return 0.5 * s * (1 + gelu_tanh_inner(s));
    case Score::softplus:
      return (s > 0 ? s : 0) + std::log1p(std::exp(-std::abs(s)));
    case Score::identity:
      return s;
    case Score::relu6:
      return s < 0 ? 0 : s > 6 ? 6 : s;
    case Score::sigmoid:
      return sigmoid(s);
    case Score::silu:
      return s * sigmoid(s);
  }
  throw Error("reference attention: " + std::string(name_of(score)) + " is not one of its point-wise scores");
}

double score_slope(Score score, double s) {
  if (std::isnan(s)) return nan;
  switch (score) {
    case Score::softmax:
    case Score::custom:
      break;
    case Score::relu:
      return s > 0 ? 1 : 0;
    case Score::relu2:
      return s > 0 ? 2 * s : 0;
    case Score::gelu:
      return normal_cdf(s) + s * normal_density(s);
    case Score::gelu_tanh: {
      const double t = gelu_tanh_inner(s);
      return 0.5 * (1 + t) + 0.5 * s * (1 - t * t) * gelu_tanh_inner_slope(s);
    }
    case Score::softplus:
      return sigmoid(s);
    case Score::identity:
      return 1;
    case Score::relu6:
      return s > 0 && s < 6 ? 1 : 0;
    case Score::sigmoid:
      return sigmoid(s) * sigmoid(-s);
    case Score::silu:
      return sigmoid(s) * (1 + s * sigmoid(-s));
  }
  throw Error("reference attention: " + std::string(name_of(score)) + " is not one of its point-wise scores");
}

AttentionOutput attention_forward(const AttentionProblem& problem) {
  check(problem);
  const Layout layout(problem);
  const Operands operands = make_operands(problem, layout);
  const AttentionShape& shape = problem.shape;
  AttentionOutput output;
  output.o.assign(problem.q.size(), 0);
  if (problem.score == Score::softmax)
    output.log_sum_exp.assign(count(shape.batch, shape.heads, shape.queries), -infinity);

  for_each_query(problem, layout, [&](auto b, auto h, auto i) {
    const std::vector<double> scores = score_row(layout, operands, b, h, i);
    const Weights weights = weigh(problem.score, scores, layout.divisor(b), layout.alpha(h));
    for (std::size_t j = 0; j < scores.size(); ++j)
      add_scaled(layout.query_row(output.o, b, h, i), layout.multiplier(h) * weights.values[j],
                 layout.key_row(problem.v, b, layout.kv_head(h), static_cast<std::int64_t>(j)));
    if (problem.score == Score::softmax)
      output.log_sum_exp[count((b * shape.heads + h) * shape.queries + i)] = weights.log_sum_exp;
  });
  return output;
}

AttentionGradients attention_backward(const AttentionProblem& problem, const std::vector<double>& grad_o) {
  check(problem);
  check_size("grad_o", grad_o.size(), problem.q.size(), false);
  const bool is_softmax = problem.score == Score::softmax;
  const Layout layout(problem);
  const Operands operands = make_operands(problem, layout);
  AttentionGradients gradients;
  gradients.q.assign(problem.q.size(), 0);  // of the operands at first, of q and k themselves after the norms
  gradients.k.assign(problem.k.size(), 0);
  gradients.v.assign(problem.v.size(), 0);
  gradients.head_scale.assign(count(problem.shape.heads), 0);
  if (!is_softmax) gradients.head_alpha.assign(count(problem.shape.heads), 0);

  for_each_query(problem, layout, [&](auto b, auto h, auto i) {
    const std::vector<double> scores = score_row(layout, operands, b, h, i);
    const Weights weights = weigh(problem.score, scores, layout.divisor(b), layout.alpha(h));
    const double multiplier = layout.multiplier(h);
    const ConstRow grad_row = layout.query_row(grad_o, b, h, i);

    // dP_j = ∂loss/∂w_ij = grad_o_i · v_j, and its mean under the weights, which softmax takes off each dP_j.
    std::vector<double> grad_weights(scores.size());
    double weighted_sum = 0;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const auto key = static_cast<std::int64_t>(j);
      grad_weights[j] = dot(grad_row, layout.key_row(problem.v, b, layout.kv_head(h), key));
      weighted_sum += grad_weights[j] * weights.values[j];
      add_scaled(layout.key_row(gradients.v, b, layout.kv_head(h), key), multiplier * weights.values[j], grad_row);
    }
    // w = m · N^-α · h(s), so ∂w/∂m = w/m and ∂w/∂α = -ln N · w.
    gradients.head_scale[count(h)] += weighted_sum;
    if (!is_softmax) gradients.head_alpha[count(h)] -= std::log(layout.divisor(b)) * multiplier * weighted_sum;

    for (std::size_t j = 0; j < scores.size(); ++j) {
      const auto key = static_cast<std::int64_t>(j);
      const double slope_times_grad = is_softmax
                                          ? weights.values[j] * (grad_weights[j] - weighted_sum)
                                          : weights.factor * score_slope(problem.score, scores[j]) * grad_weights[j];
      const double grad_product = layout.scale() * multiplier * slope_times_grad;
      add_scaled(layout.query_row(gradients.q, b, h, i), grad_product,
                 layout.key_row(operands.k, b, layout.kv_head(h), key));
      add_scaled(layout.key_row(gradients.k, b, layout.kv_head(h), key), grad_product,
                 layout.query_row(operands.q, b, h, i));
    }
  });

  if (problem.qk_norm) {
    const std::vector<double> zeros(count(problem.shape.head_size), 0);
    gradients.q_norm = gradients.k_norm = {zeros, zeros};
    for_each_query(problem, layout, [&](auto b, auto h, auto i) {
      norm_backward(layout.query_row(problem.q, b, h, i), problem.q_norm, problem.epsilon,
                    layout.query_row(gradients.q, b, h, i), gradients.q_norm);
    });
    for_each_key(problem, layout, [&](auto b, auto kv_head, auto j) {
      norm_backward(layout.key_row(problem.k, b, kv_head, j), problem.k_norm, problem.epsilon,
                    layout.key_row(gradients.k, b, kv_head, j), gradients.k_norm);
    });
  }
  return gradients;
}

std::vector<double> attention_scores(const AttentionProblem& problem) {
  check(problem);
  const Layout layout(problem);
  const Operands operands = make_operands(problem, layout);
  const AttentionShape& shape = problem.shape;
  std::vector<double> result(count(shape.batch, shape.heads, shape.queries, shape.keys), nan);
  for_each_query(problem, layout, [&](auto b, auto h, auto i) {
    const std::vector<double> scores = score_row(layout, operands, b, h, i);
    const std::size_t row = count((b * shape.heads + h) * shape.queries + i, shape.keys);
    std::copy(scores.begin(), scores.end(), result.begin() + static_cast<std::ptrdiff_t>(row));
  });
  return result;
}

}  // namespace sylvit::reference
