// A report as one page that needs nothing else: no network, no script.
#pragma once

#include <string>

#include "report/report.hpp"

namespace sylvit::report {

std::string report_html(const Report& report);

}  // namespace sylvit::report
