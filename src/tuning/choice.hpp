// From a table to the configuration of a kernel.
#pragma once

#include <sylvit/error.hpp>

#include "catalogue/config.hpp"
#include "tuning/table.hpp"

namespace sylvit::tuning {

/// The record's numbers as a configuration. Throws Error if one is missing or if they do not fit together.
template <class Config>
Config config_of(const Record& record, std::int64_t head_size = 0) {
  const auto config =
      catalogue::config_of<Config>([&](std::string_view name) { return record.number(name); }, head_size);
  if (!config.valid())
    throw Error("the tuning record for " + record.kernel + " (" + record.origin + ") has tile numbers that do not fit");
  return config;
}

/// The configuration of kernels that only the type decides about.
template <class Config>
Config config_for(const Table& table, DType dtype = DType::f32) {
  return config_of<Config>(
      table.find({.kernel = Config::record, .dtype = catalogue::is_by_type<Config> ? dtype : DType::f32}));
}

}  // namespace sylvit::tuning
