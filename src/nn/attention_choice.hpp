// Which tuning records serve an attention, and how its backward pass is cut.
#pragma once

#include <sylvit/attention.hpp>
#include <sylvit/device.hpp>

#include <cstdint>

#include "kernels/attention_backward_config.hpp"
#include "tuning/table.hpp"

namespace sylvit::nn {

using kernels::BackwardCut;

/// What is looked up in the tables.
struct AttentionQuery {
  Score score;
  DType dtype;
  std::int64_t compiled_head_size;
  std::int64_t keys;

  tuning::Case of(std::string_view kernel) const;
};

/// The most heads, over a batch, of which a work-group each leaves compute units idle: then cut `head` may become
/// `partial`, which wants more memory.
inline std::int64_t most_heads_for_partial_cut(const Device& device) { return device.info().compute_units - 1; }

/// The cut of such a backward pass: the record's, or one that keeps all units busy.
BackwardCut backward_cut(const Device& device, const tuning::Record& record, std::int64_t heads_of_batch,
                         std::size_t key_blocks);

}  // namespace sylvit::nn
