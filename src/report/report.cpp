#include "report/report.hpp"

#include <sylvit/gemm.hpp>

#include <algorithm>
#include <fmt/core.h>

namespace sylvit::report {

std::string run_name(const Report& report, std::size_t run) {
  const auto name_of_run = [](const Run& one) { return one.machine.empty() ? one.host : one.machine; };
  const std::string name = name_of_run(report.runs[run]);
  if (name.empty()) return fmt::format("run {}", run + 1);
  const auto same = [&](const Run& other) { return name_of_run(other) == name; };
  return std::ranges::count_if(report.runs, same) > 1 ? fmt::format("{}, run {}", name, run + 1) : name;
}

std::string device_text(const Report& report, std::size_t run, const DeviceReport& device) {
  const std::string text = fmt::format("{} ({}, {})", device.name, device.backend, report.runs[run].toolchain);
  return report.runs.size() > 1 ? run_name(report, run) + ": " + text : text;
}

std::string device_if_several(const Report& report, std::size_t run, const Result& result) {
  const bool several = report.runs.size() > 1 || report.runs[run].devices.size() > 1;
  return several ? device_text(report, run, device_of(report.runs[run], result)) : "";
}

std::string result_text(const Report& report, std::size_t run, const Result& result) {
  const std::string device = device_if_several(report, run, result);
  return fmt::format("{}, {}{}{}", model_of(report.runs[run], result).label, result.dtype, device.empty() ? "" : ", ",
                     device);
}

std::string layer_text(const std::string& layer) {
  if (layer == "head") return "head, the logits";
  if (layer == "norm" || layer == "fc_norm") return "final norm";
  if (!layer.starts_with("blocks.")) return layer;
  const std::size_t end = layer.find('.', 7);
  if (end == std::string::npos) return layer;
  const std::string block = "block " + layer.substr(7, end - 7) + ", ";
  const std::string part = layer.substr(end + 1);
  if (part == "norm1") return block + "norm before attention";
  if (part == "attn.qkv") return block + "queries, keys and values";
  if (part == "attn") return block + "attention output";
  if (part == "attn.gate") return block + "gate";
  if (part == "attn.gate product") return block + "gated attention";
  if (part == "attn.proj") return block + "tokens after attention";
  if (part == "norm2") return block + "norm before MLP";
  if (part == "mlp.fc1") return block + "MLP activations";
  if (part == "mlp.fc2") return block + "tokens after MLP";
  return block + part;
}

const Speed* speed_of(const Result& result, Pass pass, std::int64_t batch) {
  const auto found = std::ranges::find_if(
      result.speeds, [&](const Speed& speed) { return speed.pass == pass && speed.batch == batch; });
  return found == result.speeds.end() ? nullptr : &*found;
}

std::vector<std::string> providers_of(const Result& result) {
  std::vector<std::string> providers;
  for (const EngineUse& use : result.engines)
    if (find_gemm_provider(use.engine) && std::ranges::find(providers, use.engine) == providers.end())
      providers.push_back(use.engine);
  return providers;
}

std::vector<std::string> failures_of(const Run& run) {
  std::vector<std::string> failures;
  for (const DeviceReport& device : run.devices)
    if (!device.error.empty()) failures.push_back(device.name + ": " + device.error);
  for (const Result& result : run.results)
    if (!result.error.empty())
      failures.push_back(fmt::format(
          "{}, {}, {} failed in {}: {}", run.devices[static_cast<std::size_t>(result.device)].name,
          run.models[static_cast<std::size_t>(result.model)].label, result.dtype, result.failed_in, result.error));
  return failures;
}

}  // namespace sylvit::report
