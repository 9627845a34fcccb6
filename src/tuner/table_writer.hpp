// The overlay file that `sylvit tune` writes: one for a device, kept from run to run.
#pragma once

#include <sylvit/device.hpp>

#include <filesystem>

#include "tuner/jobs.hpp"
#include "tuning/table_file.hpp"

namespace sylvit::tuner {

class TuneTable {
 public:
  /// Reads what is there. Throws Error when it is not a sound table: it is not overwritten.
  TuneTable(const std::filesystem::path& directory, const DeviceInfo& device);

  const std::filesystem::path& path() const { return path_; }
  /// Has an earlier run decided this job?
  bool has(const TuneJob& job) const;
  /// Puts a record before the others, in place of one for the same cases, and writes the file.
  void put(const tuning::Record& record);

 private:
  void merge_lengths();

  std::filesystem::path path_;
  std::string description_;
  tuning::TableFile file_;
};

}  // namespace sylvit::tuner
