#include "nn/tokens.hpp"

#include "catalogue/kernel.hpp"
#include "kernels/tokens.hpp"
#include "nn/tensor_checks.hpp"
#include "tuning/choice.hpp"

namespace sylvit::nn {

namespace {

sycl::event pool_backward(const Device& device, const TensorView& pooled_gradient, const TensorView& x_gradient,
                          std::int64_t begin, std::int64_t end, const char* operation, Events after) {
  require_storage(x_gradient, 3, operation, "gradient of the tokens");
  const std::int64_t batch = x_gradient.extent(0);
  const std::int64_t tokens = x_gradient.extent(1);
  const std::int64_t width = x_gradient.extent(2);
  require_dense(pooled_gradient, x_gradient.dtype(), {batch, width}, operation, "pooled gradient");
  require_apart(x_gradient, {pooled_gradient}, operation, "gradient of the tokens");
  if (end > tokens || begin >= end) throw Error(std::string(operation) + ": there are no tokens to pool");
  const auto config = tuning::config_for<kernels::TokensConfig>(tuning::table_for(device), x_gradient.dtype());
  return launch(device, catalogue::kernel<kernels::PoolBackwardKernel>(config, x_gradient.dtype()),
                {size(batch), divided_up(tokens, config.rows), 1},
                {.pooled_gradient = pooled_gradient.data(),
                 .gradient = x_gradient.data(),
                 .tokens = narrow(tokens, operation, "number of tokens"),
                 .width = narrow(width, operation, "width"),
                 .begin = static_cast<int>(begin),
                 .end = static_cast<int>(end),
                 .factor = 1.0F / static_cast<float>(end - begin)},
                after);
}

}  // namespace

sycl::event patch_rows(const Device& device, const TensorView& images, std::int64_t patch, const TensorView& rows,
                       Events after) {
  constexpr const char* operation = "patch_rows";
  if (images.shape().rank() != 4 || images.dtype() != DType::f32 || !images.is_dense())
    throw Error("patch_rows: the images must be a dense f32 [batch, channels, height, width], and are " +
                described(images));
  const std::int64_t batch = images.extent(0);
  const std::int64_t channels = images.extent(1);
  const std::int64_t height = images.extent(2);
  const std::int64_t width = images.extent(3);
  if (patch < 1 || height % patch != 0 || width % patch != 0)
    throw Error("patch_rows: images of " + std::to_string(height) + " x " + std::to_string(width) +
                " are not made of whole patches of " + std::to_string(patch));
  if (!is_storage(rows.dtype()))
    throw Error("patch_rows: the rows must be f32, bf16 or f16, and are " + described(rows));
  const std::int64_t grid_height = height / patch;
  require_dense(rows, rows.dtype(), {batch * grid_height * (width / patch), channels * patch * patch}, operation,
                "rows");
  require_apart(rows, {images}, operation, "rows");
  const auto config = tuning::config_for<kernels::PatchRowsConfig>(tuning::table_for(device), rows.dtype());
  return launch(device, catalogue::kernel<kernels::PatchRowsKernel>(config, rows.dtype()),
                {size(batch), size(grid_height), 1},
                {.images = images.as<float>(),
                 .rows = rows.data(),
                 .channels = narrow(channels, operation, "number of channels"),
                 .height = narrow(height, operation, "height"),
                 .width = narrow(width, operation, "width"),
                 .patch = narrow(patch, operation, "patch")},
                after);
}

sycl::event assemble_tokens(const Device& device, const TensorView& embedded, const TokenParameters& parameters,
                            const TensorView& tokens, Events after) {
  constexpr const char* operation = "assemble_tokens";
  require_storage(tokens, 3, operation, "tokens");
  const std::int64_t batch = tokens.extent(0);
  const std::int64_t count = tokens.extent(1);
  const std::int64_t width = tokens.extent(2);
  const bool class_token = static_cast<bool>(parameters.class_token);
  const std::int64_t patches = count - (class_token ? 1 : 0);
  if (patches < 0) throw Error("assemble_tokens: there is no room for the class token");
  require_dense(embedded, tokens.dtype(), {batch * patches, width}, operation, "embedded patches");
  const DType type = parameters.bias.dtype();
  if (type != DType::f32 && type != tokens.dtype())
    throw Error("assemble_tokens: the parameters must be f32 or of the tokens' type, and are " +
                std::string(name_of(type)));
  require_dense(parameters.bias, type, {width}, operation, "bias");
  require_dense(parameters.positions, type, {count, width}, operation, "positions");
  if (class_token) require_dense(parameters.class_token, type, {width}, operation, "class token");
  require_apart(tokens, {embedded, parameters.bias, parameters.positions, parameters.class_token}, operation, "tokens");
  const auto config = tuning::config_for<kernels::TokensConfig>(tuning::table_for(device), tokens.dtype());
  return launch(device, catalogue::kernel<kernels::AssembleTokensKernel>(config, tokens.dtype(), type),
                {size(batch), divided_up(count, config.rows), 1},
                {.embedded = embedded.data(),
                 .bias = parameters.bias.data(),
                 .positions = parameters.positions.data(),
                 .class_token = parameters.class_token.data(),
                 .out = tokens.data(),
                 .tokens = narrow(count, operation, "number of tokens"),
                 .width = narrow(width, operation, "width")},
                after);
}

sycl::event assemble_tokens_backward(const Device& device, const TensorView& tokens_gradient, bool class_token,
                                     const TokenGradients& gradients, Events after) {
  constexpr const char* operation = "assemble_tokens_backward";
  require_storage(tokens_gradient, 3, operation, "gradient of the tokens");
  const std::int64_t batch = tokens_gradient.extent(0);
  const std::int64_t count = tokens_gradient.extent(1);
  const std::int64_t width = tokens_gradient.extent(2);
  const std::int64_t skip = class_token ? 1 : 0;
  if (gradients.class_token && !class_token)
    throw Error("assemble_tokens_backward: a class token's gradient is wanted where there is no class token");
  if (count < skip) throw Error("assemble_tokens_backward: there is no class token");
  if (gradients.embedded)
    require_dense(gradients.embedded, tokens_gradient.dtype(), {batch * (count - skip), width}, operation,
                  "gradient of the embedded patches");
  if (gradients.positions)
    require_dense(gradients.positions, DType::f32, {count, width}, operation, "gradient of the positions");
  if (gradients.class_token)
    require_dense(gradients.class_token, DType::f32, {width}, operation, "gradient of the class token");
  require_apart(gradients.embedded, {tokens_gradient, gradients.positions, gradients.class_token}, operation,
                "gradient of the embedded patches");
  require_apart(gradients.positions, {tokens_gradient, gradients.class_token}, operation, "gradient of the positions");
  require_apart(gradients.class_token, {tokens_gradient}, operation, "gradient of the class token");
  const auto config = tuning::config_for<kernels::TokensConfig>(tuning::table_for(device), tokens_gradient.dtype());
  return launch(device, catalogue::kernel<kernels::AssembleTokensBackwardKernel>(config, tokens_gradient.dtype()),
                {1, divided_up(count, config.rows), divided_up(width, config.block())},
                {.gradient = tokens_gradient.data(),
                 .embedded_gradient = gradients.embedded.data(),
                 .positions_gradient = gradients.positions.as<float>(),
                 .class_gradient = gradients.class_token.as<float>(),
                 .batch = narrow(batch, operation, "batch"),
                 .tokens = narrow(count, operation, "number of tokens"),
                 .width = narrow(width, operation, "width"),
                 .skip = static_cast<int>(skip)},
                after);
}

sycl::event pool_average(const Device& device, const TensorView& x, bool class_token, const TensorView& pooled,
                         Events after) {
  constexpr const char* operation = "pool_average";
  require_storage(x, 3, operation, "tokens");
  const int skip = class_token ? 1 : 0;
  if (x.extent(1) <= skip) throw Error("pool_average: there are no tokens to pool");
  require_dense(pooled, x.dtype(), {x.extent(0), x.extent(2)}, operation, "mean");
  require_apart(pooled, {x}, operation, "mean");
  const auto config = tuning::config_for<kernels::TokensConfig>(tuning::table_for(device), x.dtype());
  return launch(device, catalogue::kernel<kernels::PoolAverageKernel>(config, x.dtype()),
                {size(x.extent(0)), 1, divided_up(x.extent(2), config.block())},
                {.in = x.data(),
                 .out = pooled.data(),
                 .tokens = narrow(x.extent(1), operation, "number of tokens"),
                 .width = narrow(x.extent(2), operation, "width"),
                 .skip = skip},
                after);
}

sycl::event pool_average_backward(const Device& device, const TensorView& pooled_gradient, bool class_token,
                                  const TensorView& x_gradient, Events after) {
  const std::int64_t tokens = x_gradient.shape().rank() == 3 ? x_gradient.extent(1) : 0;
  return pool_backward(device, pooled_gradient, x_gradient, class_token ? 1 : 0, tokens, "pool_average_backward",
                       after);
}

sycl::event pool_token_backward(const Device& device, const TensorView& pooled_gradient, const TensorView& x_gradient,
                                Events after) {
  return pool_backward(device, pooled_gradient, x_gradient, 0, 1, "pool_token_backward", after);
}

}  // namespace sylvit::nn
