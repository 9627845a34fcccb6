#include "tuning/record_check.hpp"

#include <sylvit/error.hpp>
#include <sylvit/gemm.hpp>

#include <algorithm>
#include <optional>

#include "base/head_sizes.hpp"
#include "catalogue/records.hpp"
#include "runtime/grid_check.hpp"

namespace sylvit::tuning {

namespace {

std::int64_t product(const Record& record, std::initializer_list<std::string_view> names) {
  std::int64_t result = 1;
  for (const std::string_view name : names) result *= record.number(name);
  return result;
}

std::optional<Demand> demand(const catalogue::RecordKind& kind, const Record& record, std::int64_t head_size) {
  return kind.demand([&](std::string_view name) { return record.number(name); }, head_size);
}

std::string flaw_of_numbers(const Record& record, const catalogue::RecordKind& kind) {
  for (const std::string_view name : kind.numbers)
    if (!record.numbers.contains(name)) return "it lacks the number '" + std::string(name) + "'";
  for (const auto& [name, value] : record.numbers) {
    if (std::ranges::find(kind.numbers, name) == kind.numbers.end()) return "it has the unknown number '" + name + "'";
    const auto bounds = std::ranges::find(catalogue::number_bounds(), name, &catalogue::NumberBounds::name);
    if (value < bounds->least || value > bounds->most)
      return "its number '" + name + "' is " + std::to_string(value) + ", and may be " + std::to_string(bounds->least) +
             " to " + std::to_string(bounds->most);
  }
  return {};
}

/// Tile numbers that are within their bounds one by one and beyond all sense together.
bool is_enormous(const Record& record) {
  constexpr std::int64_t most = 1 << 24;  // elements of a tile; a large one has ten thousand
  if (record.numbers.contains("columns") && record.numbers.contains("lanes") &&
      product(record, {"lanes", "columns"}) > 4096)
    return true;
  if (record.kernel == "attention_forward")
    return product(record, {"lanes", "columns", "query_tiles", "sub_groups"}) > most / 256 ||
           product(record, {"lanes", "columns", "key_block", "sub_groups"}) > most;
  if (record.kernel == "gemm")
    return product(record, {"lanes", "columns", "row_block", "panels"}) > most ||
           product(record, {"row_block", "depth_block"}) > most;
  return false;
}

}  // namespace

bool depends_on_head_size(std::string_view kernel) {
  const catalogue::RecordKind* kind = catalogue::record_kind(kernel);
  return kind != nullptr && kind->head_size;
}

std::string flaw_of(const Record& record) {
  const catalogue::RecordKind* kind = catalogue::record_kind(record.kernel);
  if (kind == nullptr) return "there is no kernel '" + record.kernel.substr(0, 60) + "'";
  if (!record.estimated() && !record.origin.starts_with("measured"))
    return "its origin begins neither with 'measured' nor with 'estimated'";
  if (std::string flaw = flaw_of_numbers(record, *kind); !flaw.empty()) return flaw;
  if (is_enormous(record)) return "its tile is too large for any device";
  if (!demand(*kind, record, base::largest_head_size))
    return "its tile numbers do not fit together: a block is no multiple of its tile";
  if (record.kernel == "attention_forward" && record.number("resident") == 1 &&
      (record.length.most == 0 || record.length.most > record.number("key_block")))
    return "it keeps all keys in one block of " + std::to_string(record.number("key_block")) +
           ", so it needs a max_length up to that";
  for (const std::string& provider : record.providers)
    if (!find_gemm_provider(provider)) return "there is no provider '" + provider.substr(0, 60) + "'";
  return {};
}

Demand demand_of(const Record& record, std::int64_t head_size) {
  const catalogue::RecordKind* kind = catalogue::record_kind(record.kernel);
  if (kind == nullptr) throw Error("there is no kernel '" + record.kernel + "'");
  return demand(*kind, record, head_size).value_or(Demand{});
}

std::string obstacle_of(const Record& record, const Limits& limits, std::int64_t head_size) {
  const Demand demand = demand_of(record, head_size);
  if (limits.max_work_group > 0 && demand.work_items > static_cast<std::int64_t>(limits.max_work_group))
    return "it wants work-groups of " + std::to_string(demand.work_items) + ", and the device takes up to " +
           std::to_string(limits.max_work_group);
  if (!limits.sub_group_sizes.empty() && !runtime::runs_sub_groups_of(limits.sub_group_sizes, demand.sub_group_size)) {
    std::string sizes;
    for (const int size : limits.sub_group_sizes) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    return "it wants sub-groups of " + std::to_string(demand.sub_group_size) + ", and the device has " + sizes;
  }
  if (limits.local_memory_bytes > 0 && demand.local_bytes > static_cast<std::int64_t>(limits.local_memory_bytes))
    return "it wants " + std::to_string(demand.local_bytes) + " bytes of local memory" +
           (depends_on_head_size(record.kernel) ? " at head size " + std::to_string(head_size) : "") +
           ", and the device has " + std::to_string(limits.local_memory_bytes);
  return {};
}

std::int64_t largest_runnable_head_size(const Record& record, const Limits& limits) {
  // Local memory grows with the head size, so the first that fits from above is the largest.
  for (std::int64_t head_size = base::largest_head_size; head_size >= base::smallest_head_size;
       head_size -= base::head_size_step)
    if (obstacle_of(record, limits, head_size).empty()) return head_size;
  return 0;
}

}  // namespace sylvit::tuning
