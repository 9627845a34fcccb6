// Which tile numbers are worth trying on a device: all that its limits allow and that a cost model does not rule out,
// the most promising first. The model only orders and discards; measuring decides (search.hpp).
#pragma once

#include <sylvit/device.hpp>

#include <cstdint>
#include <vector>

#include "tuning/record.hpp"
#include "tuning/table_file.hpp"

namespace sylvit::tuner {

using namespace tuning;

/// What the cost model knows of a device.
struct Machine {
  Limits limits;
  int compute_units = 1;
  bool cpu = false;
  bool single_lanes = false;  ///< AdaptiveCpp's CPU device: vectors come from the loop over columns
  int vector_floats = 1;      ///< CPUs: floats of a vector register
  int registers = 128;        ///< CPUs: vector registers; GPUs: floats that a work-item can keep

  static Machine of(const DeviceInfo& device);
};

/// What the numbers are wanted for: a case, and how much of it there is.
struct Workload {
  Case wanted;
  std::int64_t independent = 1;  ///< attention: batch · heads; else 1
  std::int64_t rows = 1;         ///< attention: queries; products and layer norm: rows
};

/// Records that hold a kernel and its numbers. Kernels: attention_forward, attention_backward, layer_norm, gemm; none
/// for others.
std::vector<Record> candidates_for(const Machine& machine, const Workload& workload);

/// The numbers that change one thing about a record: the neighbourhood of what is known to be good.
std::vector<Record> neighbours_of(const Record& record, const Machine& machine, const Workload& workload);

/// Is it sound, can the device run it, and do its sums fit the registers?
bool is_plausible(const Record& record, const Machine& machine, const Workload& workload);

/// A record's numbers as far as they matter for the work: a block that is larger than the work is as large as it. Two
/// records with the same are the same there, and only noise could tell which is faster.
TileNumbers effective_numbers(const Record& record, const Workload& workload);

/// How long the work takes, in units of nothing in particular.
double predicted_cost(const Record& record, const Machine& machine, const Workload& workload);

}  // namespace sylvit::tuner
