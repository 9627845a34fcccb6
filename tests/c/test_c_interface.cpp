#include <sylvit/sylvit.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>

#include "reference/attention.hpp"
#include "support.hpp"
#include "vit/headless.hpp"

namespace {

using Numbers = std::vector<float>;

/// A device of the C interface, closed with the object.
class OpenDevice {
 public:
  OpenDevice() { REQUIRE(sylvit_device_open(nullptr, &device_) == SYLVIT_OK); }
  ~OpenDevice() { sylvit_device_close(device_); }
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;
  const sylvit_device* get() const { return device_; }

 private:
  sylvit_device* device_ = nullptr;
};

Numbers random_numbers(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Numbers values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

/// An attention, and random inputs for it.
struct Problem {
  sylvit_attention attention = SYLVIT_ATTENTION_INIT;
  Numbers q, k, v, o_gradient;

  explicit Problem(const sylvit_attention& wanted) : attention(wanted) {
    const std::int64_t keys = wanted.keys == 0 ? wanted.queries : wanted.keys;
    const std::int64_t kv_heads = wanted.kv_heads == 0 ? wanted.heads : wanted.kv_heads;
    q = random_numbers(wanted.batch * wanted.heads * wanted.queries * wanted.head_size, 1);
    o_gradient = random_numbers(static_cast<std::int64_t>(q.size()), 4);
    k = random_numbers(wanted.batch * kv_heads * keys * wanted.head_size, 2);
    v = random_numbers(static_cast<std::int64_t>(k.size()), 3);
  }

  /// The same for the reference.
  sylvit::reference::AttentionProblem reference() const {
    const auto doubles = [](const Numbers& values) { return std::vector<double>(values.begin(), values.end()); };
    sylvit::reference::AttentionProblem problem;
    problem.shape = {.batch = attention.batch,
                     .heads = attention.heads,
                     .kv_heads = attention.kv_heads == 0 ? attention.heads : attention.kv_heads,
                     .queries = attention.queries,
                     .keys = attention.keys == 0 ? attention.queries : attention.keys,
                     .head_size = attention.head_size};
    problem.score = sylvit::parse_score(attention.score == nullptr ? "softmax" : attention.score);
    problem.alpha = attention.alpha < 0 ? 1 : attention.alpha;
    if (attention.scale != 0) problem.scale = attention.scale;
    if (attention.divisor != 0) problem.divisor = attention.divisor;
    problem.causal = attention.causal != 0;
    problem.q = doubles(q);
    problem.k = doubles(k);
    problem.v = doubles(v);
    if (attention.lengths != nullptr) problem.lengths.assign(attention.lengths, attention.lengths + attention.batch);
    return problem;
  }
};

void check_near(const char* name, const Numbers& got, const std::vector<double>& expected) {
  double largest = 1e-3;
  double difference = 0;
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(static_cast<double>(got[i]) - expected[i]));
  }
  CAPTURE(name);
  CHECK(largest > 1e-2);
  CHECK(difference <= 1e-4 * largest);
}

void check_agrees(const sylvit_device* device, const sylvit_attention& attention) {
  const Problem problem(attention);
  const bool softmax = attention.score == nullptr;
  CAPTURE(softmax ? "softmax" : attention.score);
  Numbers o(problem.q.size()), dq(problem.q.size()), dk(problem.k.size()), dv(problem.k.size());
  Numbers lse(static_cast<std::size_t>(attention.batch * attention.heads * attention.queries));
  float* const sums = softmax ? lse.data() : nullptr;
  const float* const output = softmax ? o.data() : nullptr;
  REQUIRE(sylvit_attention_forward(device, &attention, problem.q.data(), problem.k.data(), problem.v.data(), o.data(),
                                   sums) == SYLVIT_OK);
  REQUIRE(sylvit_attention_backward(device, &attention, problem.q.data(), problem.k.data(), problem.v.data(), output,
                                    sums, problem.o_gradient.data(), dq.data(), dk.data(), dv.data()) == SYLVIT_OK);
  const auto reference = problem.reference();
  const auto expected = sylvit::reference::attention_forward(reference);
  const auto gradients = sylvit::reference::attention_backward(
      reference, std::vector<double>(problem.o_gradient.begin(), problem.o_gradient.end()));
  check_near("o", o, expected.o);
  if (softmax) check_near("lse", lse, expected.log_sum_exp);
  check_near("dq", dq, gradients.q);
  check_near("dk", dk, gradients.k);
  check_near("dv", dv, gradients.v);
}

sylvit_attention of_sizes(std::int64_t heads, std::int64_t queries, std::int64_t head_size) {
  sylvit_attention attention = SYLVIT_ATTENTION_INIT;
  attention.heads = heads;
  attention.queries = queries;
  attention.head_size = head_size;
  return attention;
}

/// The call failed so, and the sentence has these parts.
void check_failed(sylvit_status status, sylvit_status expected, std::initializer_list<std::string> parts) {
  const std::string sentence = sylvit_last_error();
  CAPTURE(sentence);
  CHECK(status == expected);
  CHECK(sentence.find('\n') == std::string::npos);
  for (const std::string& part : parts) CHECK(sentence.find(part) != std::string::npos);
}

}  // namespace

TEST_SUITE("c/c_interface") {
  TEST_CASE("attention over host memory agrees with the reference, forward and backward") {
    const OpenDevice device;
    check_agrees(device.get(), of_sizes(2, 33, 64));
    sylvit_attention attention = of_sizes(2, 33, 64);
    attention.score = "relu";
    check_agrees(device.get(), attention);
    // Everything that can be said, at once.
    const std::int32_t lengths[] = {40, 0, 17};
    attention = of_sizes(4, 30, 16);
    attention.batch = 3;
    attention.kv_heads = 2;
    attention.keys = 40;
    attention.score = "silu";
    attention.alpha = 0.5F;
    attention.divisor = 20;
    attention.scale = 0.3F;
    attention.causal = 1;
    attention.lengths = lengths;
    check_agrees(device.get(), attention);
  }

  TEST_CASE("a caller with an older header gets the defaults of what its struct has not") {
    const OpenDevice device;
    sylvit_attention attention = of_sizes(1, 20, 16);
    attention.score = "relu";
    attention.scale = 5;
    attention.causal = 1;
    attention.struct_size = offsetof(sylvit_attention, scale);
    const Problem problem(attention);
    Numbers o(problem.q.size());
    REQUIRE(sylvit_attention_forward(device.get(), &attention, problem.q.data(), problem.k.data(), problem.v.data(),
                                     o.data(), nullptr) == SYLVIT_OK);
    Problem plain = problem;
    plain.attention.scale = 0;
    plain.attention.causal = 0;
    check_near("o", o, sylvit::reference::attention_forward(plain.reference()).o);
  }

  TEST_CASE("a wrong call is a status and a sentence") {
    const OpenDevice device;
    const sylvit_attention good = of_sizes(1, 20, 16);
    const Problem problem(good);
    Numbers o(problem.q.size());
    Numbers lse(20);
    const float* const q = problem.q.data();
    float* const out = o.data();
    const auto forward = [&](const sylvit_attention& attention, float* sums = nullptr) {
      return sylvit_attention_forward(device.get(), &attention, q, q, q, out, sums);
    };
    const auto changed = [&](auto sylvit_attention::*member, auto value) {
      sylvit_attention attention = good;
      attention.*member = value;
      return forward(attention);
    };
    constexpr auto wrong = SYLVIT_INVALID_ARGUMENT;
    check_failed(sylvit_attention_forward(nullptr, &good, q, q, q, out, nullptr), wrong, {"device is null"});
    check_failed(sylvit_attention_forward(device.get(), nullptr, q, q, q, out, nullptr), wrong, {"attention is null"});
    check_failed(sylvit_attention_forward(device.get(), &good, q, nullptr, q, out, nullptr), wrong, {"k is null"});
    check_failed(sylvit_attention_forward(device.get(), &good, q, q, q, nullptr, nullptr), wrong, {"o is null"});
    check_failed(changed(&sylvit_attention::struct_size, std::size_t{0}), wrong, {"struct_size of the attention is 0"});
    check_failed(changed(&sylvit_attention::heads, std::int64_t{0}), wrong, {"heads is 0", "at least 1"});
    check_failed(changed(&sylvit_attention::keys, std::int64_t{-3}), wrong, {"keys is -3"});
    check_failed(changed(&sylvit_attention::kv_heads, std::int64_t{2}), SYLVIT_FAILED, {"2"});
    check_failed(changed(&sylvit_attention::head_size, std::int64_t{20}), SYLVIT_FAILED, {"20"});
    check_failed(changed(&sylvit_attention::queries, std::int64_t{1} << 60), SYLVIT_FAILED, {"1152921504606846976"});
    check_failed(changed(&sylvit_attention::score, "rlu"), SYLVIT_FAILED, {"rlu", "relu"});
    const std::int32_t too_long = 21;
    check_failed(changed(&sylvit_attention::lengths, &too_long), SYLVIT_FAILED, {"21", "20"});
    sylvit_attention relu = good;
    relu.score = "relu";
    check_failed(forward(relu, lse.data()), wrong, {"only softmax"});
    check_failed(sylvit_attention_backward(device.get(), &good, q, q, q, out, nullptr, q, out, out, out), wrong,
                 {"lse is null", "both"});
    check_failed(sylvit_attention_backward(device.get(), &good, q, q, q, out, lse.data(), nullptr, out, out, out),
                 wrong, {"o_gradient is null"});
    // The device is none the worse for it.
    CHECK(forward(good) == SYLVIT_OK);
  }

  TEST_CASE("a file without a head is refused by a sentence that says what to do") {
    const OpenDevice device;
    const sylvit::test::TemporaryDirectory directory;
    sylvit_model* model = nullptr;
    const sylvit_status status =
        sylvit_model_load(device.get(), sylvit::test::write_headless(directory).c_str(), nullptr, &model);
    check_failed(status, SYLVIT_FAILED, {"0 classes", "num_classes=1"});
    CHECK(model == nullptr);
  }
}
