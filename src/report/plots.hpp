// What a report's plots show.
#pragma once

#include <string>
#include <vector>

#include "report/report.hpp"

namespace sylvit::report {

/// A card of the page: heading, a sentence on how to read it, and the plot with its legend.
std::string throughput_cards(const Report& report);
/// Point-wise scores beside softmax: ratios with their intervals.
std::string ratio_cards(const Report& report);
std::string error_cards(const Report& report);
std::string roofline_cards(const Report& report);
std::string batch_cards(const Report& report);
std::string layer_cards(const Report& report);

}  // namespace sylvit::report
