// No DPC++ compiler driver comes with the wheels, so the dpcpp toolchain cannot be run in CI. Its sources are compiled
// here as host code instead (with SYLVIT_TOOLCHAIN_DPCPP and the same SYCL headers): names, types and signatures are
// checked, device code is not.
#include "kernels/attention_backward_head.hpp"
#include "kernels/attention_forward.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/loss.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/probe.hpp"
#include "kernels/tokens.hpp"
#include "runtime/ahead_of_time.hpp"

namespace sylvit::runtime {

void add_all_variants(Variants& variants) {
  using namespace kernels;
  variants["Probe"] = launch_variant<Probe, 0, true>;
  variants["LayerNorm"] = launch_variant<LayerNormForward<bf16, LayerNormConfig{8, 2, 4}>, 8, true>;
  variants["PatchRows"] = launch_variant<PatchRows<f16, PatchRowsConfig{8, 2, 1, 8}>, 8, false>;
  variants["Loss"] = launch_variant<SoftmaxCrossEntropy<float, bf16, LossConfig{8, 2, 8}>, 8, true>;
  variants["AdamW"] = launch_variant<AdamW<bf16, OptimizerConfig{8, 2, 512, 8}>, 8, false>;
  variants["Forward"] =
      launch_variant<AttentionForward<Relu, float, AttentionForwardConfig{64, 8, 2, 6, 96, 4, 1, 0}>, 8, true>;
  variants["Backward"] =
      launch_variant<AttentionBackwardHead<Softmax, f16, AttentionBackwardConfig{64, 8, 2, 6, 48, 112, 1}>, 8, true>;
}

}  // namespace sylvit::runtime
