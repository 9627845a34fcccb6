#include "blas/builtin.hpp"

#include "runtime/counts.hpp"

namespace sylvit::blas {

namespace {

using runtime::divided_up;
using runtime::size;

std::int64_t panels_of(const Product& product, const kernels::GemmConfig& config) {
  return static_cast<std::int64_t>(divided_up(product.n, config.width()));
}

BuiltinKernels kernels_for(const Device& device, const Product& product) {
  return builtin_kernels(tuning::table_for(device), product.type, product.c_type, product.n, product.k);
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
  const BuiltinKernels kernels = kernels_for(device, product);
  const kernels::GemmConfig& config = kernels.config;
  const std::int64_t panels = panels_of(product, config);
  const Factor& a = product.a;
  return runtime::launch(
      device, kernels.multiply,
      {.groups = {size(product.batch), divided_up(product.m, config.row_block), divided_up(panels, config.panels)},
       .work_items = size(config.work_items()),
       .local_floats = size(config.local_floats())},
      {.a = a.data,
       .packed = static_cast<const float*>(packed),
       .a_stride = a.stride,
       .a_batch = a.batch_stride,
       .output = output,
       .m = static_cast<int>(product.m),
       .n = static_cast<int>(product.n),
       .k = static_cast<int>(product.k),
       .total_panels = static_cast<int>(panels),
       .transposed = a.transposed ? 1 : 0},
      after);
}

sycl::event run_epilogue(const Device& device, const Product& product, const kernels::GemmOutput& output,
                         Events after) {
  const EpilogueKernel epilogue = epilogue_kernel(tuning::table_for(device), product.c_type);
  return runtime::launch(device, epilogue.kernel,
                         {.groups = {size(product.batch), divided_up(product.m, epilogue.config.rows), 1},
                          .work_items = size(epilogue.config.work_items)},
                         {.output = output, .m = static_cast<int>(product.m), .n = static_cast<int>(product.n)}, after);
}

}  // namespace sylvit::blas
