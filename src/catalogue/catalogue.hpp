// Every kernel of the library: one line each. What a kernel is stands beside it (kernels/description.hpp); all that
// goes over kernels goes over this list: the records that tables may hold, the variants that are compiled ahead of
// time, the device-code check, the tuner.
#pragma once

#include "kernels/activation.hpp"
#include "kernels/attention_backward_head.hpp"
#include "kernels/attention_backward_partial.hpp"
#include "kernels/attention_backward_rows.hpp"
#include "kernels/attention_backward_split.hpp"
#include "kernels/attention_forward.hpp"
#include "kernels/attention_linear.hpp"
#include "kernels/column_sums.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/gemm.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/loss.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/tokens.hpp"

namespace sylvit::catalogue {

template <class... Descriptions>
struct List {};

// clang-format off
using AllKernels = List<kernels::AttentionForwardKernel,
                        kernels::AttentionBackwardHeadKernel,
                        kernels::AttentionBackwardQueriesKernel,
                        kernels::AttentionBackwardKeysKernel,
                        kernels::AttentionBackwardPartialKernel,
                        kernels::AttentionBackwardPartialSumKernel,
                        kernels::AttentionLinearSumKernel,
                        kernels::AttentionLinearProductKernel,
                        kernels::AttentionBackwardRowsKernel,
                        kernels::AttentionBackwardHeadSumsKernel,
                        kernels::LayerNormForwardKernel,
                        kernels::LayerNormBackwardKernel,
                        kernels::LayerNormParametersKernel,
                        kernels::ActivationBackwardKernel,
                        kernels::MultiplyKernel,
                        kernels::MultiplyBackwardKernel,
                        kernels::ColumnSumsKernel,
                        kernels::GemmPackKernel,
                        kernels::GemmKernel,
                        kernels::GemmEpilogueKernel,
                        kernels::FillKernel,
                        kernels::ConvertKernel,
                        kernels::PatchRowsKernel,
                        kernels::AssembleTokensKernel,
                        kernels::AssembleTokensBackwardKernel,
                        kernels::PoolAverageKernel,
                        kernels::PoolBackwardKernel,
                        kernels::SoftmaxCrossEntropyKernel,
                        kernels::SigmoidCrossEntropyKernel,
                        kernels::LossMeanKernel,
                        kernels::WindowSumKernel,
                        kernels::SquareSumsKernel,
                        kernels::WriteStepControlKernel,
                        kernels::AdamWKernel,
                        kernels::SgdKernel,
                        kernels::AverageKernel>;
// clang-format on

namespace detail {

template <class Use, class... Descriptions>
void for_each(const Use& use, List<Descriptions...> /*list*/) {
  (use.template operator()<Descriptions>(), ...);
}

}  // namespace detail

/// use.operator()<Description>() for each kernel.
template <class Use>
void for_each_kernel(const Use& use) {
  detail::for_each(use, AllKernels{});
}

}  // namespace sylvit::catalogue
