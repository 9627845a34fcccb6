// How far results are from what they should be.
#pragma once

#include <span>

#include "report/report.hpp"

namespace sylvit::report {

/// A value that is not finite where a finite one was expected makes every number infinite. Throws Error when the sizes
/// differ.
Errors errors_of(std::span<const float> got, std::span<const double> expected);
Errors errors_of(std::span<const float> got, std::span<const float> expected);
Errors errors_of(std::span<const double> got, std::span<const double> expected);

/// The class with the largest logit of each row.
std::vector<std::int64_t> top_classes_of(std::span<const float> logits, std::int64_t classes);
std::vector<std::int64_t> top_classes_of(std::span<const double> logits, std::int64_t classes);

/// The share of equal entries, over as many as both have.
double agreement(std::span<const std::int64_t> a, std::span<const std::int64_t> b);

}  // namespace sylvit::report
