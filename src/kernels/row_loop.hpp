// How the work-items of a group walk along a row: neighbouring lanes take neighbouring columns, and a lane takes
// `columns` of its columns at a time.
//
//     | 0 1 … w-1 | 0 1 … w-1 | … | 0 1 … w-1 | 0 1 … w-1 | 0 1 …
//     |<-- columns x lanes -->|   |<- lanes ->|           |<- the rest, the only place where a lane may be idle
#pragma once

#include "kernels/sycl.hpp"

namespace sylvit::kernels {

/// store(c, load(c)) for each of this lane's columns. The columns that are taken together are all loaded before the
/// first of them is stored: so they become vectors although the compiler must assume that what is stored is loaded
/// again, and a tensor may be replaced by the result.
template <int lanes, int columns, class Load, class Store>
[[gnu::always_inline]] inline void each_column(int count, int lane, const Load& load, const Store& store) {
  int first = 0;
  for (; first + lanes * columns <= count; first += lanes * columns) {
    decltype(load(0)) values[columns];
#pragma unroll
    for (int x = 0; x < columns; ++x) values[x] = load(first + x * lanes + lane);
#pragma unroll
    for (int x = 0; x < columns; ++x) store(first + x * lanes + lane, values[x]);
  }
  for (; first + lanes <= count; first += lanes) store(first + lane, load(first + lane));
  if (first + lane < count) store(first + lane, load(first + lane));
}

/// Several sums that run side by side.
template <int count>
struct Sums {
  float value[count];

  [[gnu::always_inline]] void add(const Sums& other) {
#pragma unroll
    for (int i = 0; i < count; ++i) value[i] += other.value[i];
  }
};

/// The sum of load(c) over this lane's columns; load gives Sums. Its order depends on the count alone.
template <int lanes, int columns, int sums, class Load>
[[gnu::always_inline]] inline Sums<sums> sum_columns(int count, int lane, const Load& load) {
  Sums<sums> parts[columns] = {};
  int first = 0;
  for (; first + lanes * columns <= count; first += lanes * columns) {
#pragma unroll
    for (int x = 0; x < columns; ++x) parts[x].add(load(first + x * lanes + lane));
  }
  for (; first + lanes <= count; first += lanes) parts[0].add(load(first + lane));
  if (first + lane < count) parts[0].add(load(first + lane));
#pragma unroll
  for (int x = 1; x < columns; ++x) parts[0].add(parts[x]);
  return parts[0];
}

}  // namespace sylvit::kernels
