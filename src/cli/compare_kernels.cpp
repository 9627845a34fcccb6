#include "cli/compare_kernels.hpp"

#include <sylvit/error.hpp>
#include <sylvit/gemm.hpp>

#include <algorithm>

#include "cli/ceiling.hpp"
#include "cli/compare_accuracy.hpp"
#include "cli/compare_gradients.hpp"
#include "nn/activation.hpp"
#include "nn/loss.hpp"
#include "nn/vit_kernels.hpp"
#include "nn/workspace.hpp"
#include "runtime/rehearsal.hpp"

namespace sylvit::cli::compare {

namespace {

class Kernels {
 public:
  explicit Kernels(const Device& device) : device_(device), rehearsal_(device) {}

  void add(const VitConfig& config, const VitOptions& options) {
    for (const runtime::KernelName& kernel : nn::vit_kernels(device_, config, options)) add(kernel);
  }

  void add_loss(const VitConfig& config, DType dtype, std::int64_t batch) {
    const TensorView losses = space_.take(DType::f32, {batch});
    nn::cross_entropy(rehearsal_.device(), space_.take(DType::f32, {batch, config.classes}),
                      space_.take(DType::i64, {batch}), losses, space_.take(DType::f32, {1}),
                      space_.take(dtype, {batch, config.classes}));
  }

  /// What compute and bandwidth are measured with.
  void add_ceilings(DType dtype) {
    const Shape square{Ceiling::size, Ceiling::size};
    Gemm product{.a = space_.take(dtype, square), .b = space_.take(dtype, square), .c = space_.take(dtype, square)};
    for (const std::string& provider : gemm_providers(device_, product)) {
      product.provider = provider;
      gemm(rehearsal_.device(), product, space_.take(gemm_workspace(device_, product)));
    }
    const Shape rows{1024, 4096};
    const TensorView out = space_.take(DType::f32, rows);
    nn::fill(rehearsal_.device(), out, 0.0F);
    nn::multiply(rehearsal_.device(), space_.take(DType::f32, rows), space_.take(DType::f32, rows), out);
  }

  std::vector<runtime::KernelName> take() {
    for (const runtime::KernelName& kernel : rehearsal_.kernels()) add(kernel);
    return std::move(kernels_);
  }

 private:
  void add(const runtime::KernelName& kernel) {
    const auto same = [&](const runtime::KernelName& other) {
      return other.type == kernel.type && other.sub_group_size == kernel.sub_group_size;
    };
    if (std::ranges::none_of(kernels_, same)) kernels_.push_back(kernel);
  }

  Device device_;
  runtime::Rehearsal rehearsal_;
  nn::Workspace space_{nullptr};  // addresses that are no memory
  std::vector<runtime::KernelName> kernels_;
};

}  // namespace

std::vector<runtime::KernelName> kernels_of(const Device& device, const Request& request,
                                            const std::vector<DType>& dtypes) {
  Kernels kernels(device);
  for (const DType dtype : dtypes) try {
      kernels.add_ceilings(dtype);
      for (const Model& model : request.models) {
        std::vector<std::int64_t> batches = request.sweep;
        batches.push_back(request.batch);
        batches.push_back(images_at_once(model));
        for (const std::int64_t batch : batches)
          kernels.add(model.config, {.dtype = dtype, .batch = batch, .constant = true});
        if (request.backward) {
          kernels.add(model.config, {.dtype = dtype, .batch = request.batch, .use = VitUse::training});
          kernels.add_loss(model.config, dtype, request.batch);
        }
        if (request.gradients == GradientsOf::none) continue;
        const Model differentiated = request.gradients == GradientsOf::tiny ? tiny_like(model) : model;
        kernels.add(differentiated.config, {.dtype = dtype, .batch = differentiated.judged, .use = VitUse::training});
        kernels.add_loss(differentiated.config, dtype, differentiated.judged);
      }
    } catch (const Error&) {
      continue;
    }
  return kernels.take();
}

}  // namespace sylvit::cli::compare
