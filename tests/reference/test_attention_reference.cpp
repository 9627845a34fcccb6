// Every kernel is checked against the reference, so it is checked itself: gradients against central finite differences,
// small cases against numbers worked out by hand, and what must not be read is filled with NaN.
#include <sylvit/error.hpp>

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>

#include "reference/attention.hpp"

TEST_SUITE_BEGIN("reference/attention_reference");

namespace {

using sylvit::all_scores;
using sylvit::Score;
using sylvit::reference::attention_backward;
using sylvit::reference::attention_forward;
using sylvit::reference::attention_scores;
using sylvit::reference::AttentionGradients;
using sylvit::reference::AttentionProblem;
using sylvit::reference::AttentionShape;
using sylvit::reference::score_slope;
using sylvit::reference::score_value;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<double> random_values(std::int64_t size, std::mt19937_64& random) {
  std::vector<double> values(static_cast<std::size_t>(size));
  // Not std::normal_distribution, whose numbers differ from one standard library to the next.
  for (double& value : values) value = static_cast<double>(random() >> 11) * 0x1p-52 * 1.5 - 1.5;
  return values;
}

AttentionProblem random_problem(const AttentionShape& shape, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  AttentionProblem problem;
  problem.shape = shape;
  problem.q = random_values(shape.batch * shape.heads * shape.queries * shape.head_size, random);
  problem.k = random_values(shape.batch * shape.kv_heads * shape.keys * shape.head_size, random);
  problem.v = random_values(shape.batch * shape.kv_heads * shape.keys * shape.head_size, random);
  return problem;
}

/// How close any visible score comes to where this score function has no derivative (or relu2 no second one).
double distance_to_kink(const AttentionProblem& problem) {
  double distance = infinity;
  for (const double s : attention_scores(problem)) {
    if (std::isnan(s)) continue;
    if (problem.score == Score::relu || problem.score == Score::relu2 || problem.score == Score::relu6)
      distance = std::min(distance, std::abs(s));
    if (problem.score == Score::relu6) distance = std::min(distance, std::abs(s - 6));
  }
  return distance;
}

struct GradientCheck {
  double worst = 0;  // |analytic - numeric| / (1 + |numeric|)
  std::size_t checked = 0;
  std::size_t not_zero = 0;
};

/// The gradient of loss = Σ grad_o · o for each number of one parameter, against central differences.
GradientCheck check_gradient(AttentionProblem& problem, const std::vector<double>& grad_o,
                             std::vector<double>& parameter, const std::vector<double>& gradient) {
  REQUIRE(gradient.size() == parameter.size());
  const auto loss = [&] {
    const std::vector<double> o = attention_forward(problem).o;
    double sum = 0;
    for (std::size_t i = 0; i < o.size(); ++i) sum += o[i] * grad_o[i];
    return sum;
  };
  constexpr double step = 1e-5;
  GradientCheck result;
  for (std::size_t i = 0; i < parameter.size(); ++i) {
    const double kept = parameter[i];
    parameter[i] = kept + step;
    const double above = loss();
    parameter[i] = kept - step;
    const double below = loss();
    parameter[i] = kept;
    const double numeric = (above - below) / (2 * step);
    result.worst = std::max(result.worst, std::abs(gradient[i] - numeric) / (1 + std::abs(numeric)));
    result.checked += 1;
    result.not_zero += std::abs(numeric) > 1e-6 ? 1 : 0;
  }
  return result;
}

/// Sums over many problems, by parameter.
using Totals = std::map<std::string, GradientCheck>;

void check_gradients(AttentionProblem& problem, const std::vector<double>& grad_o, Totals& totals) {
  const AttentionGradients gradients = attention_backward(problem, grad_o);
  const auto check = [&](const std::string& name, std::vector<double>& parameter, const std::vector<double>& gradient) {
    if (parameter.empty()) return;
    CAPTURE(name);
    const GradientCheck result = check_gradient(problem, grad_o, parameter, gradient);
    CHECK(result.worst < 1e-7);
    totals[name].checked += result.checked;
    totals[name].not_zero += result.not_zero;
  };
  check("q", problem.q, gradients.q);
  check("k", problem.k, gradients.k);
  check("v", problem.v, gradients.v);
  check("head_scale", problem.head_scale, gradients.head_scale);
  check("head_alpha", problem.head_alpha, gradients.head_alpha);
  check("q_norm.weight", problem.q_norm.weight, gradients.q_norm.weight);
  check("q_norm.bias", problem.q_norm.bias, gradients.q_norm.bias);
  check("k_norm.weight", problem.k_norm.weight, gradients.k_norm.weight);
  check("k_norm.bias", problem.k_norm.bias, gradients.k_norm.bias);
}

/// Gradients that are zero nearly everywhere would agree by luck.
void check_not_mostly_zero(Score score, const Totals& totals) {
  for (const auto& entry : totals) {
    const std::string& name = entry.first;  // no structured binding: CAPTURE captures it in a lambda
    const GradientCheck& total = entry.second;
    CAPTURE(name);
    // A bias of the keys adds the same to all scores of a query, which softmax does not see.
    if (score == Score::softmax && name == "k_norm.bias") {
      CHECK(total.not_zero == 0);
    } else {
      CHECK(total.not_zero * 4 >= total.checked);
    }
  }
}

struct Option {
  std::string name;
  std::function<void(AttentionProblem&, std::mt19937_64&)> apply;
};

const std::vector<Option> options{{"plain", [](AttentionProblem&, std::mt19937_64&) {}},
                                  {"alpha, divisor and scale",
                                   [](AttentionProblem& problem, std::mt19937_64&) {
                                     problem.alpha = 0.7;
                                     problem.divisor = 2.5;
                                     problem.scale = 1.9;
                                   }},
                                  {"alpha 0", [](AttentionProblem& problem, std::mt19937_64&) { problem.alpha = 0; }},
                                  {"per-head parameters",
                                   [](AttentionProblem& problem, std::mt19937_64& random) {
                                     problem.head_scale = random_values(problem.shape.heads, random);
                                     if (problem.score != Score::softmax)
                                       problem.head_alpha = random_values(problem.shape.heads, random);
                                   }},
                                  {"qk-norm without parameters",
                                   [](AttentionProblem& problem, std::mt19937_64&) {
                                     problem.qk_norm = true;
                                     // The norm of a row of nearly equal numbers bends too sharply for finite
                                     // differences; a large ε rules that out.
                                     problem.epsilon = 1e-2;
                                   }},
                                  {"everything", [](AttentionProblem& problem, std::mt19937_64& random) {
                                     const std::int64_t d = problem.shape.head_size;
                                     problem.qk_norm = true;
                                     problem.epsilon = 1e-2;
                                     problem.q_norm = {random_values(d, random), random_values(d, random)};
                                     problem.k_norm = {random_values(d, random), random_values(d, random)};
                                     problem.head_scale = random_values(problem.shape.heads, random);
                                     if (problem.score != Score::softmax)
                                       problem.head_alpha = random_values(problem.shape.heads, random);
                                     problem.divisor = 3.5;
                                     problem.scale = 1.3;
                                   }}};

void check_close(const std::vector<double>& values, const std::vector<double>& expected, double tolerance = 1e-12) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(values[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i])));
  }
}

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

}  // namespace

TEST_CASE("reference attention: gradients agree with finite differences") {
  // Grouped heads throughout; more keys than queries, fewer, and as many. With lengths, one sequence has a single key.
  const std::vector<AttentionShape> shapes{{2, 2, 1, 3, 4, 3}, {2, 4, 2, 4, 2, 3}, {2, 2, 2, 3, 3, 5}};
  std::uint64_t seed = 1;
  for (const Score score : all_scores) {
    const std::string_view score_name = sylvit::name_of(score);
    CAPTURE(score_name);
    Totals totals;
    for (const AttentionShape& shape : shapes)
      for (const bool causal : {false, true})
        for (const bool lengths : {false, true})
          for (const Option& option : options) {
            CAPTURE(shape.queries);
            CAPTURE(shape.keys);
            CAPTURE(causal);
            CAPTURE(lengths);
            CAPTURE(option.name);
            // Points near a kink are left out: others are drawn instead.
            AttentionProblem problem;
            do {
              problem = random_problem(shape, ++seed);
              std::mt19937_64 random(seed + 1'000'000);
              problem.score = score;
              problem.causal = causal;
              if (lengths) problem.lengths = {1, shape.keys};
              option.apply(problem, random);
            } while (distance_to_kink(problem) < 1e-3);
            std::mt19937_64 random(seed + 2'000'000);
            check_gradients(problem, random_values(static_cast<std::int64_t>(problem.q.size()), random), totals);
          }
    check_not_mostly_zero(score, totals);
  }
}

TEST_CASE("reference attention: gradients beyond the upper kink of relu6") {
  std::uint64_t seed = 77;
  AttentionProblem problem;
  do {
    problem = random_problem({1, 2, 1, 4, 5, 4}, ++seed);
    problem.score = Score::relu6;
    problem.scale = 8;
  } while (distance_to_kink(problem) < 1e-2);
  const std::vector<double> scores = attention_scores(problem);
  CHECK(std::count_if(scores.begin(), scores.end(), [](double s) { return s > 6; }) >= 3);
  CHECK(std::count_if(scores.begin(), scores.end(), [](double s) { return s > 0 && s < 6; }) >= 3);
  CHECK(std::count_if(scores.begin(), scores.end(), [](double s) { return s < 0; }) >= 3);
  std::mt19937_64 random(5);
  Totals totals;
  check_gradients(problem, random_values(32, random), totals);
  check_not_mostly_zero(problem.score, totals);
}

TEST_CASE("reference attention: slopes are the derivatives of the values") {
  for (const Score score : all_scores) {
    if (score == Score::softmax) continue;
    for (int step = -91; step <= 91; ++step) {
      const double s = 0.1 * step + 0.05;
      const std::string_view score_name = sylvit::name_of(score);
      CAPTURE(score_name);
      CAPTURE(s);
      const double numeric = (score_value(score, s + 1e-5) - score_value(score, s - 1e-5)) / 2e-5;
      CHECK(std::abs(score_slope(score, s) - numeric) < 1e-8 * (1 + std::abs(numeric)));
    }
  }
}

TEST_CASE("reference attention: known values of each score") {
  // Worked out with 40 digits from the definitions.
  struct Known {
    Score score;
    double at_minus_half, at_zero, at_two, at_seven;
  };
  const std::vector<Known> known{
      {Score::relu, 0, 0, 2, 7},
      {Score::relu2, 0, 0, 4, 49},
      {Score::gelu, -0.15426876936299344, 0, 1.9544997361036416, 6.999999999991041},
      {Score::gelu_tanh, -0.15428599017485609, 0, 1.954597694087775, 6.999999999999997},
      {Score::softplus, 0.4740769841801067, 0.69314718055994531, 2.1269280110429727, 7.000911466453775},
      {Score::identity, -0.5, 0, 2, 7},
      {Score::relu6, 0, 0, 2, 6},
      {Score::sigmoid, 0.37754066879814546, 0.5, 0.8807970779778824, 0.9990889488055994},
      {Score::silu, -0.18877033439907273, 0, 1.7615941559557649, 6.993622641639195}};
  CHECK(known.size() + 1 == all_scores.size());
  for (const Known& row : known) {
    const std::string_view score_name = sylvit::name_of(row.score);
    CAPTURE(score_name);
    check_close(
        {score_value(row.score, -0.5), score_value(row.score, 0), score_value(row.score, 2), score_value(row.score, 7)},
        {row.at_minus_half, row.at_zero, row.at_two, row.at_seven}, 1e-14);
    CHECK(std::isnan(score_value(row.score, not_a_number)));
    CHECK(std::isnan(score_slope(row.score, not_a_number)));
    for (const double s : {-1e4, 1e4}) {
      CHECK(std::isfinite(score_value(row.score, s)));
      CHECK(std::isfinite(score_slope(row.score, s)));
    }
  }
  // The slope at a kink is that of the flat side.
  CHECK(score_slope(Score::relu, 0) == 0);
  CHECK(score_slope(Score::relu6, 0) == 0);
  CHECK(score_slope(Score::relu6, 6) == 0);
  CHECK(score_value(Score::softplus, 1e4) == 1e4);
  CHECK(score_value(Score::softplus, -700) > 0);  // log1p keeps what log(1 + …) would lose
  CHECK(score_value(Score::sigmoid, -740) > 0);
  CHECK_THROWS_AS(score_value(Score::softmax, 1), sylvit::Error);
  CHECK_THROWS_AS(score_slope(Score::softmax, 1), sylvit::Error);
}

TEST_CASE("reference attention: a case small enough for pencil and paper") {
  AttentionProblem problem;
  problem.shape = {1, 1, 1, 2, 3, 1};
  problem.q = {1, -2};
  problem.k = {1, 2, -1};
  problem.v = {10, 20, 30};
  const auto forward = [&](Score score) {
    problem.score = score;
    return attention_forward(problem).o;
  };
  // Scores: 1 2 -1 and -2 -4 2; scale is 1/sqrt(1), the divisor 3.
  check_close(forward(Score::relu), {50.0 / 3, 20});
  check_close(forward(Score::relu2), {90.0 / 3, 40});
  check_close(forward(Score::identity), {20.0 / 3, -40.0 / 3});
  problem.causal = true;  // query 0 sees key 0, query 1 keys 0 and 1; the divisor stays 3
  check_close(forward(Score::identity), {10.0 / 3, -100.0 / 3});
  problem.alpha = 2;
  check_close(forward(Score::identity), {10.0 / 9, -100.0 / 9});
  problem.divisor = 10;
  check_close(forward(Score::identity), {0.1, -1});
  problem.causal = false;
  problem.divisor.reset();
  problem.lengths = {2};  // and so the divisor is 2
  check_close(forward(Score::identity), {50.0 / 4, -100.0 / 4});
  problem.head_scale = {4};
  check_close(forward(Score::identity), {50, -100});
  problem.head_alpha = {0};
  check_close(forward(Score::identity), {200, -400});
  problem.scale = -0.5;
  check_close(forward(Score::identity), {-100, 200});

  problem.scale.reset();
  problem.head_alpha.clear();
  problem.head_scale = {3};
  const double e = std::exp(1.0);
  check_close(forward(Score::softmax), {3 * (10 + 20 * e) / (1 + e), 3 * (10 + 20 / (e * e)) / (1 + 1 / (e * e))});
  check_close(attention_forward(problem).log_sum_exp, {1 + std::log(1 + e), -2 + std::log(1 + 1 / (e * e))});
}

TEST_CASE("reference attention: qk-norm by hand") {
  AttentionProblem problem;
  problem.shape = {1, 1, 1, 1, 1, 2};
  problem.score = Score::identity;
  problem.scale = 1;
  problem.qk_norm = true;
  problem.epsilon = 3;
  problem.q = {5, 7};  // mean 6, biased variance 1: (-1, 1) / sqrt(1 + 3)
  problem.k = {4, 2};  // (1, -1) / 2
  problem.v = {1, 10};
  check_close(attention_forward(problem).o, {-0.5, -5});
  problem.q_norm = {{2, 4}, {10, 20}};  // (-1, 2) + (10, 20)
  problem.k_norm = {{6, 8}, {1, 2}};    // (3, -4) + (1, 2)
  check_close(attention_forward(problem).o, {9 * 4 - 22 * 2, -80});
}

TEST_CASE("reference attention: identity is Q (Kᵀ V)") {
  AttentionProblem problem = random_problem({2, 4, 2, 7, 9, 8}, 3);
  problem.score = Score::identity;
  const auto& [batch, heads, kv_heads, queries, keys, d] = problem.shape;
  std::vector<double> expected(problem.q.size(), 0);
  for (std::int64_t bh = 0; bh < batch * heads; ++bh) {
    const std::int64_t kv = bh / heads * kv_heads + bh % heads / (heads / kv_heads);
    for (std::int64_t a = 0; a < d; ++a)
      for (std::int64_t c = 0; c < d; ++c) {
        double state = 0;  // (Kᵀ V)_ac
        for (std::int64_t j = 0; j < keys; ++j)
          state += problem.k[static_cast<std::size_t>((kv * keys + j) * d + a)] *
                   problem.v[static_cast<std::size_t>((kv * keys + j) * d + c)];
        for (std::int64_t i = 0; i < queries; ++i)
          expected[static_cast<std::size_t>((bh * queries + i) * d + c)] +=
              problem.q[static_cast<std::size_t>((bh * queries + i) * d + a)] * state /
              (std::sqrt(static_cast<double>(d)) * static_cast<double>(keys));
      }
  }
  check_close(attention_forward(problem).o, expected);
}

TEST_CASE("reference attention: what is masked is not read and gets no gradient") {
  for (const Score score : all_scores)
    for (const bool qk_norm : {false, true})
      for (const bool causal : {false, true}) {
        const std::string_view score_name = sylvit::name_of(score);
        CAPTURE(score_name);
        CAPTURE(qk_norm);
        CAPTURE(causal);
        // Sequence 0 has 3 keys of 6, sequence 1 none at all; with the causal mask 4 queries see 4 keys at most.
        AttentionProblem problem = random_problem({3, 2, 1, 4, 6, 4}, 11);
        problem.score = score;
        problem.qk_norm = qk_norm;
        problem.causal = causal;
        problem.lengths = {3, 0, 6};
        std::mt19937_64 random(9);
        const std::vector<double> grad_o = random_values(static_cast<std::int64_t>(problem.q.size()), random);
        const auto clean = attention_forward(problem);
        const AttentionGradients clean_gradients = attention_backward(problem, grad_o);

        for (std::size_t b = 0; b < 3; ++b) {
          const std::size_t seen = std::min<std::size_t>(b == 0 ? 3 : b == 1 ? 0 : 6, causal ? 4 : 6);
          for (std::size_t at = (b * 6 + seen) * 4; at < (b + 1) * 6 * 4; ++at) {
            problem.k[at] = problem.v[at] = not_a_number;
            CHECK(clean_gradients.k[at] == 0);
            CHECK(clean_gradients.v[at] == 0);
          }
        }
        constexpr std::size_t queries_of_one = 32;  // 2 heads x 4 queries x 4 numbers, of sequence 1
        for (std::size_t at = queries_of_one; at < 2 * queries_of_one; ++at) {
          problem.q[at] = not_a_number;
          CHECK(clean.o[at] == 0);
          CHECK(clean_gradients.q[at] == 0);
        }
        const auto output = attention_forward(problem);
        CHECK(output.o == clean.o);
        CHECK(output.log_sum_exp == clean.log_sum_exp);
        if (score == Score::softmax) CHECK(output.log_sum_exp[8] == -infinity);
        const AttentionGradients gradients = attention_backward(problem, grad_o);
        CHECK(gradients.q == clean_gradients.q);
        CHECK(gradients.k == clean_gradients.k);
        CHECK(gradients.v == clean_gradients.v);
        CHECK(gradients.head_scale == clean_gradients.head_scale);
        CHECK(gradients.head_alpha == clean_gradients.head_alpha);
        CHECK(gradients.q_norm.weight == clean_gradients.q_norm.weight);
        CHECK(gradients.k_norm.weight == clean_gradients.k_norm.weight);
        CHECK(gradients.k_norm.bias == clean_gradients.k_norm.bias);
        CHECK(all_finite(gradients.k));
        CHECK(std::count(clean.o.begin(), clean.o.end(), 0.0) <= 2 * 4 * 4 * 2);  // those of sequence 1 and few others
      }
}

TEST_CASE("reference attention: NaN goes where the maths sends it and nowhere else") {
  for (const Score score : all_scores) {
    const std::string_view score_name = sylvit::name_of(score);
    CAPTURE(score_name);
    AttentionProblem problem = random_problem({1, 2, 2, 3, 3, 4}, 21);
    problem.score = score;
    problem.causal = true;
    problem.q[4 + 1] = not_a_number;            // head 0, query 1
    problem.k[(3 + 2) * 4 + 3] = not_a_number;  // head 1, key 2: seen by query 2 alone
    const std::vector<double> o = attention_forward(problem).o;
    for (std::size_t row = 0; row < 6; ++row)
      for (std::size_t c = 0; c < 4; ++c) CHECK(std::isnan(o[row * 4 + c]) == (row == 1 || row == 3 + 2));
    const AttentionGradients gradients = attention_backward(problem, std::vector<double>(o.size(), 1.0));
    for (std::size_t row = 0; row < 6; ++row) CHECK(std::isnan(gradients.q[row * 4]) == (row == 1 || row == 3 + 2));
  }
}

TEST_CASE("reference attention: large scores stay finite") {
  for (const Score score : all_scores) {
    const std::string_view score_name = sylvit::name_of(score);
    CAPTURE(score_name);
    AttentionProblem problem = random_problem({1, 1, 1, 5, 6, 4}, 31);
    problem.score = score;
    problem.scale = 1e4;
    CHECK(all_finite(attention_forward(problem).o));
    CHECK(all_finite(attention_forward(problem).log_sum_exp));
    const AttentionGradients gradients = attention_backward(problem, std::vector<double>(problem.q.size(), 1.0));
    CHECK(all_finite(gradients.q));
    CHECK(all_finite(gradients.k));
    CHECK(all_finite(gradients.v));
  }
}

TEST_CASE("reference attention: problems that make no sense are refused") {
  const auto refused = [](const std::function<void(AttentionProblem&)>& spoil) {
    AttentionProblem problem = random_problem({2, 4, 2, 3, 5, 4}, 41);
    problem.score = Score::relu;
    spoil(problem);
    try {
      attention_forward(problem);
    } catch (const sylvit::Error&) {
      CHECK_THROWS_AS(attention_backward(problem, problem.q), sylvit::Error);
      CHECK_THROWS_AS(attention_scores(problem), sylvit::Error);
      return true;
    }
    return false;
  };
  CHECK(!refused([](AttentionProblem&) {}));
  CHECK(refused([](AttentionProblem& problem) { problem.q.pop_back(); }));
  CHECK(refused([](AttentionProblem& problem) { problem.k.pop_back(); }));
  CHECK(refused([](AttentionProblem& problem) { problem.v.push_back(0); }));
  CHECK(refused([](AttentionProblem& problem) { problem = random_problem({2, 4, 3, 3, 5, 4}, 43); }));
  CHECK(refused([](AttentionProblem& problem) { problem = random_problem({2, 4, 2, 0, 5, 4}, 43); }));
  CHECK(refused([](AttentionProblem& problem) { problem.lengths = {1}; }));
  CHECK(refused([](AttentionProblem& problem) { problem.lengths = {1, 6}; }));
  CHECK(refused([](AttentionProblem& problem) { problem.lengths = {-1, 5}; }));
  CHECK(!refused([](AttentionProblem& problem) { problem.lengths = {0, 5}; }));
  CHECK(refused([](AttentionProblem& problem) { problem.alpha = not_a_number; }));
  CHECK(refused([](AttentionProblem& problem) { problem.divisor = 0; }));
  CHECK(refused([](AttentionProblem& problem) { problem.divisor = not_a_number; }));
  CHECK(refused([](AttentionProblem& problem) { problem.head_scale = {1}; }));
  CHECK(refused([](AttentionProblem& problem) { problem.head_alpha = {1}; }));
  CHECK(refused([](AttentionProblem& problem) { problem.k_norm.bias = {1}; }));
  CHECK(refused([](AttentionProblem& problem) {
    problem.score = Score::softmax;
    problem.head_alpha = {1, 1, 1, 1};
  }));
  AttentionProblem problem = random_problem({1, 1, 1, 2, 2, 4}, 42);
  CHECK_THROWS_AS(attention_backward(problem, std::vector<double>(7)), sylvit::Error);
}

TEST_CASE("scores: names") {
  for (const Score score : all_scores) CHECK(sylvit::parse_score(sylvit::name_of(score)) == score);
  const auto message = [](std::string_view name) -> std::string {
    try {
      sylvit::parse_score(name);
    } catch (const sylvit::Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message("rellu").find("did you mean relu?") != std::string::npos);
  CHECK(message("SoftMax").find("did you mean softmax?") != std::string::npos);
  CHECK(message("sigmiod").find("did you mean sigmoid?") != std::string::npos);
  for (const std::string_view name : {"", "rellu", "xyzzy", "relu "}) {
    CHECK(message(name).find("softmax, relu, relu2, gelu, gelu_tanh, softplus, identity, relu6, sigmoid, silu") !=
          std::string::npos);
  }
  CHECK(message("xyzzy").find("did you mean") == std::string::npos);
  CHECK(message(std::string(100'000, 'x')).size() < 300);
}

TEST_SUITE_END();
