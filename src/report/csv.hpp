// Tables as comma-separated values (RFC 4180), for spreadsheets and data frames; and report.csv.
#pragma once

#include <string>
#include <vector>

#include "report/report.hpp"

namespace sylvit::report {

/// A header and rows. A cell is quoted where it must be.
class CsvTable {
 public:
  explicit CsvTable(std::vector<std::string> columns);

  /// The next row: as many cells as there are columns, by add() in their order.
  void begin_row();
  /// A text. One that a spreadsheet would take for a formula gets an apostrophe in front; control characters become
  /// spaces.
  void add(const std::string& text);
  /// A number, in digits that give it back; nothing where it is not finite.
  void add(double number);
  void add(std::int64_t number);

  /// Throws Error when a row has more or fewer cells than there are columns.
  std::string text() const;

 private:
  void add_cell(const std::string& text);

  std::vector<std::vector<std::string>> rows_;
};

/// report.csv: a row a result. Times and speeds have a group of columns for each pass and batch size of the report.
std::string report_csv(const Report& report);

}  // namespace sylvit::report
