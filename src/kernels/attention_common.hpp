// What all attention kernels mean by strides and by lengths.
#pragma once

#include <cstdint>

namespace sylvit::kernels {

/// Where the rows of a [batch, head, row, channel] tensor lie, in elements. The channels of a row are contiguous.
struct AttentionStrides {
  std::int64_t batch;
  std::int64_t head;
  std::int64_t row;

  std::int64_t at(std::int64_t b, std::int64_t h) const { return b * batch + h * head; }
};

/// Keys that a sequence has. A length that makes no sense is clamped: it must not lead outside the tensors.
inline int keys_of(const std::int32_t* lengths, std::int64_t batch, int keys) {
  if (lengths == nullptr) return keys;
  const int length = lengths[batch];
  return length < 0 ? 0 : (length > keys ? keys : length);
}

}  // namespace sylvit::kernels
