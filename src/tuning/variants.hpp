// Which kernel variants a table can lead to. The ahead-of-time toolchains compile exactly the list that list_variants()
// gives for their backends.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/kernel.hpp"
#include "tuning/table.hpp"

namespace sylvit::tuning {

/// Every variant that a table leads to, each once.
std::vector<runtime::KernelName> variants_of(const Table& table);
/// Of them, those of one kernel's records.
std::vector<runtime::KernelName> variants_of(const Table& table, std::string_view kernel);

/// Every variant that the embedded tables of these backends ("acpp-cpu") lead to, each once, and the probe.
std::vector<runtime::KernelName> list_variants(std::span<const std::string> backends);

/// A variant of a custom score, which is called CustomScore in its type.
struct CustomVariant {
  DType dtype;
  std::int64_t head_size;
  runtime::KernelName kernel;
};
/// Those that the embedded tables of these backends lead to, each once.
std::vector<CustomVariant> list_custom_variants(std::span<const std::string> backends);

}  // namespace sylvit::tuning
