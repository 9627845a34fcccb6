#include "report/write.hpp"

#include <sylvit/error.hpp>

#include <span>

#include "base/temporary_file.hpp"
#include "report/csv.hpp"
#include "report/html.hpp"
#include "report/json.hpp"

namespace sylvit::report {

void check_writable(const std::filesystem::path& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed)
    throw Error("cannot write a report to " + directory.string() + ": " + failed.message(), "give another --out");
  for (const char* name : {"index.html", "report.json", "report.csv"}) {
    const std::filesystem::path path = directory / name;
    if (std::filesystem::exists(path, failed) && !std::filesystem::is_regular_file(path, failed))
      throw Error("cannot write " + path.string() + ": something else is there that is no file", "give another --out");
    const base::TemporaryFile attempt(path);
  }
}

void write_report(const std::filesystem::path& directory, const Report& report) {
  const std::string json = report_json(report);
  const std::string html = report_html(report);
  const std::string csv = report_csv(report);
  base::TemporaryFile json_file(directory / "report.json");
  base::TemporaryFile html_file(directory / "index.html");
  base::TemporaryFile csv_file(directory / "report.csv");
  json_file.write(std::as_bytes(std::span(json)));
  html_file.write(std::as_bytes(std::span(html)));
  csv_file.write(std::as_bytes(std::span(csv)));
  for (base::TemporaryFile* file : {&json_file, &html_file, &csv_file}) file->flush();
  // Only now, when all are on the disk.
  for (base::TemporaryFile* file : {&json_file, &html_file, &csv_file}) file->rename_into_place();
}

}  // namespace sylvit::report
