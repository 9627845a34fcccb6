#include "tuning/check.hpp"

#include "base/head_sizes.hpp"
#include "tuning/record_check.hpp"
#include "tuning/table.hpp"

namespace sylvit::tuning {

namespace {

bool is_for(const Family& family, const DeviceInfo& device) {
  return family.serves(backend_of(device)) &&
         (family.is_default() || family.names(device) || family.has_architecture_of(device));
}

/// Empty: it can run at some head size.
std::string obstacle_at_every_head_size(const Record& record, const Limits& limits) {
  return largest_runnable_head_size(record, limits) > 0 ? "" : obstacle_of(record, limits, base::smallest_head_size);
}

}  // namespace

std::vector<Problem> problems_of(const TableFile& file, std::span<const DeviceInfo> devices) {
  std::vector<Problem> problems = file.problems;
  for (const Record& record : file.records) {
    const auto refuse = [&](const std::string& reason) {
      problems.push_back({file.name, record.position, record.kernel, reason});
    };
    if (const std::string flaw = flaw_of(record); !flaw.empty()) {
      refuse(flaw);
      continue;
    }
    if (const std::string obstacle = obstacle_at_every_head_size(record, file.family.limits); !obstacle.empty()) {
      refuse("a device of its family cannot run it: " + obstacle);
      continue;
    }
    for (const DeviceInfo& device : devices)
      if (is_for(file.family, device))
        if (const std::string obstacle = obstacle_at_every_head_size(record, Limits::of(device)); !obstacle.empty()) {
          refuse(device.name + " cannot run it: " + obstacle);
          break;
        }
  }
  return problems;
}

}  // namespace sylvit::tuning
