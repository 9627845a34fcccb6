#include "tuner/candidates.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "catalogue/records.hpp"
#include "kernels/attention_backward_config.hpp"
#include "tuning/record_check.hpp"

namespace sylvit::tuner {

namespace {

using Numbers = std::vector<int>;

double ratio(std::int64_t a, std::int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }
std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
int multiple_near(std::int64_t value, int of) {
  return static_cast<int>(std::max<std::int64_t>(1, (value + of / 2) / of)) * of;
}
int multiple_from(std::int64_t value, int of) { return static_cast<int>(divided_up(value, of)) * of; }

/// Work-items that share a tile, and the columns that each holds.
Numbers lanes_of(const Machine& machine) {
  if (machine.single_lanes) return {1};
  Numbers result;
  for (const int size : machine.limits.sub_group_sizes)
    if (!machine.cpu || (size >= machine.vector_floats && size <= 2 * machine.vector_floats)) result.push_back(size);
  // Where the hardware has one size, narrower tiles may share a sub-group.
  if (!machine.cpu && result.size() == 1) result.push_back(result.front() / 2);
  return result;
}
Numbers columns_of(const Machine& machine) {
  if (machine.single_lanes)
    return {machine.vector_floats, 2 * machine.vector_floats, 3 * machine.vector_floats, 4 * machine.vector_floats};
  return {1, 2, 3, 4};
}

/// Vector registers (CPU) or floats of a work-item (GPU) that a row of the tile takes.
int registers_of_row(const Machine& machine, int lanes, int columns) {
  return machine.cpu ? (lanes * columns + machine.vector_floats - 1) / machine.vector_floats : columns;
}

/// A register tile's sums, a row of one factor, and one element of the other must stay in registers: a tile that spills
/// runs at a fifth of the speed. And a tile of few sums waits for its loads.
bool tile_fits(const Machine& machine, int lanes, int columns, int rows) {
  const int across = registers_of_row(machine, lanes, columns);
  const int sums = rows * across;
  if (machine.cpu) return sums + across + 1 <= machine.registers && 2 * sums >= machine.registers - 4;
  return 2 * sums + across + rows <= machine.registers && sums >= 4;
}

/// Loads for each multiplication: a tile of r x c takes r + c of them for r · c products.
double tile_cost(const Machine& machine, int lanes, int columns, int rows) {
  const int across = registers_of_row(machine, lanes, columns);
  return 1 + 0.7 * (1.0 / rows + 1.0 / across);
}

/// Units that are left idle at the end.
double idle_factor(const Machine& machine, std::int64_t groups) {
  const std::int64_t units = std::max(1, machine.compute_units);
  return ratio(divided_up(groups, units) * units, std::max<std::int64_t>(groups, 1));
}

/// GPUs hide waiting by having several work-groups at once: what a group takes, the next cannot have.
double occupancy_factor(const Machine& machine, const Demand& demand) {
  if (machine.cpu) return 1;
  double factor = 1;
  if (machine.limits.local_memory_bytes > 0)
    factor +=
        std::max(0.0, 2 * ratio(demand.local_bytes, static_cast<std::int64_t>(machine.limits.local_memory_bytes)) - 1);
  if (demand.work_items < 64) factor *= 1.5;
  return factor;
}

/// A multiple of what divides a number, near the value; the value itself where nothing does.
int multiple_of(kernels::Step step, int value, const TileNumbers& tile) {
  switch (step) {
    case kernels::Step::one:
      return value;
    case kernels::Step::rows:
      return multiple_near(value, tile.at("rows"));
    case kernels::Step::width:
      return multiple_near(value, tile.at("lanes") * tile.at("columns"));
  }
  return value;
}

/// What a number counts of the work; 0: nothing that ends. A block twice as large as the work only wastes memory.
std::int64_t extent_of(std::string_view number, const Workload& workload) {
  if (number == "key_block") return workload.wanted.length;
  if (number == "query_block") return workload.rows;
  return 0;
}

class Maker {
 public:
  Maker(const Machine& machine, const Workload& workload)
      : machine_(machine), workload_(workload), kind_(catalogue::record_kind(workload.wanted.kernel)) {}

  /// Tiles that fit the registers, with every combination of what the kernel's search space names.
  std::vector<Record> make() {
    if (kind_ == nullptr || kind_->search.empty()) return {};
    const bool tiled = kind_->has("rows") && !kind_->searches("rows");
    const Numbers rows_of_tile = tiled ? Numbers{1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 24} : Numbers{0};
    const Numbers sub_groups = !kind_->has("sub_groups") ? Numbers{0} : machine_.cpu ? Numbers{1} : Numbers{1, 2, 4, 8};
    for (const int lanes : lanes_of(machine_))
      for (const int columns : columns_of(machine_))
        for (const int rows : rows_of_tile) {
          if (tiled && !tile_fits(machine_, lanes, columns, rows)) continue;
          for (const int groups : sub_groups) {
            TileNumbers tile{{"lanes", lanes}, {"columns", columns}};
            if (tiled) tile["rows"] = rows;
            if (groups > 0) tile["sub_groups"] = groups;
            combine(kind_->search, tile);
          }
        }
    std::ranges::stable_sort(result_, {},
                             [&](const Record& record) { return predicted_cost(record, machine_, workload_); });
    return std::move(result_);
  }

 private:
  void combine(std::span<const catalogue::SearchValues> rest, TileNumbers& numbers) {
    if (rest.empty()) {
      add_with_residence(numbers);
      return;
    }
    const std::string name(rest.front().name);
    for (const int value : values_of(rest.front(), numbers)) {
      numbers[name] = value;
      combine(rest.subspan(1), numbers);
    }
    numbers.erase(name);
  }

  std::set<int> values_of(const catalogue::SearchValues& search, const TileNumbers& tile) const {
    std::set<int> values;
    const std::int64_t extent = extent_of(search.name, workload_);
    for (const int value : search.values) {
      const int rounded = multiple_of(search.step, value, tile);
      if (extent == 0 || rounded < 2 * extent) values.insert(rounded);
    }
    if (search.name != "query_tiles") return values;
    // A work-group of all queries, and none of more.
    const std::int64_t all =
        divided_up(workload_.rows, std::int64_t{tile.at("lanes")} * tile.at("columns") * tile.at("sub_groups"));
    std::erase_if(values, [&](int value) { return value > all; });
    values.insert(static_cast<int>(std::min<std::int64_t>(all, 256)));
    return values;
  }

  /// Where keys may stay in local memory: with blocks of some of them, and with one block of all.
  void add_with_residence(TileNumbers numbers) {
    if (!kind_->has("resident")) {
      add(numbers);
      return;
    }
    numbers["resident"] = 0;
    add(numbers);
    if (workload_.wanted.length > 1024) return;
    numbers["key_block"] = multiple_from(workload_.wanted.length, numbers.at("rows"));
    numbers["resident"] = 1;
    add(numbers);
  }

  void add(const TileNumbers& numbers) {
    Record record;
    record.kernel = workload_.wanted.kernel;
    record.numbers = numbers;
    record.origin = "estimated: a candidate";
    if (numbers.contains("resident") && numbers.at("resident") == 1) record.length.most = numbers.at("key_block");
    if (is_plausible(record, machine_, workload_) && seen_.insert(numbers).second) result_.push_back(std::move(record));
  }

  const Machine& machine_;
  const Workload& workload_;
  const catalogue::RecordKind* kind_;
  std::vector<Record> result_;
  std::set<TileNumbers> seen_;
};

double forward_cost(const Record& record, const Machine& machine, const Workload& workload) {
  const std::int64_t keys = workload.wanted.length;
  const std::int64_t depth = workload.wanted.head_size;
  const std::int64_t tile = std::int64_t{record.number("lanes")} * record.number("columns");
  const std::int64_t queries = tile * record.number("query_tiles") * record.number("sub_groups");
  const std::int64_t groups = workload.independent * divided_up(workload.rows, queries);
  // Queries that are computed for nothing; loading K and V for few queries; carrying the sums from key block to block.
  const double padding = ratio(divided_up(workload.rows, tile) * tile, workload.rows);
  const double staging = 4.0 / static_cast<double>(std::min(queries, workload.rows));
  const double carrying =
      record.number("resident") == 1 ? 0 : ratio(2, std::min<std::int64_t>(keys, record.number("key_block")));
  const double panels = ratio(divided_up(depth, tile) * tile, depth);
  return (tile_cost(machine, record.number("lanes"), record.number("columns"), record.number("rows")) * padding *
              (1 + panels) / 2 +
          staging + carrying) *
         idle_factor(machine, groups) * occupancy_factor(machine, demand_of(record, depth));
}

double backward_cost(const Record& record, const Machine& machine, const Workload& workload) {
  const std::int64_t keys = workload.wanted.length;
  const std::int64_t query_block = record.number("query_block");
  const std::int64_t key_block = record.number("key_block");
  const auto cut = static_cast<kernels::BackwardCut>(record.number("cut"));
  const std::int64_t key_blocks = divided_up(keys, key_block);
  const std::int64_t query_blocks = divided_up(workload.rows, query_block);
  const double padding = ratio(key_blocks * key_block, keys) * ratio(query_blocks * query_block, workload.rows);
  // Split computes the scores twice: 7 products instead of 5. Partial writes a dQ for every key block.
  const double products = cut == kernels::BackwardCut::split ? 7.0 / 5 : 1;
  const double partials = cut == kernels::BackwardCut::partial ? 1.0 / static_cast<double>(key_block) : 0;
  const double staging = 2.0 / static_cast<double>(query_block) + 2.0 / static_cast<double>(key_block);
  const std::int64_t groups = workload.independent * (cut == kernels::BackwardCut::head ? 1 : key_blocks);
  return (tile_cost(machine, record.number("lanes"), record.number("columns"), record.number("rows")) * padding *
              products +
          staging + partials) *
         idle_factor(machine, groups) * occupancy_factor(machine, demand_of(record, workload.wanted.head_size));
}

double gemm_cost(const Record& record, const Machine& machine, const Workload& workload) {
  const std::int64_t width = std::int64_t{record.number("lanes")} * record.number("columns");
  const std::int64_t columns = width * record.number("panels");
  const std::int64_t row_block = record.number("row_block");
  const std::int64_t groups = divided_up(workload.rows, row_block) * divided_up(workload.wanted.n, columns);
  const double padding = ratio(divided_up(workload.rows, row_block) * row_block, workload.rows);
  // A may be staged for every group of columns, panels of B are read for every group of rows, sums wait between depths.
  const double staging =
      2.0 * record.number("staged") / static_cast<double>(columns) + 1.0 / static_cast<double>(row_block) +
      1.0 / static_cast<double>(std::min<std::int64_t>(record.number("depth_block"), workload.wanted.k));
  return (tile_cost(machine, record.number("lanes"), record.number("columns"), record.number("rows")) * padding +
          staging) *
         idle_factor(machine, groups) * occupancy_factor(machine, demand_of(record, 0));
}

double layer_norm_cost(const Record& record, const Machine& machine, const Workload& workload) {
  const int rows = record.number("rows");
  return (1 + 1.0 / rows + 0.05 * std::abs(std::log2(record.number("columns") / 4.0))) *
         idle_factor(machine, divided_up(workload.rows, rows));
}

}  // namespace

Machine Machine::of(const DeviceInfo& device) {
  Machine machine;
  machine.limits = Limits::of(device);
  machine.compute_units = std::max(1, device.compute_units);
  machine.cpu = device.type == DeviceType::cpu;
  machine.single_lanes = machine.cpu && device.toolchain == Toolchain::acpp;
  if (machine.cpu) {
    const bool wide = device.architecture == "avx512";
    machine.vector_floats = wide ? 16 : device.architecture == "avx2" ? 8 : 4;
    machine.registers = wide || device.architecture == "neon" ? 32 : 16;
  } else if (device.backend == Backend::level_zero || device.backend == Backend::opencl) {
    machine.registers = 64;  // 4 KB for a sub-group of 16
  }
  return machine;
}

bool is_plausible(const Record& record, const Machine& machine, const Workload& workload) {
  if (!flaw_of(record).empty()) return false;
  if (!obstacle_of(record, machine.limits, workload.wanted.head_size).empty()) return false;
  if (!record.length.holds(workload.wanted.length)) return false;
  return !record.numbers.contains("sub_groups") ||
         tile_fits(machine, record.number("lanes"), record.number("columns"), record.number("rows"));
}

TileNumbers effective_numbers(const Record& record, const Workload& workload) {
  TileNumbers numbers = record.numbers;
  const auto limit = [&](const char* name, std::int64_t most) {
    numbers[name] = static_cast<int>(std::min<std::int64_t>(numbers[name], most));
  };
  const bool forward = record.kernel == "attention_forward";
  if (!forward && record.kernel != "attention_backward") return numbers;
  const int width = record.number("lanes") * record.number("columns");
  if (forward) limit("query_tiles", divided_up(workload.rows, std::int64_t{width} * record.number("sub_groups")));
  if (!forward) limit("query_block", multiple_from(workload.rows, record.number("rows")));
  limit("key_block", multiple_from(workload.wanted.length, forward ? record.number("rows") : width));
  return numbers;
}

double predicted_cost(const Record& record, const Machine& machine, const Workload& workload) {
  if (record.kernel == "attention_forward") return forward_cost(record, machine, workload);
  if (record.kernel == "attention_backward") return backward_cost(record, machine, workload);
  if (record.kernel == "gemm") return gemm_cost(record, machine, workload);
  if (record.kernel == "layer_norm") return layer_norm_cost(record, machine, workload);
  return 1;
}

std::vector<Record> candidates_for(const Machine& machine, const Workload& workload) {
  return Maker(machine, workload).make();
}

std::vector<Record> neighbours_of(const Record& record, const Machine& machine, const Workload& workload) {
  std::vector<Record> result;
  const catalogue::RecordKind* kind = catalogue::record_kind(record.kernel);
  if (kind == nullptr) return result;
  for (const catalogue::SearchValues& search : kind->search) {
    if (search.name == "rows") continue;  // the tile itself stays
    const std::string name(search.name);
    const int value = record.number(name);
    std::set<int> values;
    if (catalogue::choices_of(name).empty()) {
      // A block changes by what divides it, so that tiles still do.
      const int step = multiple_of(search.step, 1, record.numbers);
      values = {value - step,
                value + step,
                multiple_near(value * 3 / 4, step),
                multiple_near(value * 3 / 2, step),
                multiple_near(value / 2, step),
                value * 2};
      values.erase(values.begin(), values.lower_bound(1));
    } else {
      values.insert(search.values.begin(), search.values.end());
    }
    values.erase(value);
    for (const int changed : values) {
      Record neighbour = record;
      neighbour.numbers[name] = changed;
      if (neighbour.numbers.contains("resident") && neighbour.number("resident") == 1)
        neighbour.length = {0, neighbour.number("key_block")};
      if (is_plausible(neighbour, machine, workload)) result.push_back(std::move(neighbour));
    }
  }
  return result;
}

}  // namespace sylvit::tuner
