#include "nn/attention_choice.hpp"

namespace sylvit::nn {

tuning::Case AttentionQuery::of(std::string_view kernel) const {
  return {.kernel = kernel,
          .dtype = dtype,
          .score_class = class_of(score),
          .head_size = compiled_head_size,
          .length = keys};
}

BackwardCut backward_cut(const Device& device, const tuning::Record& record, std::int64_t heads_of_batch,
                         std::size_t key_blocks) {
  const auto cut = static_cast<BackwardCut>(record.number("cut"));
  // A head a work-group leaves units idle when there are few heads. The bits do not depend on the cut, so the batch may
  // decide. Only where any kernel can be built: ahead of time, the record's own cut is the one that is compiled in. And
  // only for few key blocks, since each has a dQ of its own.
  constexpr std::size_t most_partials = 8;
  if (cut == BackwardCut::head && heads_of_batch <= most_heads_for_partial_cut(device) && key_blocks > 1 &&
      key_blocks <= most_partials && device.info().toolchain == Toolchain::rtc)
    return BackwardCut::partial;
  return cut;
}

}  // namespace sylvit::nn
