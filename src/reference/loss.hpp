// Cross-entropy losses in plain fp64.
#pragma once

#include <cstddef>
#include <vector>

namespace sylvit::reference {

using Numbers = std::vector<double>;

struct CrossEntropy {
  Numbers losses;
  double mean = 0;
  Numbers gradient;  ///< of the mean
};

/// targets: [batch, classes], before smoothing.
CrossEntropy cross_entropy(bool softmax, const Numbers& logits, const Numbers& targets, std::size_t batch,
                           double smoothing);

}  // namespace sylvit::reference
