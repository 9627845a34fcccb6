#include "nn/basic.hpp"

#include <sylvit/error.hpp>

#include <string>

#include "nn/tensor_checks.hpp"
#include "nn/variants.hpp"
#include "runtime/rehearsal.hpp"

namespace sylvit::nn {

namespace {

void require(bool condition, const char* operation, const std::string& rule, const TensorView& in,
             const TensorView& out) {
  if (condition) return;
  throw Error(std::string(operation) + " needs " + rule + ", and was given " + std::string(name_of(in.dtype())) + " " +
              in.shape().text() + " and " + std::string(name_of(out.dtype())) + " " + out.shape().text());
}

const tuning::Record& record_for(const Device& device, std::string_view kernel, DType dtype) {
  return tuning::table_for(device).find({.kernel = kernel, .dtype = dtype});
}

}  // namespace

void prepare_basic(const Device& device) { runtime::prepare(device, basic_variants(tuning::table_for(device))); }

sycl::event fill(const Device& device, const TensorView& out, float value, Events after) {
  require(out.is_dense() && is_storage(out.dtype()), "fill", "a dense f32, bf16 or f16 tensor", out, out);
  const auto config = elementwise_config(record_for(device, "elementwise", out.dtype()));
  const std::int64_t count = out.shape().elements();
  return launch(
      device, fill_kernel(out.dtype(), config),
      {.groups = {1, 1, divided_up(count, config.run())}, .work_items = static_cast<std::size_t>(config.work_items)},
      {.out = out.data(), .count = count, .value = value}, after);
}

sycl::event convert(const Device& device, const TensorView& in, const TensorView& out, Events after) {
  require(
      in.shape() == out.shape() && in.is_dense() && out.is_dense() && is_storage(in.dtype()) && is_storage(out.dtype()),
      "convert", "two dense f32, bf16 or f16 tensors of one shape", in, out);
  require(!in.overlaps(out), "convert", "two tensors that do not overlap", in, out);
  if (in.dtype() == out.dtype())
    return runtime::is_rehearsal(device)
               ? sycl::event()
               : device.queue().memcpy(out.data(), in.data(), in.span_bytes(), {after.begin(), after.end()});
  const auto config = elementwise_config(record_for(device, "elementwise", in.dtype()));
  const std::int64_t count = in.shape().elements();
  return launch(
      device, convert_kernel(in.dtype(), out.dtype(), config),
      {.groups = {1, 1, divided_up(count, config.run())}, .work_items = static_cast<std::size_t>(config.work_items)},
      {.in = in.data(), .out = out.data(), .count = count}, after);
}

sycl::event reduce_rows(const Device& device, const TensorView& in, const TensorView& out, Events after) {
  require(in.shape().rank() == 2 && out.shape() == Shape{in.extent(0)} && is_storage(in.dtype()) &&
              out.dtype() == DType::f32 && out.is_dense() && has_contiguous_rows(in),
          "reduce_rows", "[rows, columns] with contiguous rows and a dense f32 [rows]", in, out);
  const auto config = reduce_rows_config(record_for(device, "reduce_rows", in.dtype()));
  return launch(device, reduce_rows_kernel(in.dtype(), config),
                {.groups = {1, 1, static_cast<std::size_t>(in.extent(0))},
                 .work_items = static_cast<std::size_t>(config.work_items),
                 .local_floats = static_cast<std::size_t>(config.local_floats())},
                {.in = in.data(),
                 .out = out.as<float>(),
                 .rows = in.extent(0),
                 .columns = in.extent(1),
                 .row_stride = in.stride(0)},
                after);
}

sycl::event transpose(const Device& device, const TensorView& in, const TensorView& out, Events after) {
  require(in.shape().rank() == 2 && out.shape().rank() == 2 && in.extent(0) == out.extent(1) &&
              in.extent(1) == out.extent(0) && in.dtype() == out.dtype() && is_storage(in.dtype()) &&
              has_contiguous_rows(in) && has_contiguous_rows(out),
          "transpose", "[rows, columns] and [columns, rows] of one type with contiguous rows", in, out);
  require(!in.overlaps(out), "transpose", "two tensors that do not overlap", in, out);
  const auto config = transpose_config(record_for(device, "transpose", in.dtype()));
  return launch(device, transpose_kernel(in.dtype(), config),
                {.groups = {1, divided_up(in.extent(0), config.tile), divided_up(in.extent(1), config.tile)},
                 .work_items = static_cast<std::size_t>(config.work_items()),
                 .local_floats = static_cast<std::size_t>(config.local_floats())},
                {.in = in.data(),
                 .out = out.data(),
                 .rows = in.extent(0),
                 .columns = in.extent(1),
                 .in_stride = in.stride(0),
                 .out_stride = out.stride(0)},
                after);
}

}  // namespace sylvit::nn
