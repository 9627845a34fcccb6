#include "blas/builtin.hpp"

#include "runtime/counts.hpp"

namespace sylvit::blas {

namespace {

using runtime::divided_up;
using runtime::size;

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

/// Only the product itself depends on the epilogue.
BuiltinKernels kernels_for(const Device& device, const Product& product,
                           kernels::GemmEpilogueKind epilogue = kernels::GemmEpilogueKind::none) {
  return builtin_kernels(tuning::table_for(device), product.type, product.c_type, {epilogue, product.a.transposed},
                         product.n, product.k);
}

}  // namespace

kernels::GemmOutput output_of(const Gemm& gemm, const Product& product) {
  const std::size_t rows = gemm.c.shape().rank() - 2;
  const auto row_stride = [&](const TensorView& view) { return view ? view.stride(rows) : 0; };
  const auto batch_stride = [&](const TensorView& view) { return view && rows == 1 ? view.stride(0) : 0; };
  return {.c = product.c,
          .bias = gemm.bias.as<float>(),
          .residual = gemm.residual.data(),
          .kept = gemm.kept.data(),
          .c_stride = product.c_stride,
          .residual_stride = row_stride(gemm.residual),
          .kept_stride = row_stride(gemm.kept),
          .c_batch = product.c_batch,
          .residual_batch = batch_stride(gemm.residual),
          .kept_batch = batch_stride(gemm.kept),
          .alpha = product.alpha,
          .beta = product.beta,
          .epilogue = static_cast<int>(gemm.epilogue)};
}

std::size_t builtin_packed_bytes(const Device& device, const Product& product) {
  const kernels::GemmConfig config = kernels_for(device, product).config;
  return size(product.batch * panels_of(product, config) * config.width() * product.k) * sizeof(float);
}

sycl::event builtin_pack(const Device& device, const Product& product, void* packed, Events after) {
  const BuiltinKernels kernels = kernels_for(device, product);
  const kernels::GemmConfig& config = kernels.config;
  const std::int64_t panels = panels_of(product, config);
  const Factor& b = product.b;
  return runtime::launch(
      device, kernels.pack,
      {.groups = {size(product.batch), divided_up(panels, config.panels), divided_up(product.k, config.depth_block)},
       .work_items = size(config.lanes)},
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
  const BuiltinKernels kernels = kernels_for(device, product, static_cast<kernels::GemmEpilogueKind>(output.epilogue));
  const kernels::GemmConfig& config = kernels.config;
  const std::int64_t panels = panels_of(product, config);
  const std::int64_t of_group = group_panels(device, product, config);
  const Factor& a = product.a;
  return runtime::launch(
      device, kernels.multiply,
      {.groups = {size(product.batch), divided_up(panels, of_group), divided_up(product.m, config.row_block)},
       .work_items = size(config.work_items()),
       .local_floats = size(kernels.local_floats)},
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
  const EpilogueKernel epilogue = epilogue_kernel(tuning::table_for(device), product.c_type);
  kernels::GemmOutput behind = output;
  behind.alpha = 1.0F;  // the other library has seen to them
  behind.beta = 0.0F;
  return runtime::launch(device, epilogue.kernel,
                         {.groups = {size(product.batch), divided_up(product.m, epilogue.config.rows), 1},
                          .work_items = size(epilogue.config.work_items)},
                         {.output = behind, .m = static_cast<int>(product.m), .n = static_cast<int>(product.n)}, after);
}

}  // namespace sylvit::blas
