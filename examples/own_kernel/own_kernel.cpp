// A kernel of the application's own between its data and sylvit's attention: rotary positions of q and k. Checked: the
// kernel against plain loops, and that attention then depends on how far tokens are apart, not on where they are.
#include <sylvit/sylvit.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <random>
#include <vector>

#include "rotary.hpp"

namespace {

constexpr std::int64_t heads = 2, length = 40, head_size = 32;

/// Turns the rows, after the event.
sycl::event rotate(const sylvit::Device& device, float* rows, const sycl::event& after) {
  const Rotary::Arguments arguments{.rows = rows, .width = head_size};
#if defined(SYLVIT_TOOLCHAIN_RTC)
  static const sylvit::OwnKernel<Rotary::Arguments> rotary("Rotary", sylvit::KernelSource::read(ROTARY_SOURCE));
  const sylvit::Grid grid{.groups = {1, heads, length}, .work_items = {1, 1, head_size / 2}};
  return rotary.launch(device, grid, arguments, {&after, 1});
#else
  // A compiler that makes device code needs no help.
  return device.queue().parallel_for(sycl::nd_range<3>({1, heads, length * head_size / 2}, {1, 1, head_size / 2}),
                                     after, [=](sycl::nd_item<3> item) { Rotary::run(arguments, item, nullptr); });
#endif
}

using Numbers = std::vector<float>;

/// `rows` tokens, all the same but for where they are.
Numbers repeated(const Numbers& token) {
  Numbers result;
  for (std::int64_t row = 0; row < heads * length; ++row) result.insert(result.end(), token.begin(), token.end());
  return result;
}

/// The largest difference from rotary positions in plain loops.
double error_of(const Numbers& got, const Numbers& token) {
  double error = 0;
  for (std::int64_t row = 0; row < heads * length; ++row)
    for (std::int64_t pair = 0; pair < head_size / 2; ++pair) {
      const auto at = static_cast<std::size_t>(pair), other = at + head_size / 2;
      const double angle = static_cast<double>(row % length) * std::pow(10000.0, -2.0 * pair / head_size);
      const double x = token[at] * std::cos(angle) - token[other] * std::sin(angle);
      const double y = token[other] * std::cos(angle) + token[at] * std::sin(angle);
      const float* there = &got[static_cast<std::size_t>(row * head_size)];
      error = std::max({error, std::abs(there[at] - x), std::abs(there[other] - y)});
    }
  return error;
}

}  // namespace

int main() try {
  const sylvit::Device device = sylvit::Device::open();
  sycl::queue& queue = device.queue();
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  Numbers token(head_size);
  std::ranges::generate(token, [&] { return normal(generator); });
  const Numbers tokens = repeated(token);
  const std::size_t bytes = tokens.size() * sizeof(float);
  const sylvit::Memory q(device, bytes, "q"), v(device, bytes, "v"), o(device, bytes, "o");
  Numbers values(tokens.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i / head_size % length) / static_cast<float>(length);  // a token's place

  queue.copy(values.data(), v.as<float>(), values.size());
  const sycl::event copied = queue.copy(tokens.data(), q.as<float>(), tokens.size());
  const sycl::event turned = rotate(device, q.as<float>(), copied);

  const auto view = [](const sylvit::Memory& memory) {
    return sylvit::TensorView(memory.data(), sylvit::DType::f32, {1, heads, length, head_size});
  };
  const sylvit::AttentionDescription relu{.score = sylvit::Score::relu};
  const sylvit::AttentionInputs inputs{.q = view(q), .k = view(q), .v = view(v)};
  const sylvit::Memory workspace(device, sylvit::attention_forward_workspace(device, relu, inputs), "scratch");
  sylvit::attention_forward(device, relu, inputs, view(o), {}, workspace.data(), {&turned, 1});

  Numbers rotated(tokens.size()), out(tokens.size());
  queue.copy(q.as<float>(), rotated.data(), rotated.size());
  queue.copy(o.as<float>(), out.data(), out.size());
  device.wait();
  const double error = error_of(rotated, token);
  // Each token sees the others by their distance: what the first sees ahead, the last sees behind, in the same order.
  // With the values' places counted from the other end, it is the same sum.
  double weights = 0, first = 0, last = 0;
  for (std::int64_t place = 0; place < length; ++place) {
    double score = 0;
    for (std::size_t c = 0; c < head_size; ++c)
      score += static_cast<double>(rotated[c]) * rotated[static_cast<std::size_t>(place * head_size) + c];
    const double weight = std::max(0.0, score / std::sqrt(static_cast<double>(head_size))) / length;
    weights += weight;
    first += weight * static_cast<double>(place) / length;
    last += weight * static_cast<double>(length - 1 - place) / length;
  }
  const double ahead = std::abs(out.front() - first);
  const double behind = std::abs(out[(length - 1) * head_size] - last);
  constexpr double bound = 1e-4;
  std::printf(
      "rotary positions: error %.1e; attention over them: %.1e from the front, %.1e from the back (bound %.0e)\n",
      error, ahead, behind, bound);
  return error <= bound && ahead <= bound && behind <= bound && weights > 0.1 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "own_kernel: %s\n", error.what());
  return 1;
}
