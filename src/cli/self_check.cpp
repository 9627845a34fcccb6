// sylvit self-check [--device D]: runs conversions, a product, a norm and attention on every usable device (or one) and
// compares their results with the fp64 reference.
#include <sylvit/attention.hpp>
#include <sylvit/device.hpp>
#include <sylvit/error.hpp>
#include <sylvit/gemm.hpp>

#include <cmath>
#include <fmt/core.h>
#include <functional>

#include "bench/device_tensors.hpp"
#include "bench/timing.hpp"
#include "cli/commands.hpp"
#include "nn/basic.hpp"
#include "nn/layer_norm.hpp"
#include "reference/attention.hpp"
#include "reference/layer_norm.hpp"
#include "runtime/rehearsal.hpp"
#include "terminal/print.hpp"

namespace sylvit::cli {

namespace {

/// The largest difference, relative to the largest expected value.
double difference(const std::vector<double>& got, const std::vector<double>& expected) {
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error = std::max(error, std::isfinite(got[i]) ? std::abs(got[i] - expected[i]) : HUGE_VAL);
    size = std::max(size, std::abs(expected[i]));
  }
  return size > 0 ? error / size : error;
}

/// What the library is for, small: each check submits work to a device and compares what came out.
class SelfCheck {
 public:
  explicit SelfCheck(Device device) : device_(std::move(device)), tensors_(device_, "the self-check") {}

  /// True if all is well.
  bool run() {
    const double ms = milliseconds([&] { build(); });
    terminal::print("  kernels ready in {:.2f} s\n", ms / 1000);
    for (const Check& check : checks_) {
      double error = 0;
      const double taken = milliseconds([&] {
        check.submit(device_);
        error = check.error();
      });
      const bool good = error <= check.bound;
      terminal::print("  {:<18} {:<6} error {:.1e}, bound {:.0e}, {:.1f} ms\n", check.what, good ? "ok" : "WRONG",
                      error, check.bound, taken);
      good_ = good_ && good;
    }
    return good_;
  }

 private:
  struct Check {
    std::string what;
    double bound;
    std::function<void(const Device&)> submit;
    std::function<double()> error;
  };

  void build() {
    for (const DType dtype : {DType::bf16, DType::f16})
      if (dtype != DType::f16 || device_.info().fp16) add_convert(dtype);
    add_product();
    add_norm();
    for (const Score score : {Score::relu, Score::softmax}) add_attention(score);
    const runtime::Rehearsal rehearsal(device_);
    for (const Check& check : checks_) check.submit(rehearsal.device());
    runtime::prepare(device_, rehearsal.kernels());
  }

  void add_convert(DType dtype) {
    const TensorView in = input({rows, columns});
    const TensorView narrow = tensors_.empty(dtype, {rows, columns});
    const TensorView out = tensors_.empty(DType::f32, {rows, columns});
    checks_.push_back({fmt::format("convert {}", name_of(dtype)), 0,
                       [=](const Device& device) {
                         nn::convert(device, in, narrow);
                         nn::convert(device, narrow, out);
                       },
                       [=, this] { return difference(download(out), values(rows * columns)); }});
  }

  void add_product() {
    Gemm product{
        .a = input({rows, columns}), .b = input({columns, rows}), .c = tensors_.empty(DType::f32, {rows, rows})};
    void* packed = scratch(gemm_workspace(device_, product));
    checks_.push_back({"product", 1e-5, [=](const Device& device) { gemm(device, product, packed); },
                       [=, this] {
                         const std::vector<double> a = values(rows * columns);
                         std::vector<double> expected(rows * rows);
                         for (std::int64_t i = 0; i < rows; ++i)
                           for (std::int64_t k = 0; k < columns; ++k)
                             reference::add_scaled(std::span(expected).subspan(index(i * rows), index(rows)),
                                                   a[index(i * columns + k)],
                                                   std::span(a).subspan(index(k * rows), index(rows)));
                         return difference(download(product.c), expected);
                       }});
  }

  void add_norm() {
    constexpr float epsilon = 1e-6F;
    const TensorView in = input({rows, columns});
    const TensorView out = tensors_.empty(DType::f32, {rows, columns});
    checks_.push_back(
        {"layer norm", 1e-5, [=](const Device& device) { nn::layer_norm_forward(device, in, {}, {}, epsilon, out); },
         [=, this] {
           return difference(download(out), reference::layer_norm(values(rows * columns), index(rows), {}, epsilon));
         }});
  }

  /// Both passes; the largest of the four errors.
  void add_attention(Score score) {
    const Shape shape{1, 2, length, head_size};
    // Scores of a size that models have.
    constexpr float scale = 1.0F / 256;
    const AttentionDescription description{.score = score, .scale = scale};
    const AttentionInputs inputs{.q = input(shape), .k = input(shape), .v = input(shape)};
    const AttentionGradients gradients{.q = tensors_.empty(DType::f32, shape),
                                       .k = tensors_.empty(DType::f32, shape),
                                       .v = tensors_.empty(DType::f32, shape)};
    const TensorView o = tensors_.empty(DType::f32, shape);
    const TensorView lse = score == Score::softmax ? tensors_.empty(DType::f32, {1, 2, length}) : TensorView();
    const TensorView o_gradient = input(shape);
    void* memory = scratch(std::max(attention_forward_workspace(device_, description, inputs),
                                    attention_backward_workspace(device_, description, inputs, gradients)));
    checks_.push_back({fmt::format("attention {}", name_of(score)), 1e-5,
                       [=](const Device& device) {
                         attention_forward(device, description, inputs, o, lse, memory);
                         attention_backward(device, description, inputs, o, lse, o_gradient, gradients, memory);
                       },
                       [=, this] {
                         const std::vector<double> all = values(shape.elements());
                         reference::AttentionProblem problem;
                         problem.shape = {1, 2, 2, length, length, head_size};
                         problem.score = score;
                         problem.scale = scale;
                         problem.q = problem.k = problem.v = all;
                         const auto expected = reference::attention_backward(problem, all);
                         return std::max({difference(download(o), reference::attention_forward(problem).o),
                                          difference(download(gradients.q), expected.q),
                                          difference(download(gradients.k), expected.k),
                                          difference(download(gradients.v), expected.v)});
                       }});
  }

  static constexpr std::int64_t rows = 67, columns = 133, length = 59, head_size = 32;

  static std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

  /// Multiples of 1/8 below 8 in size are exact in all three types, so that conversions must give back what went in.
  static std::vector<double> values(std::int64_t count) {
    std::vector<double> result(index(count));
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = (static_cast<double>((i * 37) % 127) - 63) / 8;
    return result;
  }

  TensorView input(const Shape& shape) {
    const std::vector<double> exact = values(shape.elements());
    const std::vector<float> rounded(exact.begin(), exact.end());
    return tensors_.upload(std::as_bytes(std::span(rounded)), DType::f32, shape);
  }

  void* scratch(std::size_t bytes) {
    return tensors_.empty(DType::f32, {static_cast<std::int64_t>(bytes / sizeof(float) + 1)}).data();
  }

  std::vector<double> download(const TensorView& view) const {
    const std::vector<float> result = tensors_.download(view);
    return {result.begin(), result.end()};
  }

  Device device_;
  DeviceTensors tensors_;
  std::vector<Check> checks_;
  bool good_ = true;
};

bool check_device(const std::string& selector) {
  const Device device = Device::open(selector);
  terminal::print("{} ({}, {})\n", device.name(), name_of(device.info().backend), name_of(device.info().toolchain));
  return SelfCheck(device).run();
}

}  // namespace

void add_self_check(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("self-check", "Run attention, a product and a norm, and compare with the reference");
  auto selector = std::make_shared<std::string>();
  command->add_option("--device", *selector, "Index, name part, backend or type (default: every usable device)");
  command->callback([selector] {
    bool good = true;
    int checked = 0;
    if (!selector->empty()) {
      good = check_device(*selector);
      ++checked;
    } else {
      for (const DeviceInfo& device : list_devices()) {
        if (!device.usable) {
          terminal::print("{}: not usable: {}\n", device.name, device.why);
          continue;
        }
        good = check_device(std::to_string(device.index)) && good;
        ++checked;
      }
    }
    if (checked == 0) throw Error("there is no usable device to check", "see 'sylvit devices'");
    if (!good) throw Error("a device computes wrong results", "see the lines marked WRONG above; do not use it");
  });
}

}  // namespace sylvit::cli
