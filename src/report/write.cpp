#include "report/write.hpp"

#include <sylvit/error.hpp>

#include <span>

#include "base/temporary_file.hpp"
#include "report/html.hpp"
#include "report/json.hpp"

namespace sylvit::report {

void check_writable(const std::filesystem::path& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed)
    throw Error("cannot write a report to " + directory.string() + ": " + failed.message(), "give another --out");
  for (const char* name : {"index.html", "report.json"}) {
    const std::filesystem::path path = directory / name;
    if (std::filesystem::exists(path, failed) && !std::filesystem::is_regular_file(path, failed))
      throw Error("cannot write " + path.string() + ": something else is there that is no file", "give another --out");
    const base::TemporaryFile attempt(path);
  }
}

void write_report(const std::filesystem::path& directory, const Report& report) {
  const std::string json = report_json(report);
  const std::string html = report_html(report);
  base::TemporaryFile json_file(directory / "report.json");
  base::TemporaryFile html_file(directory / "index.html");
  json_file.write(std::as_bytes(std::span(json)));
  html_file.write(std::as_bytes(std::span(html)));
  json_file.flush();
  html_file.flush();
  // Only now, when both are on the disk.
  json_file.rename_into_place();
  html_file.rename_into_place();
}

}  // namespace sylvit::report
