#include "nn/activation.hpp"

#include <initializer_list>

#include "catalogue/kernel.hpp"
#include "kernels/activation.hpp"
#include "nn/tensor_checks.hpp"
#include "tuning/choice.hpp"

namespace sylvit::nn {

namespace {

/// The checks that all operations here share. Views that are left out are null.
void check(std::string_view operation, std::initializer_list<TensorView> inputs,
           std::initializer_list<TensorView> outputs) {
  const TensorView& like = *inputs.begin();
  const auto is_matrix = [&](const TensorView& view) {
    return view.shape().rank() == 2 && is_storage(view) && has_contiguous_rows(view) && fits_int(view.extent(1)) &&
           view.shape() == like.shape() && view.dtype() == like.dtype();
  };
  for (const auto& views : {inputs, outputs})
    for (const TensorView& view : views)
      require(!view || is_matrix(view), operation,
              "f32, bf16 or f16 tensors [rows, columns] of one shape and type with contiguous rows", view, like);
  for (const TensorView& output : outputs) {
    for (const TensorView& input : inputs)
      require(same_or_apart(output, input), operation, "outputs that are an input itself or apart from it", output,
              input);
    for (const TensorView& other : outputs)
      require(&other == &output || !output || !other || !output.overlaps(other), operation,
              "outputs apart from each other", output, other);
  }
}

void check_given(std::string_view operation, std::initializer_list<TensorView> needed) {
  for (const TensorView& view : needed)
    if (!view && view.shape() == Shape{0}) throw Error(std::string(operation) + " lacks a tensor that it needs");
}

template <class MakeKernel, class Arguments>
sycl::event launch_rows(const Device& device, DType dtype, const MakeKernel& kernel, const Arguments& arguments,
                        Events after) {
  const auto config = tuning::config_for<kernels::ActivationConfig>(tuning::table_for(device), dtype);
  return launch(device, kernel(config), {1, 1, divided_up(arguments.rows, config.rows)}, arguments, after);
}

}  // namespace

sycl::event gelu_backward(const Device& device, Gelu form, const TensorView& u, const TensorView& out_gradient,
                          const TensorView& u_gradient, const TensorView& out, Events after) {
  check_given("gelu_backward", {u, out_gradient, u_gradient});
  check("gelu_backward", {u, out_gradient}, {u_gradient, out});
  return launch_rows(
      device, u.dtype(),
      [&](const auto& config) { return catalogue::kernel<kernels::ActivationBackwardKernel>(config, form, u.dtype()); },
      kernels::ActivationBackwardArguments{.pre_activation = u.data(),
                                           .out_gradient = out_gradient.data(),
                                           .in_gradient = u_gradient.data(),
                                           .out = out.data(),
                                           .pre_activation_stride = u.stride(0),
                                           .out_gradient_stride = out_gradient.stride(0),
                                           .in_gradient_stride = u_gradient.stride(0),
                                           .out_stride = out.stride(0),
                                           .rows = u.extent(0),
                                           .columns = static_cast<int>(u.extent(1))},
      after);
}

sycl::event multiply(const Device& device, const TensorView& x, const TensorView& y, const TensorView& out,
                     Events after) {
  check_given("multiply", {x, y, out});
  check("multiply", {x, y}, {out});
  return launch_rows(
      device, x.dtype(),
      [&](const auto& config) { return catalogue::kernel<kernels::MultiplyKernel>(config, x.dtype()); },
      kernels::MultiplyArguments{.x = x.data(),
                                 .y = y.data(),
                                 .out = out.data(),
                                 .x_stride = x.stride(0),
                                 .y_stride = y.stride(0),
                                 .out_stride = out.stride(0),
                                 .rows = x.extent(0),
                                 .columns = static_cast<int>(x.extent(1))},
      after);
}

sycl::event multiply_backward(const Device& device, const TensorView& x, const TensorView& y,
                              const TensorView& out_gradient, const TensorView& x_gradient,
                              const TensorView& y_gradient, Events after) {
  check_given("multiply_backward", {x, y, out_gradient, x_gradient, y_gradient});
  check("multiply_backward", {x, y, out_gradient}, {x_gradient, y_gradient});
  return launch_rows(
      device, x.dtype(),
      [&](const auto& config) { return catalogue::kernel<kernels::MultiplyBackwardKernel>(config, x.dtype()); },
      kernels::MultiplyBackwardArguments{.x = x.data(),
                                         .y = y.data(),
                                         .out_gradient = out_gradient.data(),
                                         .x_gradient = x_gradient.data(),
                                         .y_gradient = y_gradient.data(),
                                         .x_stride = x.stride(0),
                                         .y_stride = y.stride(0),
                                         .out_gradient_stride = out_gradient.stride(0),
                                         .x_gradient_stride = x_gradient.stride(0),
                                         .y_gradient_stride = y_gradient.stride(0),
                                         .rows = x.extent(0),
                                         .columns = static_cast<int>(x.extent(1))},
      after);
}

}  // namespace sylvit::nn
