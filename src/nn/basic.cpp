#include "nn/basic.hpp"

#include "catalogue/kernel.hpp"
#include "kernels/elementwise.hpp"
#include "nn/tensor_checks.hpp"
#include "tuning/choice.hpp"

namespace sylvit::nn {

sycl::event fill(const Device& device, const TensorView& out, float value, Events after) {
  require(out.is_dense() && is_storage(out.dtype()), "fill", "a dense f32, bf16 or f16 tensor", out, out);
  const auto config = tuning::config_for<kernels::ElementwiseConfig>(tuning::table_for(device), out.dtype());
  const std::int64_t count = out.shape().elements();
  return launch(device, catalogue::kernel<kernels::FillKernel>(config, out.dtype()),
                {1, 1, divided_up(count, config.run())}, {.out = out.data(), .count = count, .value = value}, after);
}

sycl::event convert(const Device& device, const TensorView& in, const TensorView& out, Events after) {
  require(
      in.shape() == out.shape() && in.is_dense() && out.is_dense() && is_storage(in.dtype()) && is_storage(out.dtype()),
      "convert", "two dense f32, bf16 or f16 tensors of one shape", in, out);
  require(!in.overlaps(out), "convert", "two tensors that do not overlap", in, out);
  if (in.dtype() == out.dtype()) return runtime::copy(device, out.data(), in.data(), in.span_bytes(), after);
  const auto config = tuning::config_for<kernels::ElementwiseConfig>(tuning::table_for(device), in.dtype());
  const std::int64_t count = in.shape().elements();
  return launch(device, catalogue::kernel<kernels::ConvertKernel>(config, in.dtype(), out.dtype()),
                {1, 1, divided_up(count, config.run())}, {.in = in.data(), .out = out.data(), .count = count}, after);
}

}  // namespace sylvit::nn
