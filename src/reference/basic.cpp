#include "reference/basic.hpp"

namespace sylvit::reference {

std::vector<double> reduce_rows(const std::vector<double>& in, std::size_t rows, std::size_t columns) {
  std::vector<double> out(rows, 0.0);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) out[r] += in[r * columns + c];
  return out;
}

std::vector<double> transpose(const std::vector<double>& in, std::size_t rows, std::size_t columns) {
  std::vector<double> out(in.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) out[c * rows + r] = in[r * columns + c];
  return out;
}

}  // namespace sylvit::reference
