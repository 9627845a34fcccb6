#include "compare/host.hpp"

#include <sylvit/error.hpp>
#include <sylvit/tuning.hpp>
#include <sylvit/version.hpp>

#include <algorithm>
#include <fmt/ranges.h>

#include "bench/machine.hpp"
#include "catalogue/head_sizes.hpp"
#include "runtime/kernel_library.hpp"
#include "tuning/estimated.hpp"
#include "tuning/table.hpp"

namespace sylvit::compare {

namespace {

std::vector<NamedText> named(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<NamedText> all;
  for (const auto& [name, text] : pairs) all.push_back({name, text});
  return all;
}

std::string numbers_of(const TuningChoice& choice) {
  std::vector<std::string> parts;
  for (const auto& [name, number] : choice.numbers) parts.push_back(fmt::format("{} {}", name, number));
  parts.insert(parts.end(), choice.providers.begin(), choice.providers.end());
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Adds the record that serves a case, unless it is there.
void add_use(std::vector<TuningUse>& uses, const DeviceInfo& device, const TuningCase& wanted,
             const std::string& what) {
  try {
    const TuningChoice choice = tuning_choice(device, wanted);
    const auto same = [&](const TuningUse& use) { return use.kernel == wanted.kernel && use.what == what; };
    if (std::ranges::none_of(uses, same))
      uses.push_back({std::string(wanted.kernel), what, choice.file, choice.record, choice.estimated,
                      numbers_of(choice), choice.origin});
  } catch (const Error&) {
    // A case that no table speaks of, as some have no order of providers.
  }
}

}  // namespace

void describe_host(Run& run) {
  run.date = now();
  run.command = command_line();
  run.version = version;
  run.commit = build_commit();
  run.toolchain = name_of(runtime::toolchain());
  run.compiler = compiler();
  run.machine = machine_name();
  run.host = processor();
  run.system = operating_system();
  run.cores = usable_cores();
  run.environment = named(environment());
  run.packages = named(packages());
}

DeviceReport device_report(const DeviceInfo& device) {
  DeviceReport report;
  report.index = device.index;
  report.name = device.name;
  report.vendor = device.vendor;
  report.backend = name_of(device.backend);
  report.type = name_of(device.type);
  report.driver = device.driver;
  report.architecture = device.architecture;
  report.memory_bytes = static_cast<std::int64_t>(device.memory_bytes);
  report.local_memory_bytes = static_cast<std::int64_t>(device.local_memory_bytes);
  report.compute_units = device.compute_units;
  report.sub_group_sizes.assign(device.sub_group_sizes.begin(), device.sub_group_sizes.end());
  report.estimated = tuning::uses_estimates(device);
  report.tuning_table = tuning::table_for(device).name();
  report.tuning_note = tuning::table_for(device).note();
  return report;
}

std::vector<TuningUse> tuning_uses(const DeviceInfo& device, const std::vector<Model>& models,
                                   const std::vector<DType>& dtypes) {
  std::vector<TuningUse> uses;
  for (const Model& model : models)
    for (const DType dtype : dtypes) {
      const VitConfig& config = model.config;
      const ScoreClass score_class = class_of(config.score);
      const std::int64_t head_size = catalogue::compiled_head_size(device.toolchain, config.head_size());
      for (const std::string_view kernel : {"attention_forward", "attention_backward"})
        add_use(uses, device,
                {.kernel = kernel,
                 .dtype = dtype,
                 .score_class = score_class,
                 .head_size = head_size,
                 .length = config.tokens()},
                fmt::format("{}, {}, head size {}, {} keys", name_of(dtype), name_of(score_class), head_size,
                            config.tokens()));
      add_use(uses, device, {.kernel = "layer_norm", .dtype = dtype, .n = config.width},
              fmt::format("{}, width {}", name_of(dtype), config.width));
      const std::int64_t d = config.width;
      for (const auto& [n, k] : {std::pair{3 * d, d}, {d, d}, {config.mlp, d}, {d, config.mlp}})
        for (const std::string_view kernel : {"gemm_provider", "gemm"})
          add_use(uses, device, {.kernel = kernel, .dtype = dtype, .n = n, .k = k},
                  fmt::format("{}, N {}, K {}", name_of(dtype), n, k));
    }
  return uses;
}

}  // namespace sylvit::compare
