// A score that sylvit does not know, added by the application: weights L^-1 · squareplus(q·k/√d). Output and gradients
// are checked against plain loops in double.
#include <sylvit/sylvit.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <random>
#include <vector>

#if defined(SYLVIT_TOOLCHAIN_RTC)
// Kernels are built while the program runs: the score is text.
#include "squareplus_text.hpp"

sylvit::CustomScore squareplus() { return {"Squareplus", squareplus_text}; }
#else
// Kernels are compiled with the application: the score is a type.
#include <sylvit/custom_score_type.hpp>

#include "squareplus.hpp"

sylvit::CustomScore squareplus() {
  constexpr sylvit::CustomScoreKernels kernels{.bf16 = false, .f16 = false, .head_size = 64};
  return sylvit::custom_score<Squareplus, kernels>("Squareplus");
}
#endif

namespace {

constexpr std::int64_t batch = 2, heads = 2, length = 70, head_size = 64;
constexpr std::int64_t count = batch * heads * length * head_size;

using Numbers = std::vector<float>;

/// Attention and its gradients, all [batch, heads, length, head size].
struct Expected {
  std::vector<double> o = zeros(), dq = zeros(), dk = zeros(), dv = zeros();

  static std::vector<double> zeros() { return std::vector<double>(static_cast<std::size_t>(count)); }

  Expected(const Numbers& q, const Numbers& k, const Numbers& v, const Numbers& o_gradient) {
    const double scale = 1 / std::sqrt(static_cast<double>(head_size));
    for (std::int64_t head = 0; head < batch * heads; ++head)
      for (std::int64_t i = 0; i < length; ++i)
        for (std::int64_t j = 0; j < length; ++j) {
          const auto at = [&](std::int64_t row) { return static_cast<std::size_t>((head * length + row) * head_size); };
          const std::size_t query = at(i), key = at(j);
          double dot = 0, weight_gradient = 0;
          for (std::size_t c = 0; c < head_size; ++c) {
            dot += static_cast<double>(q[query + c]) * k[key + c];
            weight_gradient += static_cast<double>(o_gradient[query + c]) * v[key + c];
          }
          const double s = scale * dot;
          const double root = std::sqrt(s * s + 4);
          const double weight = 0.5 * (s + root) / length;
          const double score_gradient = weight_gradient * (0.5 + 0.5 * s / root) / length * scale;
          for (std::size_t c = 0; c < head_size; ++c) {
            o[query + c] += weight * v[key + c];
            dv[key + c] += weight * o_gradient[query + c];
            dq[query + c] += score_gradient * k[key + c];
            dk[key + c] += score_gradient * q[query + c];
          }
        }
  }
};

class OnDevice {
 public:
  explicit OnDevice(const sylvit::Device& device, const Numbers& values = {})
      : device_(device), memory_(device, count * sizeof(float), "a tensor") {
    if (!values.empty()) device.queue().copy(values.data(), memory_.as<float>(), values.size()).wait();
  }
  sylvit::TensorView view() const { return {memory_.data(), sylvit::DType::f32, {batch, heads, length, head_size}}; }
  Numbers read() const {
    Numbers values(static_cast<std::size_t>(count));
    device_.queue().copy(memory_.as<float>(), values.data(), values.size()).wait();
    return values;
  }

 private:
  const sylvit::Device& device_;
  sylvit::Memory memory_;
};

Numbers random_numbers(unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Numbers result(static_cast<std::size_t>(count));
  std::ranges::generate(result, [&] { return normal(generator); });
  return result;
}

bool agree(const char* name, const Numbers& got, const std::vector<double>& wanted) {
  constexpr double bound = 4e-5;
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(wanted[i]));
    difference = std::max(difference, std::abs(got[i] - wanted[i]));
  }
  std::printf("%-3s relative error %.1e (bound %.0e)\n", name, difference / largest, bound);
  return difference <= bound * largest;
}

}  // namespace

int main() try {
  const sylvit::Device device = sylvit::Device::open();
  const Numbers q = random_numbers(1), k = random_numbers(2), v = random_numbers(3), o_gradient = random_numbers(4);
  const OnDevice q_there(device, q), k_there(device, k), v_there(device, v), o_gradient_there(device, o_gradient);
  const OnDevice o(device), dq(device), dk(device), dv(device);

  const sylvit::AttentionDescription description{.score = sylvit::Score::custom, .custom_score = squareplus()};
  const sylvit::AttentionInputs inputs{.q = q_there.view(), .k = k_there.view(), .v = v_there.view()};
  const sylvit::AttentionGradients gradients{.q = dq.view(), .k = dk.view(), .v = dv.view()};
  const std::size_t bytes = std::max(attention_forward_workspace(device, description, inputs),
                                     attention_backward_workspace(device, description, inputs, gradients));
  const sylvit::Memory workspace(device, bytes, "the workspace");
  const sycl::event forward = attention_forward(device, description, inputs, o.view(), {}, workspace.data());
  attention_backward(device, description, inputs, {}, {}, o_gradient_there.view(), gradients, workspace.data(),
                     {&forward, 1});
  device.wait();

  const Expected expected(q, k, v, o_gradient);
  bool good = agree("o", o.read(), expected.o);
  good = agree("dq", dq.read(), expected.dq) && good;
  good = agree("dk", dk.read(), expected.dk) && good;
  good = agree("dv", dv.read(), expected.dv) && good;
  return good ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "custom_score: %s\n", error.what());
  return 1;
}
