// The parts of a page that needs nothing else: no network, no script; for a desk, a phone and paper. The report of
// `sylvit compare` is made of them, and so are other pages of this program. A page is composed from the inside out:
//
//     HtmlTable table("cards", {{"Epoch"}, {"Loss", true}});           page.hpp: tables, notes, facts, folded details
//     table.add({"1", "2.31"});
//     const std::string plots = grid(line_card("Loss", "…", chart));  charts.hpp: line plots with error bars, bars
//     html_page({.program = "sylvit train", .title = "S/16 relu/L", .verdict = "It reaches …", .lead = "12 epochs; …",
//                .notes = note("warn", "It diverged."),
//                .content = section("Course", plots) + section("Epochs", table.html()),
//                .footer = "docs/training.md says …"});
//
// Every function takes plain text and escapes it, except where a parameter is called content or notes: that is HTML
// which another of these functions made. svg.hpp draws a plot that charts.hpp has no ready form for.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sylvit::report {

struct HtmlPage {
  std::string program;  ///< what made it, small above the title
  std::string title;
  std::string verdict = {};  ///< what came out, in a sentence or two below the title
  std::string lead;          ///< a sentence on what this is
  std::string notes;         ///< what must be known before the rest
  std::string content;       ///< sections
  std::string footer;
};
std::string html_page(const HtmlPage& page);

/// Empty where the content is.
std::string section(const std::string& heading, const std::string& content);
/// Beside each other where there is room.
std::string grid(const std::string& content);
/// A heading, a sentence on how to read it, and a plot with its legend, or anything else.
std::string card(const std::string& heading, const std::string& sentence, const std::string& content);
/// A sentence that stands out. `kind`: "bad", "warn" or "".
std::string note(const std::string& kind, const std::string& sentence);
/// A sentence between other things.
std::string paragraph(const std::string& sentence);
/// Folded away, on a screen; on paper too unless `prints`.
std::string details(const std::string& heading, const std::string& remark, const std::string& content,
                    bool prints = false);
/// Names and what they are; those without a value are left out.
std::string facts(const std::vector<std::pair<std::string, std::string>>& all);

/// A table, row by row. On a phone its rows are cards ("cards"), or its letters small ("dense"); "cards names" leaves
/// room for words as long as a kernel's name. A column without any text is left out.
class HtmlTable {
 public:
  struct Column {
    std::string heading;
    bool number = false;
  };

  HtmlTable(std::string style, std::vector<Column> columns) : style_(std::move(style)), columns_(std::move(columns)) {}

  /// Text of the cells; what is after a line break stands smaller below, line by line. The first is the card's heading.
  void add(std::vector<std::string> cells, bool failed = false) { rows_.push_back({std::move(cells), failed}); }
  bool empty() const { return rows_.empty(); }
  std::string html() const;
  /// With a heading above it; nothing if it is empty.
  std::string headed(const std::string& heading) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    bool failed;
  };

  bool used(std::size_t column) const;
  std::string cell(std::size_t column, const std::string& content) const;

  std::string style_;
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace sylvit::report
