// Plain fp64 versions of nn/basic: the judge of its tests and of the self-check.
#pragma once

#include <cstddef>
#include <vector>

namespace sylvit::reference {

/// Sum of each row of a dense [rows, columns].
std::vector<double> reduce_rows(const std::vector<double>& in, std::size_t rows, std::size_t columns);

/// [rows, columns] to [columns, rows].
std::vector<double> transpose(const std::vector<double>& in, std::size_t rows, std::size_t columns);

}  // namespace sylvit::reference
