#include "report/page.hpp"

#include <algorithm>
#include <fmt/core.h>

#include "report/style.hpp"
#include "report/svg.hpp"

namespace sylvit::report {

std::string html_page(const HtmlPage& page) {
  std::string html = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  // Nothing is ever fetched, not even an icon.
  html +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src "
      "data:\">\n<link rel=\"icon\" href=\"data:,\">\n";
  html += fmt::format("<title>{}: {}</title>\n<style>{}</style>\n</head>\n<body>\n", escaped(page.program),
                      escaped(page.title), page_style);
  html +=
      fmt::format("<header><p class=\"kicker\">{}</p><h1>{}</h1>\n{}<p class=\"lead\">{}</p>\n{}</header>\n<main>\n{}",
                  escaped(page.program), escaped(page.title),
                  page.verdict.empty() ? "" : fmt::format("<p class=\"verdict\">{}</p>\n", escaped(page.verdict)),
                  escaped(page.lead), page.notes, page.content);
  return html + fmt::format("</main>\n<footer>{}</footer>\n</body>\n</html>\n", escaped(page.footer));
}

std::string section(const std::string& heading, const std::string& content) {
  return content.empty() ? "" : fmt::format("<section><h2>{}</h2>\n{}</section>\n", escaped(heading), content);
}

std::string grid(const std::string& content) {
  return content.empty() ? "" : fmt::format("<div class=\"grid2\">\n{}</div>\n", content);
}

std::string card(const std::string& heading, const std::string& sentence, const std::string& content) {
  return fmt::format("<figure class=\"card\"><figcaption><h3>{}</h3><p>{}</p></figcaption>{}</figure>\n",
                     escaped(heading), escaped(sentence), content);
}

std::string note(const std::string& kind, const std::string& sentence) {
  return fmt::format("<p class=\"note {}\">{}</p>\n", kind, escaped(sentence));
}

std::string paragraph(const std::string& sentence) {
  return sentence.empty() ? "" : fmt::format("<p class=\"remark\">{}</p>\n", escaped(sentence));
}

std::string details(const std::string& heading, const std::string& remark, const std::string& content, bool prints) {
  return fmt::format("<details{}><summary>{}{}</summary>\n{}</details>\n", prints ? " class=\"prints\"" : "",
                     escaped(heading), remark.empty() ? "" : " <small>" + escaped(remark) + "</small>", content);
}

std::string facts(const std::vector<std::pair<std::string, std::string>>& all) {
  std::string html = "<dl>";
  for (const auto& [name, value] : all)
    if (!value.empty()) html += fmt::format("<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(value));
  return html + "</dl>\n";
}

// ---- tables

std::string HtmlTable::html() const {
  std::string text = fmt::format("<table class=\"{}\"><thead><tr>", style_);
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (used(c))
      text += fmt::format("<th{}>{}</th>", columns_[c].number ? " class=\"number\"" : "", escaped(columns_[c].heading));
  text += "</tr></thead><tbody>\n";
  for (const Row& row : rows_) {
    text += row.failed ? "<tr class=\"failed\">" : "<tr>";
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (used(c)) text += cell(c, row.cells[c]);
    text += "</tr>\n";
  }
  return text + "</tbody></table>\n";
}

std::string HtmlTable::headed(const std::string& heading) const {
  return empty() ? "" : fmt::format("<h3 class=\"table\">{}</h3>\n{}", escaped(heading), html());
}

bool HtmlTable::used(std::size_t column) const {
  return std::ranges::any_of(rows_, [&](const Row& row) { return !row.cells[column].empty(); });
}

std::string HtmlTable::cell(std::size_t column, const std::string& content) const {
  const std::size_t line = content.find('\n');
  std::string text = escaped(content.substr(0, line));
  if (line != std::string::npos) text += "<small>" + escaped(content.substr(line + 1)) + "</small>";
  std::string style = column == 0 ? "head" : columns_[column].number ? "number" : "";
  if (content.empty()) style += " empty";
  return fmt::format("<td class=\"{}\" data-label=\"{}\"><span>{}</span></td>", style,
                     escaped(columns_[column].heading), text);
}

}  // namespace sylvit::report
