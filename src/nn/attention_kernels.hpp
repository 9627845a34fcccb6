// Which attention kernels serve a case: the tuning record, the configuration made of it, and the variants' names.
// Shared by the layer (attention.cpp) and by the list of variants that are compiled ahead of time.
#pragma once

#include <sylvit/attention.hpp>
#include <sylvit/score.hpp>
#include <sylvit/tensor.hpp>

#include <cstdint>
#include <vector>

#include "kernels/attention_backward_head.hpp"
#include "kernels/attention_backward_partial.hpp"
#include "kernels/attention_backward_rows.hpp"
#include "kernels/attention_backward_split.hpp"
#include "kernels/attention_forward.hpp"
#include "kernels/attention_linear.hpp"
#include "runtime/kernel.hpp"
#include "tuning/table.hpp"

namespace sylvit::nn {

/// How the backward pass is cut into work-groups. The bits of the result do not depend on it.
enum class BackwardCut { head, split, partial };

/// The most heads, over a batch, of which a work-group each leaves compute units idle: then cut `head` may become
/// `partial`, which wants more memory.
inline std::int64_t most_heads_that_idle(const Device& device) { return device.info().compute_units - 1; }

/// The head size that kernels are compiled for: the head size itself where they are built at run time, else the next of
/// a few, so that a library does not hold thirty copies of everything.
std::int64_t compiled_head_size(std::string_view toolchain, std::int64_t head_size);

/// The largest head size that this library can run.
std::int64_t largest_head_size(std::string_view toolchain);

/// A score as the kernels know it: the functor's name, and where it comes from if it is not the library's own.
struct ScoreFunctor {
  ScoreFunctor(Score score);  // NOLINT(google-explicit-constructor): a score is one
  explicit ScoreFunctor(const AttentionDescription& description);

  std::string text;
  std::shared_ptr<const runtime::CustomCode> custom;
};

struct AttentionCase {
  Score score;
  DType dtype;
  std::int64_t compiled_head_size;
  std::int64_t keys;
};

const tuning::Record& forward_record(const tuning::Table& table, const AttentionCase& wanted);
const tuning::Record& backward_record(const tuning::Table& table, const AttentionCase& wanted);
const tuning::Record& linear_record(const tuning::Table& table, const AttentionCase& wanted);

kernels::AttentionForwardConfig forward_config(const tuning::Record& record, std::int64_t head_size);
kernels::AttentionBackwardConfig backward_config(const tuning::Record& record, std::int64_t head_size);
kernels::AttentionLinearConfig linear_config(const tuning::Record& record, std::int64_t head_size);
kernels::AttentionBackwardRowsConfig backward_rows_config(const tuning::Table& table);
kernels::AttentionBackwardHeadSumsConfig head_sums_config(const tuning::Table& table);
BackwardCut backward_cut(const tuning::Record& record);

std::string text(const kernels::AttentionForwardConfig& config);
std::string text(const kernels::AttentionBackwardConfig& config);
std::string text(const kernels::AttentionLinearConfig& config);

runtime::Kernel<kernels::AttentionForwardArguments> forward_kernel(const ScoreFunctor& score, DType dtype,
                                                                   const kernels::AttentionForwardConfig& config);
/// The kernels of a cut, in the order they run.
std::vector<runtime::Kernel<kernels::AttentionBackwardArguments>> backward_kernels(
    BackwardCut cut, const ScoreFunctor& score, DType dtype, const kernels::AttentionBackwardConfig& config);
runtime::Kernel<kernels::AttentionLinearSumArguments> linear_sum_kernel(DType dtype,
                                                                        const kernels::AttentionLinearConfig& config);
runtime::Kernel<kernels::AttentionLinearProductArguments> linear_product_kernel(
    DType dtype, const kernels::AttentionLinearConfig& config);
runtime::Kernel<kernels::AttentionBackwardRowsArguments> backward_rows_kernel(
    DType dtype, const kernels::AttentionBackwardRowsConfig& config);
runtime::Kernel<kernels::AttentionBackwardHeadSumsArguments> head_sums_kernel(
    const kernels::AttentionBackwardHeadSumsConfig& config);

/// The kernels of both passes over such inputs, for building them together with others.
std::vector<runtime::KernelName> attention_kernels_for(const Device& device, const AttentionDescription& description,
                                                       const AttentionInputs& inputs, bool backward);

/// The variants of a custom score that a table can lead to when compiled ahead of time; the score is called CustomScore
/// in their types.
struct CustomVariant {
  DType dtype;
  std::int64_t head_size;
  runtime::KernelName kernel;
};
std::vector<CustomVariant> custom_score_variants(const tuning::Table& table);

/// Every attention variant that a table can lead to when compiled ahead of time.
std::vector<runtime::KernelName> attention_variants(const tuning::Table& table);

}  // namespace sylvit::nn
