#include "tuning/record_check.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/grid_check.hpp"
#include "tuning/configs.hpp"

namespace sylvit::tuning {

namespace {

/// A number of a record and what it may be. The bounds are far above anything useful; they keep the arithmetic on tile
/// numbers, which is int, from overflowing.
struct NumberRule {
  std::string_view name;
  int least;
  int most;
};
constexpr std::array number_rules = {NumberRule{"lanes", 1, 1024},       NumberRule{"columns", 1, 64},
                                     NumberRule{"rows", 1, 1024},        NumberRule{"key_block", 1, 8192},
                                     NumberRule{"query_block", 1, 8192}, NumberRule{"row_block", 1, 8192},
                                     NumberRule{"query_tiles", 1, 256},  NumberRule{"sub_groups", 1, 64},
                                     NumberRule{"panels", 1, 1024},      NumberRule{"depth_block", 1, 8192},
                                     NumberRule{"stripe", 1, 4096},      NumberRule{"work_items", 1, 8192},
                                     NumberRule{"per_item", 1, 4096},    NumberRule{"tile", 1, 256},
                                     NumberRule{"segments", 1, 1024},    NumberRule{"steps", 1, 65536},
                                     NumberRule{"items", 1, 8192},       NumberRule{"resident", 0, 1},
                                     NumberRule{"staged", 0, 1},         NumberRule{"cut", 0, 2},
                                     NumberRule{"sub_group", 0, 1024}};

/// What a configuration says about itself, whichever of it there is.
struct Shape {
  bool valid;
  Demand demand;
};

template <class Config>
Shape shape_of(const Config& config, int sub_group_size) {
  Shape shape{config.valid(), {}};
  if (!shape.valid) return shape;
  if constexpr (requires { config.work_items(); })
    shape.demand.work_items = config.work_items();
  else if constexpr (requires { config.work_items; })
    shape.demand.work_items = config.work_items;
  else
    shape.demand.work_items = config.lanes;
  if constexpr (requires { config.local_floats(); })
    shape.demand.local_bytes = std::int64_t{config.local_floats()} * static_cast<std::int64_t>(sizeof(float));
  shape.demand.sub_group_size = sub_group_size;
  return shape;
}

/// Lanes of a tile are one sub-group, unless there is only one (see tuning::named).
template <class Config>
Shape lanes_shape(const Config& config) {
  return shape_of(config, config.lanes > 1 ? config.lanes : 0);
}

std::int64_t product(const Record& record, std::initializer_list<std::string_view> names) {
  std::int64_t result = 1;
  for (const std::string_view name : names) result *= record.number(name);
  return result;
}

struct KernelRule {
  std::string_view name;
  std::vector<std::string_view> numbers;
  bool head_size;
  Shape (*shape)(const Record& record, std::int64_t head_size);
};

const std::vector<KernelRule>& kernel_rules() {
  static const std::vector<KernelRule> rules = {
      {"attention_forward",
       {"lanes", "columns", "rows", "key_block", "query_tiles", "sub_groups", "resident"},
       true,
       [](const Record& r, std::int64_t d) { return lanes_shape(configs::attention_forward(r, d)); }},
      {"attention_backward",
       {"lanes", "columns", "rows", "query_block", "key_block", "sub_groups", "cut"},
       true,
       [](const Record& r, std::int64_t d) { return lanes_shape(configs::attention_backward(r, d)); }},
      {"attention_linear",
       {"lanes", "columns", "rows", "row_block", "stripe", "sub_groups"},
       true,
       [](const Record& r, std::int64_t d) { return lanes_shape(configs::attention_linear(r, d)); }},
      {"attention_backward_rows",
       {"lanes", "columns", "rows"},
       false,
       [](const Record& r, std::int64_t) { return lanes_shape(configs::attention_backward_rows(r)); }},
      {"head_sums", {"items"}, false, [](const Record& r, std::int64_t) { return shape_of(configs::head_sums(r), 0); }},
      {"layer_norm",
       {"lanes", "columns", "rows"},
       false,
       [](const Record& r, std::int64_t) { return lanes_shape(configs::layer_norm(r)); }},
      {"activation",
       {"work_items", "columns", "rows"},
       false,
       [](const Record& r, std::int64_t) { return shape_of(configs::activation(r), 0); }},
      {"column_sums",
       {"lanes", "columns"},
       false,
       [](const Record& r, std::int64_t) { return lanes_shape(configs::column_sums(r)); }},
      {"gemm",
       {"lanes", "columns", "rows", "row_block", "panels", "depth_block", "sub_groups", "staged"},
       false,
       [](const Record& r, std::int64_t) { return lanes_shape(configs::gemm(r)); }},
      {"gemm_epilogue",
       {"work_items", "rows"},
       false,
       [](const Record& r, std::int64_t) { return shape_of(configs::gemm_epilogue(r), 0); }},
      {"gemm_provider",
       {},
       false,
       [](const Record&, std::int64_t) {
         return Shape{true, {}};
       }},
      {"elementwise",
       {"work_items", "per_item"},
       false,
       [](const Record& r, std::int64_t) { return shape_of(configs::elementwise(r), 0); }},
      {"reduce_rows",
       {"work_items"},
       false,
       [](const Record& r, std::int64_t) { return shape_of(configs::reduce_rows(r), 0); }},
      {"transpose",
       {"tile", "rows"},
       false,
       [](const Record& r, std::int64_t) { return shape_of(configs::transpose(r), 0); }},
      {"patch_rows",
       {"lanes", "columns", "segments", "sub_group"},
       false,
       [](const Record& r, std::int64_t) { return shape_of(configs::patch_rows(r), r.number("sub_group")); }},
      {"tokens",
       {"lanes", "columns", "rows", "sub_group"},
       false,
       [](const Record& r, std::int64_t) { return shape_of(configs::tokens(r), r.number("sub_group")); }},
      {"loss",
       {"lanes", "columns", "sub_group"},
       false,
       [](const Record& r, std::int64_t) { return shape_of(configs::loss(r), r.number("sub_group")); }},
      {"optimizer", {"lanes", "columns", "steps", "sub_group"}, false, [](const Record& r, std::int64_t) {
         return shape_of(configs::optimizer(r), r.number("sub_group"));
       }}};
  return rules;
}

const KernelRule* rule_of(std::string_view kernel) {
  const auto found = std::ranges::find(kernel_rules(), kernel, &KernelRule::name);
  return found == kernel_rules().end() ? nullptr : &*found;
}

std::string flaw_of_numbers(const Record& record, const KernelRule& rule) {
  for (const std::string_view name : rule.numbers)
    if (!record.numbers.contains(name)) return "it lacks the number '" + std::string(name) + "'";
  for (const auto& [name, value] : record.numbers) {
    if (std::ranges::find(rule.numbers, name) == rule.numbers.end()) return "it has the unknown number '" + name + "'";
    const auto bounds = std::ranges::find(number_rules, name, &NumberRule::name);
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

std::span<const std::string_view> known_kernels() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> result;
    for (const KernelRule& rule : kernel_rules()) result.push_back(rule.name);
    return result;
  }();
  return names;
}

bool depends_on_head_size(std::string_view kernel) {
  const KernelRule* rule = rule_of(kernel);
  return rule != nullptr && rule->head_size;
}

std::string flaw_of(const Record& record) {
  const KernelRule* rule = rule_of(record.kernel);
  if (rule == nullptr) return "there is no kernel '" + record.kernel.substr(0, 60) + "'";
  if (!record.estimated() && !record.origin.starts_with("measured"))
    return "its origin begins neither with 'measured' nor with 'estimated'";
  if (std::string flaw = flaw_of_numbers(record, *rule); !flaw.empty()) return flaw;
  if (is_enormous(record)) return "its tile is too large for any device";
  if (!rule->shape(record, largest_head_size_of_all).valid)
    return "its tile numbers do not fit together: a block is no multiple of its tile";
  if (record.kernel == "attention_forward" && record.number("resident") == 1 &&
      (record.length.most == 0 || record.length.most > record.number("key_block")))
    return "it keeps all keys in one block of " + std::to_string(record.number("key_block")) +
           ", so it needs a max_length up to that";
  for (const std::string& provider : record.providers)
    if (provider != "builtin" && provider != "onemkl" && provider != "onemath" && provider != "blas")
      return "there is no provider '" + provider.substr(0, 60) + "'";
  return {};
}

Demand demand_of(const Record& record, std::int64_t head_size) {
  const KernelRule* rule = rule_of(record.kernel);
  if (rule == nullptr) throw Error("there is no kernel '" + record.kernel + "'");
  return rule->shape(record, head_size).demand;
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
  for (std::int64_t head_size = largest_head_size_of_all; head_size >= smallest_head_size; head_size -= 8)
    if (obstacle_of(record, limits, head_size).empty()) return head_size;
  return 0;
}

}  // namespace sylvit::tuning
