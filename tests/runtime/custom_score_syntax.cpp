// As dpcpp_syntax.cpp: a custom score as a type, with the header of kernels that a library compiled ahead of time is
// installed with, is compiled as host code.
#include <sylvit/custom_score_type.hpp>

#include "../../examples/custom_score/squareplus.hpp"

namespace sylvit::test {

CustomScore squareplus_as_type();

CustomScore squareplus_as_type() {
  constexpr CustomScoreKernels kernels{.bf16 = false, .f16 = false, .head_size = 64};
  return custom_score<Squareplus, kernels>("Squareplus");
}

}  // namespace sylvit::test
