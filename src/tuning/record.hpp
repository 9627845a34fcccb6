// One record of a tuning table: the cases it serves, and the tile numbers they get.
#pragma once

#include <sylvit/tensor.hpp>
#include <sylvit/tuning.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sylvit::tuning {

using Case = TuningCase;

/// Both ends belong to it; 0: no such end.
struct Range {
  std::int64_t least = 0;
  std::int64_t most = 0;

  bool holds(std::int64_t value) const { return value >= least && (most == 0 || value <= most); }
  bool unlimited() const { return least == 0 && most == 0; }
  bool operator==(const Range&) const = default;
};

/// By their names in the tables.
using TileNumbers = std::map<std::string, int, std::less<>>;

struct Record {
  std::string kernel = {};
  std::vector<DType> dtypes = {};  ///< empty: any
  ScoreClass score_class = ScoreClass::any;
  Range head_size = {}, length = {}, m = {}, n = {}, k = {};
  TileNumbers numbers = {};
  std::vector<std::string> providers = {};  ///< of gemm_provider: who computes such products, the best first
  std::string origin = {};                  ///< where the numbers come from: "measured on …" or "estimated: …"

  std::string file = {};  ///< the table it stands in: "dpcpp-cpu/avx2", or the path of an overlay file
  int position = 0;       ///< in that file, from 1
  bool overlay = false;
  /// The largest head size at which the device of the table can run it.
  static constexpr std::int64_t runs_never = -1;
  static constexpr std::int64_t runs_always = std::numeric_limits<std::int64_t>::max();
  std::int64_t runs_up_to = runs_always;

  bool fits(const Case& wanted) const;
  /// The same whatever the lengths and extents are: could some length lead here?
  bool fits_some_length(const Case& wanted) const;
  /// Why it does not fit: "head size 80 is above 64". Empty when it fits.
  std::string mismatch(const Case& wanted) const;
  /// Throws Error if the record lacks the number.
  int number(std::string_view name) const;
  bool estimated() const { return origin.starts_with("estimated"); }
  /// "dpcpp-cpu/avx2 record 3"
  std::string place() const;
  /// "dpcpp-cpu/avx2: measured …", for people.
  std::string source() const { return file + ": " + origin; }
};

}  // namespace sylvit::tuning
