// A report as one page that needs nothing else: no network, no script.
#pragma once

#include <string>

#include "cli/compare_report.hpp"

namespace sylvit::cli::compare {

std::string report_html(const Report& report);

}  // namespace sylvit::cli::compare
