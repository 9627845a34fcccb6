// One file of tuning records, as it stands in backends/<backend>/ or in a user's overlay directory. Reading throws
// nothing but std::bad_alloc: what cannot be used is left out and listed.
#pragma once

#include <sylvit/device.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tuning/record.hpp"

namespace sylvit::tuning {

/// What a device can do, as far as records ask for it. 0 or empty: not known.
struct Limits {
  std::vector<int> sub_group_sizes;
  std::size_t local_memory_bytes = 0;
  std::size_t max_work_group = 0;

  static Limits of(const DeviceInfo& device);
};

/// Which devices a file is for.
struct Family {
  std::vector<std::string> backends;       ///< "dpcpp-cuda": that of its folder unless the file names others
  std::vector<std::string> architectures;  ///< "sm_80"
  std::vector<std::string> devices;        ///< names; * stands for anything
  Limits limits;                           ///< of a typical member, as is
  int compute_units = 0;                   ///< this

  /// Without a family, a file is for every device of its backends.
  bool is_default() const { return architectures.empty() && devices.empty(); }
  bool serves(std::string_view backend) const;
  bool names(const DeviceInfo& device) const;
  bool has_architecture_of(const DeviceInfo& device) const;
  /// How unlike a typical member the device is; below 0 when the file does not say what its members are like.
  double distance(const DeviceInfo& device) const;
};

struct Problem {
  std::string file;
  int record = 0;  ///< from 1; 0: the file as a whole
  std::string kernel;
  std::string reason;

  /// "file, record 3 (gemm): reason"
  std::string text() const;
};

struct TableFile {
  std::string name;
  Family family;
  std::vector<Record> records;
  std::vector<Problem> problems;
};

/// `name` is what messages call the file, and `backend` its folder.
TableFile read_table(std::string name, std::string_view backend, std::string_view text);

/// Does the text match a pattern in which * stands for anything?
bool matches_pattern(std::string_view text, std::string_view pattern);

}  // namespace sylvit::tuning
