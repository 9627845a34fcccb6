// The tables of a report's page.
#pragma once

#include <string>

#include "report/report.hpp"

namespace sylvit::report {

/// A line a result: what is shown first.
std::string summary_table(const Report& report);
/// Point-wise scores beside softmax on each device.
std::string score_table(const Report& report);
/// Each pass and error beside the baseline's.
std::string baseline_table(const Report& report);
/// Percentiles of the times of the smallest batch.
std::string latency_table(const Report& report);

std::string accuracy_table(const Report& report);
/// Results beside each other.
std::string pair_table(const Report& report);
/// Of each result the parameter whose gradient is farthest off.
std::string gradient_table(const Report& report);

// Folded away until they are wanted. On paper there are those that are short, and those that were opened.
std::string run_details(const Report& report);
std::string device_details(const Report& report);
std::string model_details(const Report& report);
std::string speed_details(const Report& report);
/// Times and errors, a column for each type.
std::string layer_details(const Report& report);
std::string engine_details(const Report& report);
std::string gradient_details(const Report& report);
std::string pair_details(const Report& report);

}  // namespace sylvit::report
