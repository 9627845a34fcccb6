// The numbers of a record as the configuration of its kernel, not yet judged: the one place that knows which number of
// a record is which member. Missing numbers throw Error.
#pragma once

#include "kernels/activation.hpp"
#include "kernels/attention_backward_config.hpp"
#include "kernels/attention_backward_rows.hpp"
#include "kernels/attention_forward.hpp"
#include "kernels/attention_linear.hpp"
#include "kernels/column_sums.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/gemm.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/loss.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/reduce.hpp"
#include "kernels/tokens.hpp"
#include "kernels/transpose.hpp"
#include "tuning/record.hpp"

namespace sylvit::tuning::configs {

inline kernels::AttentionForwardConfig attention_forward(const Record& record, std::int64_t head_size) {
  return {.head_size = static_cast<int>(head_size),
          .lanes = record.number("lanes"),
          .columns = record.number("columns"),
          .rows = record.number("rows"),
          .key_block = record.number("key_block"),
          .query_tiles = record.number("query_tiles"),
          .sub_groups = record.number("sub_groups"),
          .resident = record.number("resident")};
}

inline kernels::AttentionBackwardConfig attention_backward(const Record& record, std::int64_t head_size) {
  return {.head_size = static_cast<int>(head_size),
          .lanes = record.number("lanes"),
          .columns = record.number("columns"),
          .rows = record.number("rows"),
          .query_block = record.number("query_block"),
          .key_block = record.number("key_block"),
          .sub_groups = record.number("sub_groups")};
}

inline kernels::AttentionLinearConfig attention_linear(const Record& record, std::int64_t head_size) {
  return {.head_size = static_cast<int>(head_size),
          .lanes = record.number("lanes"),
          .columns = record.number("columns"),
          .rows = record.number("rows"),
          .row_block = record.number("row_block"),
          .stripe = record.number("stripe"),
          .sub_groups = record.number("sub_groups")};
}

inline kernels::AttentionBackwardRowsConfig attention_backward_rows(const Record& record) {
  return {record.number("lanes"), record.number("columns"), record.number("rows")};
}

inline kernels::AttentionBackwardHeadSumsConfig head_sums(const Record& record) { return {record.number("items")}; }

inline kernels::LayerNormConfig layer_norm(const Record& record) {
  return {record.number("lanes"), record.number("columns"), record.number("rows")};
}

inline kernels::ActivationConfig activation(const Record& record) {
  return {record.number("work_items"), record.number("columns"), record.number("rows")};
}

inline kernels::ColumnSumsConfig column_sums(const Record& record) {
  return {record.number("lanes"), record.number("columns")};
}

inline kernels::GemmConfig gemm(const Record& record) {
  return {.lanes = record.number("lanes"),
          .columns = record.number("columns"),
          .rows = record.number("rows"),
          .row_block = record.number("row_block"),
          .panels = record.number("panels"),
          .depth_block = record.number("depth_block"),
          .sub_groups = record.number("sub_groups")};
}

inline kernels::GemmEpilogueConfig gemm_epilogue(const Record& record) {
  return {record.number("work_items"), record.number("rows")};
}

inline kernels::ElementwiseConfig elementwise(const Record& record) {
  return {record.number("work_items"), record.number("per_item")};
}

inline kernels::ReduceRowsConfig reduce_rows(const Record& record) { return {record.number("work_items")}; }

inline kernels::TransposeConfig transpose(const Record& record) {
  return {record.number("tile"), record.number("rows")};
}

inline kernels::PatchRowsConfig patch_rows(const Record& record) {
  return {record.number("lanes"), record.number("columns"), record.number("segments")};
}

inline kernels::TokensConfig tokens(const Record& record) {
  return {record.number("lanes"), record.number("columns"), record.number("rows")};
}

inline kernels::LossConfig loss(const Record& record) { return {record.number("lanes"), record.number("columns")}; }

inline kernels::OptimizerConfig optimizer(const Record& record) {
  return {record.number("lanes"), record.number("columns"), record.number("steps")};
}

}  // namespace sylvit::tuning::configs
