// Rotary positions: each token's numbers are turned, two by two, by angles that grow with its place.
//
// This file is read twice: by the application's compiler, for the arguments, and as text by sylvit's run-time compiler.
#pragma once

#if !defined(SYLVIT_RUN_TIME_COMPILED)
#include <sycl/sycl.hpp>
#endif
#include <cstdint>

struct Rotary {
  struct Arguments {
    float* rows;         // [batch, heads, length, head size]
    std::int32_t width;  // the head size
  };

  /// A work-group for each row, groups (batch · heads, length), with a work-item for each pair.
  static void run(const Arguments& a, const sycl::nd_item<3>& item, float* /*local*/) {
    const std::int64_t place = item.get_group(2);
    const std::int64_t pair = item.get_local_id(2);
    float* row = a.rows + (item.get_group(1) * item.get_group_range(2) + place) * a.width;
    const float angle = place * sycl::exp2(-13.287712F * 2 * pair / a.width);  // 10000^(-2 pair / width)
    const float x = row[pair], y = row[pair + a.width / 2];
    row[pair] = x * sycl::cos(angle) - y * sycl::sin(angle);
    row[pair + a.width / 2] = y * sycl::cos(angle) + x * sycl::sin(angle);
  }
};
