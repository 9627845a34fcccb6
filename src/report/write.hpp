// A report's directory: its files are there and whole, or what was there before is.
#pragma once

#include <filesystem>

#include "report/report.hpp"

namespace sylvit::report {

/// Makes the directory if there is none, and tries whether files can be written there: before hours of measuring.
/// Throws Error that says why not.
void check_writable(const std::filesystem::path& directory);

/// Writes index.html, report.json and report.csv. Throws Error, and then each is whole: as it was before, but for those
/// that were renamed into place before a renaming failed.
void write_report(const std::filesystem::path& directory, const Report& report);

}  // namespace sylvit::report
