#include "blas/builtin.hpp"

#include "base/counts.hpp"
#include "catalogue/kernel.hpp"
#include "tuning/choice.hpp"

namespace sylvit::blas {

namespace {

using base::divided_up;
using base::size;

std::int64_t panels_of(const Product& product, const kernels::GemmConfig& config) {
  return static_cast<std::int64_t>(divided_up(product.n, config.width()));
}

/// Panels of a work-group: the record's, or fewer where that gives the units too little to share. Rows of C have the
/// same bits either way.
std::int64_t group_panels(const Device& device, const Product& product, const kernels::GemmConfig& config) {
  constexpr std::int64_t groups_of_unit = 16;  // then the last to end leaves the others idle for a few per cent
  const auto row_blocks = product.batch * static_cast<std::int64_t>(divided_up(product.m, config.row_block));
  const std::int64_t wanted = groups_of_unit * device.info().compute_units;
  std::int64_t panels = config.panels;
  while (panels > 1 && row_blocks * static_cast<std::int64_t>(divided_up(panels_of(product, config), panels)) < wanted)
    panels = (panels + 1) / 2;
  return panels;
}

/// The number of rows has no say: rows must not depend on it, nor may the form of packed weights.
kernels::GemmConfig config_for(const Device& device, const Product& product) {
  return tuning::config_of<kernels::GemmConfig>(tuning::table_for(device).find(
      {.kernel = kernels::GemmConfig::record, .dtype = product.type, .n = product.n, .k = product.k}));
}

}  // namespace

kernels::GemmOutput output_of(const Gemm& gemm, const Product& product) {
  const std::size_t rows = gemm.c.shape().rank() - 2;
  const auto row_stride = [&](const TensorView& view) { return view ? view.stride(rows) : 0; };
  const auto batch_stride = [&](const TensorView& view) { return view && rows == 1 ? view.stride(0) : 0; };
  return {.c = product.c,
          .bias = gemm.bias.as<float>(),
          .residual = gemm.residual.data(),
          .pre_activation = gemm.pre_activation.data(),
          .c_stride = product.c_stride,
          .residual_stride = row_stride(gemm.residual),
          .pre_activation_stride = row_stride(gemm.pre_activation),
          .c_batch = product.c_batch,
          .residual_batch = batch_stride(gemm.residual),
          .pre_activation_batch = batch_stride(gemm.pre_activation),
          .alpha = product.alpha,
          .beta = product.beta,
          .epilogue = static_cast<int>(gemm.epilogue)};
}

std::size_t builtin_packed_bytes(const Device& device, const Product& product) {
  const kernels::GemmConfig config = config_for(device, product);
  return size(product.batch * panels_of(product, config) * config.width() * product.k) * sizeof(float);
}

sycl::event builtin_pack(const Device& device, const Product& product, void* packed, Events after) {
  const kernels::GemmConfig config = config_for(device, product);
  const std::int64_t panels = panels_of(product, config);
  const Factor& b = product.b;
  return runtime::launch(
      device, catalogue::kernel<kernels::GemmPackKernel>(config, product.type),
      {size(product.batch), divided_up(panels, config.panels), divided_up(product.k, config.depth_block)},
      {.b = b.data,
       .packed = static_cast<float*>(packed),
       .row_stride = b.transposed ? 1 : b.stride,
       .column_stride = b.transposed ? b.stride : 1,
       .batch_stride = b.batch_stride,
       .n = static_cast<int>(product.n),
       .k = static_cast<int>(product.k),
       .total_panels = static_cast<int>(panels)},
      after);
}

sycl::event builtin_gemm(const Device& device, const Product& product, const kernels::GemmOutput& output,
                         const void* packed, Events after) {
  const kernels::GemmConfig config = config_for(device, product);
  const kernels::GemmForm form{static_cast<kernels::GemmEpilogueKind>(output.epilogue), product.a.transposed};
  const std::int64_t panels = panels_of(product, config);
  const std::int64_t of_group = group_panels(device, product, config);
  const Factor& a = product.a;
  return runtime::launch(device, catalogue::kernel<kernels::GemmKernel>(config, product.type, product.c_type, form),
                         {size(product.batch), divided_up(panels, of_group), divided_up(product.m, config.row_block)},
                         {.a = a.data,
                          .packed = static_cast<const float*>(packed),
                          .a_stride = a.stride,
                          .a_batch = a.batch_stride,
                          .output = output,
                          .m = static_cast<int>(product.m),
                          .n = static_cast<int>(product.n),
                          .k = static_cast<int>(product.k),
                          .total_panels = static_cast<int>(panels),
                          .group_panels = static_cast<int>(of_group)},
                         after);
}

sycl::event run_epilogue(const Device& device, const Product& product, const kernels::GemmOutput& output,
                         Events after) {
  const auto config = tuning::config_for<kernels::GemmEpilogueConfig>(tuning::table_for(device), product.c_type);
  kernels::GemmOutput finished = output;
  finished.alpha = 1.0F;  // the other library has seen to them
  finished.beta = 0.0F;
  return runtime::launch(device, catalogue::kernel<kernels::GemmEpilogueKernel>(config, product.c_type),
                         {size(product.batch), divided_up(product.m, config.rows), 1},
                         {.output = finished, .m = static_cast<int>(product.m), .n = static_cast<int>(product.n)},
                         after);
}

}  // namespace sylvit::blas
