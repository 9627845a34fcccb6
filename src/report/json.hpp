// report.json: written from, and read back into, a Report. A file may come from anywhere, so the reader trusts nothing.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "report/report.hpp"

namespace sylvit::report {

/// Grows when a reader of the number before would misunderstand a file.
inline constexpr int report_schema = 2;

std::string report_json(const Report& report);

/// Throws Error with one sentence that names the file and the place when it is no report, is damaged, or is of a newer
/// schema. What it returns is consistent: every position names something. Of reports of an earlier schema, what they
/// have not is left as it is made.
Report parse_report(std::string_view text, const std::string& name);
Report read_report(const std::filesystem::path& path);

}  // namespace sylvit::report
