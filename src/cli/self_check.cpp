// sylvit self-check [--device D]: runs the basic kernels on every usable device (or one) and compares their results
// with the fp64 reference.
#include <sylvit/device.hpp>
#include <sylvit/error.hpp>
#include <sylvit/memory.hpp>

#include <chrono>
#include <cmath>
#include <cstring>
#include <fmt/core.h>
#include <numeric>

#include "cli/commands.hpp"
#include "nn/basic.hpp"
#include "reference/basic.hpp"

namespace sylvit::cli {

namespace {

/// Device memory with the type and shape it was made for.
struct DeviceTensor {
  Memory memory;
  TensorView view;

  DeviceTensor(const Device& device, DType dtype, const Shape& shape)
      : memory(device, static_cast<std::size_t>(shape.elements()) * size_of(dtype), "the self-check"),
        view(memory.data(), dtype, shape) {}
};

std::vector<double> download(const Device& device, const TensorView& view) {
  std::vector<float> values(static_cast<std::size_t>(view.shape().elements()));
  device.queue().memcpy(values.data(), view.data(), values.size() * sizeof(float));
  device.wait();
  return {values.begin(), values.end()};
}

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

class SelfCheck {
 public:
  explicit SelfCheck(const Device& device) : device_(device) {}

  /// True if all is well.
  bool run() {
    constexpr std::size_t rows = 197;
    constexpr std::size_t columns = 385;
    const Shape shape{rows, columns};
    std::vector<float> values(rows * columns);
    // Multiples of 1/8 below 16 are exact in all three types, so that conversions must give back what went in.
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 37) % 127) / 8.0F;
    const std::vector<double> exact(values.begin(), values.end());
    DeviceTensor in(device_, DType::f32, shape);
    DeviceTensor out(device_, DType::f32, shape);
    device_.queue().memcpy(in.view.data(), values.data(), values.size() * sizeof(float));

    check("fill", 0, [&] {
      nn::fill(device_, out.view, 0.625F);
      return difference(download(device_, out.view), std::vector<double>(values.size(), 0.625));
    });
    for (const DType dtype : {DType::bf16, DType::f16})
      check(fmt::format("convert {}", name_of(dtype)), 0, [&] {
        DeviceTensor narrow(device_, dtype, shape);
        nn::convert(device_, in.view, narrow.view);
        nn::convert(device_, narrow.view, out.view);
        return difference(download(device_, out.view), exact);
      });
    check("reduce rows", 1e-5, [&] {
      DeviceTensor sums(device_, DType::f32, Shape{rows});
      nn::reduce_rows(device_, in.view, sums.view);
      return difference(download(device_, sums.view), reference::reduce_rows(exact, rows, columns));
    });
    check("transpose", 0, [&] {
      DeviceTensor turned(device_, DType::f32, Shape{columns, rows});
      nn::transpose(device_, in.view, turned.view);
      return difference(download(device_, turned.view), reference::transpose(exact, rows, columns));
    });
    return good_;
  }

 private:
  template <class Work>
  void check(const std::string& what, double bound, Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    const double error = work();
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const bool good = error <= bound;
    fmt::print("  {:<14} {:<6} error {:.1e}, bound {:.0e}, {:.1f} ms\n", what, good ? "ok" : "WRONG", error, bound, ms);
    good_ = good_ && good;
  }

  Device device_;
  bool good_ = true;
};

bool check_device(const std::string& selector) {
  const Device device = Device::open(selector);
  fmt::print("{} ({}, {})\n", device.name(), device.info().backend, device.info().toolchain);
  const auto start = std::chrono::steady_clock::now();
  nn::prepare_basic(device);
  fmt::print("  kernels ready in {:.2f} s\n",
             std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return SelfCheck(device).run();
}

}  // namespace

void add_self_check(CLI::App& program) {
  CLI::App* command = program.add_subcommand("self-check", "Run the basic kernels and compare with the reference");
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
          fmt::print("{}: not usable: {}\n", device.name, device.why);
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
