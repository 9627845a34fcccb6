// sylvit devices [--json]: what there is, and what of it works.
#include <sylvit/device.hpp>
#include <sylvit/error.hpp>
#include <sylvit/memory.hpp>
#include <sylvit/tuning.hpp>

#include <algorithm>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "runtime/platform.hpp"
#include "terminal/print.hpp"
#include "tuning/estimated.hpp"
#include "tuning/table.hpp"

namespace sylvit::cli {

namespace {

nlohmann::ordered_json to_json(const DeviceInfo& device) {
  return {{"index", device.index},
          {"name", device.name},
          {"vendor", device.vendor},
          {"backend", name_of(device.backend)},
          {"toolchain", name_of(device.toolchain)},
          {"type", name_of(device.type)},
          {"usable", device.usable},
          {"why", device.why},
          {"memory_bytes", device.memory_bytes},
          {"compute_units", device.compute_units},
          {"local_memory_bytes", device.local_memory_bytes},
          {"sub_group_sizes", device.sub_group_sizes},
          {"fp16", device.fp16},
          {"bf16", device.bf16},
          {"fp64", device.fp64},
          {"tuning", tuning::table_for(device).name()},
          {"architecture", device.architecture},
          {"tuning_files", tuning_files(device)},
          {"tuning_note", tuning::table_for(device).note()},
          {"estimated", tuning::uses_estimates(device)},
          {"driver", device.driver}};
}

void print_json(const std::vector<DeviceInfo>& devices) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const DeviceInfo& device : devices) json.push_back(to_json(device));
  // A driver may name its device in any bytes; invalid UTF-8 is replaced rather than fatal.
  terminal::print_json(json);
}

void print_table(const std::vector<DeviceInfo>& devices) {
  if (devices.empty()) {
    terminal::print("no device was found\n");
    return;
  }
  std::size_t width = 4;
  for (const DeviceInfo& device : devices) width = std::max(width, device.name.size());
  terminal::print("{:>3}  {:<{}}  {:<15}  {:>5}  {:>9}  {:>9}  {:<14}  {:<16}  {:<18}  {}\n", "#", "name", width,
                  "backend", "units", "memory", "local", "sub-groups", "types", "tuning", "usable");
  for (const DeviceInfo& device : devices) {
    const std::string types =
        std::string("f32") + (device.bf16 ? " bf16" : "") + (device.fp16 ? " f16" : "") + (device.fp64 ? " f64" : "");
    terminal::print("{:>3}  {:<{}}  {:<15}  {:>5}  {:>9}  {:>9}  {:<14}  {:<16}  {:<18}  {}\n", device.index,
                    device.name, width, fmt::format("{}:{}", name_of(device.backend), name_of(device.type)),
                    device.compute_units, readable_bytes(device.memory_bytes),
                    readable_bytes(device.local_memory_bytes),
                    fmt::format("{}", fmt::join(device.sub_group_sizes, " ")), types, tuning::table_for(device).name(),
                    device.usable ? "yes" : "no: " + device.why);
  }
  for (const DeviceInfo& device : devices) {
    if (!device.usable) continue;
    if (const std::string& note = tuning::table_for(device).note(); !note.empty())
      terminal::print("{:>3}  {}\n", device.index, note);
    if (tuning::uses_estimates(device)) terminal::print("{:>3}  {}\n", device.index, tuning::estimated_note);
  }
}

}  // namespace

void add_devices(CLI::App& program) {
  CLI::App* command = program.add_subcommand("devices", "List the devices, each tried with a small kernel");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print a JSON array instead of a table");
  command->callback([json] {
    const std::vector<DeviceInfo> devices = list_devices();
    *json ? print_json(devices) : print_table(devices);
    if (std::ranges::none_of(devices, &DeviceInfo::usable)) {
      const std::string failure = devices.empty() ? "no SYCL device was found" : "no device is usable";
      throw Error(failure + runtime::selector_variable_note(), runtime::no_device_advice());
    }
  });
}

}  // namespace sylvit::cli
