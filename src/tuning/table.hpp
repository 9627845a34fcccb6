// Tuning tables: which tile numbers a kernel gets on a device. What serves a device is a chain of files:
//
//     a user's overlay  →  files that name the device  →  its architecture  →  the backend's default
//
// Records stand in the order of the files and in them most specific first; the first that fits a case, and that the
// device can run, is used. Files are embedded in the library (backends/<backend>/<family>.json) or lie in the overlay
// directory (the same layout).
#pragma once

#include <sylvit/device.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuning/backends.hpp"
#include "tuning/record.hpp"
#include "tuning/table_file.hpp"

namespace sylvit::tuning {

/// A file of a chain, and why it is there: "architecture avx2".
struct Link {
  std::string file;
  std::string why;
};

class Table {
 public:
  /// A file on its own. Throws Error naming the table, the record and what is wrong.
  static Table parse(std::string_view name, std::string_view json);
  /// Files one after the other, for no device in particular.
  Table(std::string name, std::span<const TableFile* const> files);

  /// What it goes by: the most specific embedded file, "dpcpp-cpu/avx2".
  const std::string& name() const noexcept { return name_; }
  std::span<const Record> records() const noexcept { return records_; }
  /// The first record that fits and that the device can run, else the first that fits (launching it says what the
  /// device lacks); throws Error if there is none.
  const Record& find(const Case& wanted) const;
  /// The same, and null if there is none.
  const Record* match(const Case& wanted) const;
  /// Every record that some length or extent of such a case leads to: what libraries compiled ahead of time hold. Of
  /// the case, kernel, type, score class and head size count.
  std::vector<const Record*> candidates_for(const Case& wanted) const;
  /// Why `match` does not take this record of the table for a case; empty for the one that it takes.
  std::string why_not(const Record& record, const Case& wanted) const;

  std::span<const Link> links() const noexcept { return links_; }
  /// Of its overlay files: records that are left out.
  std::span<const Problem> problems() const noexcept { return problems_; }
  /// When no family is the device's own: what was taken instead, as a sentence. Else empty.
  const std::string& note() const noexcept { return note_; }

  /// The same table with a record before all others, for every case of its kernel: what the tuner tries out.
  Table with(Record record) const;

 private:
  Table() = default;
  friend class ChainMaker;
  bool usable(const Record& record, const Case& wanted) const;

  std::string name_;
  std::vector<Record> records_;
  std::vector<Link> links_;
  std::vector<Problem> problems_;
  std::string note_;
  bool ahead_of_time_ = false;
};

/// The files that are embedded in the library, read once. Throws Error if one is not sound.
std::span<const TableFile> embedded();

/// The chain of an embedded file: itself and the default of the backend. Throws Error if there is no such file.
Table embedded_table(std::string_view name, std::string_view backend = {});

/// The table that serves a device; made once and kept. SYLVIT_TUNING_TABLE names an embedded file to use instead, to
/// see what a table made for one device does on another.
const Table& table_for(const DeviceInfo& device);

/// The same, and the device's user is warned, once, of overlay records that cannot be used.
const Table& table_for(const Device& device);

}  // namespace sylvit::tuning
