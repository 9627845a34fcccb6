// Sums along columns in plain fp64.
#pragma once

#include <cstddef>
#include <vector>

namespace sylvit::reference {

/// Σ over the rows.
std::vector<double> column_sums(const std::vector<double>& in, std::size_t rows, std::size_t columns);

}  // namespace sylvit::reference
