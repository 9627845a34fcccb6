// Attention inside an application that has its own queues, memory and oneMKL calls. Per step:
//
//     host → X → [oneMKL] QKV = X Wqkv → [sylvit] O = attention(QKV) → [oneMKL] Y = O Wo → host
//
// oneMKL and sylvit work on different queues of one context, one in-order and one out-of-order, and the copies on a
// third; nothing but events joins them, and the host waits once, for the last event of the last step. Every step is
// then checked against plain loops in double.
#include <sylvit/sylvit.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <oneapi/mkl/blas.hpp>
#include <random>
#include <vector>

namespace {

constexpr std::int64_t batch = 2, length = 50, heads = 3, head_size = 32, width = heads * head_size;
constexpr std::int64_t rows = batch * length;
constexpr int steps = 6;

using Numbers = std::vector<float>;

Numbers random_numbers(std::int64_t count, unsigned seed, float scale) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  Numbers result(static_cast<std::size_t>(count));
  std::ranges::generate(result, [&] { return normal(generator); });
  return result;
}

/// The application's device memory: plain USM, not sylvit's.
class Buffer {
 public:
  Buffer(std::int64_t count, const sycl::queue& queue)
      : queue_(queue), data_(sycl::malloc_device<float>(static_cast<std::size_t>(count), queue)) {
    if (data_ == nullptr) throw std::bad_alloc();
  }
  Buffer(const Numbers& values, sycl::queue& queue) : Buffer(static_cast<std::int64_t>(values.size()), queue) {
    queue.copy(values.data(), data_, values.size()).wait();
  }
  ~Buffer() { sycl::free(data_, queue_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  float* get() const { return data_; }

 private:
  sycl::queue queue_;
  float* data_;
};

sycl::event multiply(sycl::queue& queue, const float* a, const float* b, float* c, std::int64_t columns,
                     const sycl::event& after) {
  constexpr auto plain = oneapi::mkl::transpose::nontrans;
  return oneapi::mkl::blas::row_major::gemm(queue, plain, plain, rows, columns, width, 1.0F, a, width, b, columns, 0.0F,
                                            c, columns, {after});
}

/// The step in plain loops.
std::vector<double> expected(const Numbers& x, const Numbers& qkv_weights, const Numbers& out_weights) {
  const auto product = [](const auto& a, const Numbers& b, std::int64_t columns) {
    std::vector<double> c(static_cast<std::size_t>(rows * columns));
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t k = 0; k < width; ++k)
        for (std::int64_t j = 0; j < columns; ++j)
          c[static_cast<std::size_t>(i * columns + j)] +=
              static_cast<double>(a[static_cast<std::size_t>(i * width + k)]) *
              b[static_cast<std::size_t>(k * columns + j)];
    return c;
  };
  const std::vector<double> qkv = product(x, qkv_weights, 3 * width);
  const auto at = [&](int part, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
    return qkv[static_cast<std::size_t>((b * length + i) * 3 * width + part * width + h * head_size + c)];
  };
  std::vector<double> o(static_cast<std::size_t>(rows * width));
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < length; ++i)
        for (std::int64_t j = 0; j < length; ++j) {
          double s = 0;
          for (std::int64_t c = 0; c < head_size; ++c) s += at(0, b, h, i, c) * at(1, b, h, j, c);
          const double weight = std::max(0.0, s / std::sqrt(static_cast<double>(head_size))) / length;  // relu / L
          for (std::int64_t c = 0; c < head_size; ++c)
            o[static_cast<std::size_t>((b * length + i) * width + h * head_size + c)] += weight * at(2, b, h, j, c);
        }
  return product(o, out_weights, width);
}

/// Runs all steps with sylvit on one of the queues and oneMKL on the other; returns the largest relative error.
double run(sycl::queue products, sycl::queue attention_queue, sycl::queue copies) {
  const sylvit::Device device(attention_queue);
  const Numbers qkv_weights = random_numbers(width * 3 * width, 1, 0.1F);
  const Numbers out_weights = random_numbers(width * width, 2, 0.1F);
  const Buffer x(rows * width, products), qkv(rows * 3 * width, products), o(rows * width, products),
      y(rows * width, products);
  const Buffer w_qkv(qkv_weights, products), w_out(out_weights, products);

  // Q, K and V are slices of the product's rows: [batch, heads, length, head size] by strides.
  const auto heads_of = [](float* data, std::int64_t pitch) {
    return sylvit::TensorView(data, sylvit::DType::f32, {batch, heads, length, head_size},
                              {length * pitch, head_size, pitch, 1});
  };
  const sylvit::AttentionDescription relu{.score = sylvit::Score::relu};
  const sylvit::AttentionInputs inputs{.q = heads_of(qkv.get(), 3 * width),
                                       .k = heads_of(qkv.get() + width, 3 * width),
                                       .v = heads_of(qkv.get() + 2 * width, 3 * width)};
  sylvit::attention_prepare(device, relu, inputs, false);  // builds kernels now and not in the first step
  const sylvit::Memory workspace(device, sylvit::attention_forward_workspace(device, relu, inputs), "the workspace");

  std::vector<Numbers> in, out(steps, Numbers(static_cast<std::size_t>(rows * width)));
  for (int step = 0; step < steps; ++step)
    in.push_back(random_numbers(rows * width, 10U + static_cast<unsigned>(step), 1.0F));
  sycl::event last;
  for (std::size_t step = 0; step < steps; ++step) {
    const sycl::event written = copies.copy(in[step].data(), x.get(), in[step].size(), last);
    const sycl::event projected = multiply(products, x.get(), w_qkv.get(), qkv.get(), 3 * width, written);
    const sycl::event attended = sylvit::attention_forward(device, relu, inputs, heads_of(o.get(), width), {},
                                                           workspace.data(), {&projected, 1});
    const sycl::event finished = multiply(products, o.get(), w_out.get(), y.get(), width, attended);
    last = copies.copy(y.get(), out[step].data(), out[step].size(), finished);
  }
  last.wait_and_throw();

  double error = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::vector<double> wanted = expected(in[step], qkv_weights, out_weights);
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      largest = std::max(largest, std::abs(wanted[i]));
      difference = std::max(difference, std::abs(out[step][i] - wanted[i]));
    }
    error = std::max(error, difference / largest);
  }
  return error;
}

}  // namespace

int main() try {
  const sycl::device device{sycl::default_selector_v};
  const sycl::context context(device);
  const sycl::property_list in_order{sycl::property::queue::in_order()};
  const sycl::queue ordered(context, device, in_order), unordered(context, device), copies(context, device);
  constexpr double bound = 1e-4;
  bool good = true;
  const auto report = [&](const char* how, double error) {
    std::printf("%s: %d steps, largest relative error %.1e (bound %.0e)\n", how, steps, error, bound);
    good = good && error <= bound;
  };
  report("oneMKL out-of-order, sylvit in-order", run(unordered, ordered, copies));
  report("oneMKL in-order, sylvit out-of-order", run(ordered, unordered, copies));
  return good ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "pipeline: %s\n", error.what());
  return 1;
}
