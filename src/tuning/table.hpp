// Tuning tables: which tile numbers a kernel gets on a device. One table a device family, in backends/<backend>/, read
// from the copies embedded in the library. Records stand most specific first, and the first that fits a case is used.
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/tensor.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sylvit::tuning {

/// What a kernel is wanted for.
struct Case {
  std::string_view kernel;
  DType dtype = DType::f32;
  std::string_view score_class = {};  ///< "pointwise" or "softmax", for attention
  std::int64_t head_size = 0;
  std::int64_t length = 0;
  std::int64_t m = 0, n = 0, k = 0;  ///< of a matrix product
};

struct Record {
  std::string kernel;
  std::vector<DType> dtypes;                     ///< empty: any
  std::string score_class;                       ///< empty: any
  std::int64_t max_head_size = 0;                ///< 0: any; else the record fits head sizes up to this
  std::int64_t max_length = 0;                   ///< 0: any; else the record fits lengths up to this
  std::int64_t max_m = 0, max_n = 0, max_k = 0;  ///< the same for a matrix product's extents
  std::map<std::string, int, std::less<>> numbers;
  std::vector<std::string> providers;  ///< of gemm_provider: who computes such products, the best first
  std::string origin;                  ///< where the numbers come from: "measured on …" or "estimated: …"

  bool fits(const Case& wanted) const;
  /// Throws Error if the record lacks the number.
  int number(std::string_view name) const;
};

class Table {
 public:
  /// Throws Error naming the table, the record and what is wrong.
  static Table parse(std::string_view name, std::string_view json);

  /// "dpcpp-cpu/default"
  const std::string& name() const noexcept { return name_; }
  std::span<const Record> records() const noexcept { return records_; }
  /// The first record that fits; throws Error if there is none.
  const Record& find(const Case& wanted) const;
  /// The same, and null if there is none.
  const Record* match(const Case& wanted) const;

 private:
  std::string name_;
  std::vector<Record> records_;
};

/// The tables that are embedded in the library, parsed once.
std::span<const Table> embedded();

/// The table that serves a device, by its toolchain, backend and type. SYLVIT_TUNING_TABLE names another, to see what a
/// table made for one device does on another.
const Table& table_for(const DeviceInfo& device);

}  // namespace sylvit::tuning
