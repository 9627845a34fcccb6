// sylvit self-check [--device D]: runs the basic kernels on every usable device (or one) and compares their results
// with the fp64 reference.
#include <sylvit/device.hpp>
#include <sylvit/error.hpp>

#include <cmath>
#include <fmt/core.h>

#include "cli/commands.hpp"
#include "cli/device_tensors.hpp"
#include "cli/timing.hpp"
#include "nn/basic.hpp"
#include "reference/basic.hpp"

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

class SelfCheck {
 public:
  explicit SelfCheck(Device device) : device_(std::move(device)), tensors_(device_, "the self-check") {}

  /// True if all is well.
  bool run() {
    constexpr std::size_t rows = 197;
    constexpr std::size_t columns = 385;
    const Shape shape{rows, columns};
    std::vector<float> values(rows * columns);
    // Multiples of 1/8 below 16 are exact in all three types, so that conversions must give back what went in.
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 37) % 127) / 8.0F;
    const std::vector<double> exact(values.begin(), values.end());
    const TensorView in = tensors_.upload(std::as_bytes(std::span(values)), DType::f32, shape);
    const TensorView out = tensors_.empty(DType::f32, shape);

    check("fill", 0, [&] {
      nn::fill(device_, out, 0.625F);
      return difference(download(out), std::vector<double>(values.size(), 0.625));
    });
    for (const DType dtype : {DType::bf16, DType::f16}) {
      if (dtype == DType::f16 && !device_.info().fp16) continue;
      check(fmt::format("convert {}", name_of(dtype)), 0, [&] {
        const TensorView narrow = tensors_.empty(dtype, shape);
        nn::convert(device_, in, narrow);
        nn::convert(device_, narrow, out);
        return difference(download(out), exact);
      });
    }
    check("reduce rows", 1e-5, [&] {
      const TensorView sums = tensors_.empty(DType::f32, Shape{rows});
      nn::reduce_rows(device_, in, sums);
      return difference(download(sums), reference::reduce_rows(exact, rows, columns));
    });
    check("transpose", 0, [&] {
      const TensorView turned = tensors_.empty(DType::f32, Shape{columns, rows});
      nn::transpose(device_, in, turned);
      return difference(download(turned), reference::transpose(exact, rows, columns));
    });
    return good_;
  }

 private:
  template <class Work>
  void check(const std::string& what, double bound, Work&& work) {
    double error = 0;
    const double ms = milliseconds([&] { error = work(); });
    const bool good = error <= bound;
    fmt::print("  {:<14} {:<6} error {:.1e}, bound {:.0e}, {:.1f} ms\n", what, good ? "ok" : "WRONG", error, bound, ms);
    good_ = good_ && good;
  }

  std::vector<double> download(const TensorView& view) const {
    const std::vector<float> values = tensors_.download(view);
    return {values.begin(), values.end()};
  }

  Device device_;
  DeviceTensors tensors_;
  bool good_ = true;
};

bool check_device(const std::string& selector) {
  const Device device = Device::open(selector);
  fmt::print("{} ({}, {})\n", device.name(), device.info().backend, device.info().toolchain);
  fmt::print("  kernels ready in {:.2f} s\n", milliseconds([&] { nn::prepare_basic(device); }) / 1000);
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
