#include "bench/profile.hpp"

#include <algorithm>

namespace sylvit::bench {

std::string layer_kind(const std::string& layer) {
  if (!layer.starts_with("blocks.")) return layer;
  const std::size_t end = layer.find('.', 7);
  return end == std::string::npos ? layer : "blocks.*" + layer.substr(end);
}

std::vector<LayerTotals> layer_totals(const std::vector<VitStep>& steps) {
  std::vector<LayerTotals> totals;
  double end_before = 0;
  for (const VitStep& step : steps) {
    // From the end of the step before to its own end: an event is that of a step's last kernel.
    const auto end =
        static_cast<double>(step.event.get_profiling_info<sycl::info::event_profiling::command_end>()) / 1e6;
    const auto start =
        static_cast<double>(step.event.get_profiling_info<sycl::info::event_profiling::command_start>()) / 1e6;
    const std::string kind = layer_kind(step.name);
    auto found = std::ranges::find(totals, kind, &LayerTotals::kind);
    if (found == totals.end()) found = totals.insert(totals.end(), {.kind = kind});
    found->ms += end - (end_before > 0 ? end_before : start);
    found->flops += step.flops;
    found->bytes += step.bytes;
    ++found->count;
    end_before = end;
  }
  return totals;
}

}  // namespace sylvit::bench
