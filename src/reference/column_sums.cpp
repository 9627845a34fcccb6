#include "reference/column_sums.hpp"

namespace sylvit::reference {

std::vector<double> column_sums(const std::vector<double>& in, std::size_t rows, std::size_t columns) {
  std::vector<double> out(columns, 0.0);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) out[c] += in[r * columns + c];
  return out;
}

}  // namespace sylvit::reference
