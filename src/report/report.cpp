#include "report/report.hpp"

#include <algorithm>
#include <fmt/core.h>

namespace sylvit::report {

std::string device_text(const Report& report, std::size_t run, const DeviceReport& device) {
  const std::string toolchain = report.runs[run].toolchain;
  return report.runs.size() > 1 ? fmt::format("{} ({}, {}, run {})", device.name, device.backend, toolchain, run + 1)
                                : fmt::format("{} ({}, {})", device.name, device.backend, toolchain);
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
