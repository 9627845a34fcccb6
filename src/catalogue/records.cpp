#include "catalogue/records.hpp"

#include <algorithm>
#include <array>

#include "catalogue/catalogue.hpp"
#include "catalogue/config.hpp"

namespace sylvit::catalogue {

namespace {

constexpr std::array bounds = {NumberBounds{"lanes", 1, 1024},
                               NumberBounds{"columns", 1, 64},
                               NumberBounds{"rows", 1, 1024},
                               NumberBounds{"key_block", 1, 8192},
                               NumberBounds{"query_block", 1, 8192},
                               NumberBounds{"row_block", 1, 8192},
                               NumberBounds{"query_tiles", 1, 256},
                               NumberBounds{"sub_groups", 1, 64},
                               NumberBounds{"panels", 1, 1024},
                               NumberBounds{"depth_block", 1, 8192},
                               NumberBounds{"stripe", 1, 4096},
                               NumberBounds{"work_items", 1, 8192},
                               NumberBounds{"per_item", 1, 4096},
                               NumberBounds{"segments", 1, 1024},
                               NumberBounds{"steps", 1, 65536},
                               NumberBounds{"items", 1, 8192},
                               NumberBounds{"resident", 0, 1},
                               NumberBounds{"staged", 0, 1},
                               NumberBounds{"cut", 0, 2},
                               NumberBounds{"sub_group", 0, 1024}};

constexpr std::array<std::string_view, 3> cuts = {"head", "split", "partial"};
static_assert(static_cast<std::size_t>(kernels::BackwardCut::partial) == cuts.size() - 1);

template <class Config>
RecordKind kind_of() {
  RecordKind kind{Config::record, number_names<Config>(), has_head_size<Config>, {}, {}};
  kind.demand = [](const NumberByName& number, std::int64_t head_size) -> std::optional<Demand> {
    const auto config = config_of<Config>(number, head_size);
    if (!config.valid()) return std::nullopt;
    Demand demand{.work_items = work_items_of(config), .sub_group_size = sub_group_size_of(config)};
    if constexpr (requires { config.local_floats(); })
      demand.local_bytes = std::int64_t{config.local_floats()} * static_cast<std::int64_t>(sizeof(float));
    return demand;
  };
  if constexpr (requires { &Config::template search<int>; })
    Config::search([&](const char* name, kernels::Step step, auto... values) {
      kind.search.push_back({name, step, {values...}});
    });
  return kind;
}

std::vector<RecordKind> make_kinds() {
  std::vector<RecordKind> kinds;
  for_each_kernel([&]<class Described>() {
    using Config = typename Described::Config;
    if (std::ranges::find(kinds, Config::record, &RecordKind::kernel) == kinds.end())
      kinds.push_back(kind_of<Config>());
    // After the products whose provider it names; it has no tiles.
    if (std::string_view(Config::record) == "gemm_epilogue")
      kinds.push_back({"gemm_provider",
                       {},
                       false,
                       [](const NumberByName&, std::int64_t) { return std::optional<Demand>(Demand{}); },
                       {}});
  });
  return kinds;
}

}  // namespace

std::span<const NumberBounds> number_bounds() { return bounds; }

std::span<const std::string_view> choices_of(std::string_view number) {
  if (number == "cut") return cuts;
  return {};
}

std::span<const RecordKind> record_kinds() {
  static const std::vector<RecordKind> kinds = make_kinds();
  return kinds;
}

const RecordKind* record_kind(std::string_view kernel) {
  const auto found = std::ranges::find(record_kinds(), kernel, &RecordKind::kernel);
  return found == record_kinds().end() ? nullptr : &*found;
}

}  // namespace sylvit::catalogue
