#include "nn/attention_kernels.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>

#include "nn/variants.hpp"
#include "tuning/configs.hpp"

namespace sylvit::nn {

namespace {

/// Head sizes that libraries compiled ahead of time hold; one in between uses the next, with zeros behind it. CMake's
/// SYLVIT_HEAD_SIZES chooses them.
constexpr std::array<std::int64_t, std::initializer_list<std::int64_t>{SYLVIT_HEAD_SIZES}.size()>
    head_sizes_ahead_of_time = {SYLVIT_HEAD_SIZES};

std::string_view class_of(Score score) { return score == Score::softmax ? "softmax" : "pointwise"; }

/// What an application's score is called where it is a template parameter.
constexpr std::string_view custom_functor = "CustomScore";

/// The functor in kernels/scores.hpp.
std::string functor_of(Score score) {
  switch (score) {
    case Score::softmax:
      return "Softmax";
    case Score::relu:
      return "Relu";
    case Score::relu2:
      return "Relu2";
    case Score::gelu:
      return "Gelu";
    case Score::gelu_tanh:
      return "GeluTanh";
    case Score::softplus:
      return "Softplus";
    case Score::identity:
      return "Identity";
    case Score::relu6:
      return "Relu6";
    case Score::sigmoid:
      return "Sigmoid";
    case Score::silu:
      return "Silu";
    case Score::custom:
      return std::string(custom_functor);
  }
  return {};
}

tuning::Case tuning_case(std::string_view kernel, const AttentionCase& wanted) {
  return {.kernel = kernel,
          .dtype = wanted.dtype,
          .score_class = class_of(wanted.score),
          .head_size = wanted.compiled_head_size,
          .length = wanted.keys};
}

}  // namespace

std::int64_t compiled_head_size(std::string_view toolchain, std::int64_t head_size) {
  if (toolchain == "rtc") return head_size;
  const auto found = std::ranges::lower_bound(head_sizes_ahead_of_time, head_size);
  if (found == head_sizes_ahead_of_time.end())
    throw Error("head size " + std::to_string(head_size) + " is larger than what this library was compiled for (" +
                    std::to_string(head_sizes_ahead_of_time.back()) + ")",
                "build it with a larger one in -DSYLVIT_HEAD_SIZES, or with -DSYLVIT_TOOLCHAIN=rtc");
  return *found;
}

std::int64_t largest_head_size(std::string_view toolchain) {
  return toolchain == "rtc" ? 256 : head_sizes_ahead_of_time.back();
}

ScoreFunctor::ScoreFunctor(Score score) : text(functor_of(score)) {}

ScoreFunctor::ScoreFunctor(const AttentionDescription& description) : ScoreFunctor(description.score) {
  if (description.score != Score::custom) return;
  custom = description.custom_score.code();
  text = custom->functor;
}

const tuning::Record& forward_record(const tuning::Table& table, const AttentionCase& wanted) {
  return table.find(tuning_case("attention_forward", wanted));
}

const tuning::Record& backward_record(const tuning::Table& table, const AttentionCase& wanted) {
  return table.find(tuning_case("attention_backward", wanted));
}

const tuning::Record& linear_record(const tuning::Table& table, const AttentionCase& wanted) {
  return table.find(tuning_case("attention_linear", wanted));
}

kernels::AttentionForwardConfig forward_config(const tuning::Record& record, std::int64_t head_size) {
  return checked(tuning::configs::attention_forward(record, head_size), record);
}

kernels::AttentionBackwardConfig backward_config(const tuning::Record& record, std::int64_t head_size) {
  return checked(tuning::configs::attention_backward(record, head_size), record);
}

kernels::AttentionLinearConfig linear_config(const tuning::Record& record, std::int64_t head_size) {
  return checked(tuning::configs::attention_linear(record, head_size), record);
}

kernels::AttentionBackwardRowsConfig backward_rows_config(const tuning::Table& table) {
  const tuning::Record& record = table.find({.kernel = "attention_backward_rows"});
  return checked(tuning::configs::attention_backward_rows(record), record);
}

kernels::AttentionBackwardHeadSumsConfig head_sums_config(const tuning::Table& table) {
  const tuning::Record& record = table.find({.kernel = "head_sums"});
  return checked(tuning::configs::head_sums(record), record);
}

BackwardCut backward_cut(const tuning::Record& record) {
  const int cut = record.number("cut");
  if (cut < 0 || cut > 2)
    throw Error("the tuning record for attention_backward has the cut " + std::to_string(cut) +
                "; there are 0 (head), 1 (split) and 2 (partial)");
  return static_cast<BackwardCut>(cut);
}

std::string text(const kernels::AttentionForwardConfig& config) {
  return config_text("AttentionForwardConfig",
                     {config.head_size, config.lanes, config.columns, config.rows, config.key_block, config.query_tiles,
                      config.sub_groups, config.resident});
}

std::string text(const kernels::AttentionBackwardConfig& config) {
  return config_text("AttentionBackwardConfig", {config.head_size, config.lanes, config.columns, config.rows,
                                                 config.query_block, config.key_block, config.sub_groups});
}

std::string text(const kernels::AttentionLinearConfig& config) {
  return config_text("AttentionLinearConfig", {config.head_size, config.lanes, config.columns, config.rows,
                                               config.row_block, config.stripe, config.sub_groups});
}

runtime::Kernel<kernels::AttentionForwardArguments> forward_kernel(const ScoreFunctor& score, DType dtype,
                                                                   const kernels::AttentionForwardConfig& config) {
  auto kernel = named<kernels::AttentionForwardArguments>(
      "attention_forward.hpp", "AttentionForwardArguments",
      "AttentionForward<" + score.text + ", " + type_text(dtype) + ", " + text(config) + ">", config.lanes, true);
  kernel.custom = score.custom;
  return kernel;
}

std::vector<runtime::Kernel<kernels::AttentionBackwardArguments>> backward_kernels(
    BackwardCut cut, const ScoreFunctor& score, DType dtype, const kernels::AttentionBackwardConfig& config) {
  // Those that compute scores need local memory; the sum of partial results needs neither.
  const auto kernel = [&](const char* header, const char* functor, bool takes_score) {
    std::string type(functor);
    type.append("<");
    if (takes_score) type.append(score.text).append(", ");
    type.append(type_text(dtype)).append(", ").append(text(config)).append(">");
    auto result = named<kernels::AttentionBackwardArguments>(header, "AttentionBackwardArguments", std::move(type),
                                                             config.lanes, takes_score);
    if (takes_score) result.custom = score.custom;
    return result;
  };
  switch (cut) {
    case BackwardCut::head:
      return {kernel("attention_backward_head.hpp", "AttentionBackwardHead", true)};
    case BackwardCut::split:
      return {kernel("attention_backward_split.hpp", "AttentionBackwardQueries", true),
              kernel("attention_backward_split.hpp", "AttentionBackwardKeys", true)};
    case BackwardCut::partial:
      return {kernel("attention_backward_partial.hpp", "AttentionBackwardPartial", true),
              kernel("attention_backward_partial.hpp", "AttentionBackwardPartialSum", false)};
  }
  return {};
}

runtime::Kernel<kernels::AttentionLinearSumArguments> linear_sum_kernel(DType dtype,
                                                                        const kernels::AttentionLinearConfig& config) {
  return named<kernels::AttentionLinearSumArguments>(
      "attention_linear.hpp", "AttentionLinearSumArguments",
      "AttentionLinearSum<" + type_text(dtype) + ", " + text(config) + ">", config.lanes, true);
}

runtime::Kernel<kernels::AttentionLinearProductArguments> linear_product_kernel(
    DType dtype, const kernels::AttentionLinearConfig& config) {
  return named<kernels::AttentionLinearProductArguments>(
      "attention_linear.hpp", "AttentionLinearProductArguments",
      "AttentionLinearProduct<" + type_text(dtype) + ", " + text(config) + ">", config.lanes, true);
}

runtime::Kernel<kernels::AttentionBackwardRowsArguments> backward_rows_kernel(
    DType dtype, const kernels::AttentionBackwardRowsConfig& config) {
  return named<kernels::AttentionBackwardRowsArguments>(
      "attention_backward_rows.hpp", "AttentionBackwardRowsArguments",
      "AttentionBackwardRows<" + type_text(dtype) + ", " +
          config_text("AttentionBackwardRowsConfig", {config.lanes, config.columns, config.rows}) + ">",
      config.lanes, true);
}

runtime::Kernel<kernels::AttentionBackwardHeadSumsArguments> head_sums_kernel(
    const kernels::AttentionBackwardHeadSumsConfig& config) {
  return named<kernels::AttentionBackwardHeadSumsArguments>(
      "attention_backward_rows.hpp", "AttentionBackwardHeadSumsArguments",
      "AttentionBackwardHeadSums<" + config_text("AttentionBackwardHeadSumsConfig", {config.items}) + ">", 0, true);
}

std::vector<CustomVariant> custom_score_variants(const tuning::Table& table) {
  std::vector<CustomVariant> result;
  for (const DType dtype : storage_types)
    for (const std::int64_t head_size : head_sizes_ahead_of_time) {
      const auto records = [&](std::string_view kernel) {
        return table.leading_to(tuning_case(kernel, {Score::custom, dtype, head_size, 1}));
      };
      for (const tuning::Record* record : records("attention_forward"))
        result.push_back({dtype, head_size, forward_kernel(Score::custom, dtype, forward_config(*record, head_size))});
      for (const tuning::Record* record : records("attention_backward"))
        for (const runtime::KernelName& kernel :
             backward_kernels(backward_cut(*record), Score::custom, dtype, backward_config(*record, head_size)))
          if (kernel.type.find(custom_functor) != std::string::npos) result.push_back({dtype, head_size, kernel});
    }
  return result;
}

std::vector<runtime::KernelName> attention_variants(const tuning::Table& table) {
  std::vector<runtime::KernelName> result{head_sums_kernel(head_sums_config(table))};
  for (const DType dtype : storage_types) {
    result.push_back(backward_rows_kernel(dtype, backward_rows_config(table)));
    for (const std::int64_t head_size : head_sizes_ahead_of_time) {
      // Every record that some length leads to.
      const auto records = [&](std::string_view kernel, Score score) {
        return table.leading_to(tuning_case(kernel, {score, dtype, head_size, 1}));
      };
      for (const tuning::Record* record : records("attention_linear", Score::identity)) {
        result.push_back(linear_sum_kernel(dtype, linear_config(*record, head_size)));
        result.push_back(linear_product_kernel(dtype, linear_config(*record, head_size)));
      }
      for (const Score score : all_scores) {
        for (const tuning::Record* record : records("attention_forward", score))
          result.push_back(forward_kernel(score, dtype, forward_config(*record, head_size)));
        for (const tuning::Record* record : records("attention_backward", score))
          for (const runtime::KernelName& kernel :
               backward_kernels(backward_cut(*record), score, dtype, backward_config(*record, head_size)))
            result.push_back(kernel);
      }
    }
  }
  return result;
}

}  // namespace sylvit::nn
