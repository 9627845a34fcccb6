// What an observer of a Vision Transformer's pass saw, summed up by kind of layer.
#pragma once

#include <sylvit/vit.hpp>

#include <string>
#include <vector>

namespace sylvit::bench {

/// Time and work of a kind of layer, over all blocks.
struct LayerTotals {
  std::string kind;  ///< "blocks.*.mlp.fc1"
  int count = 0;
  double ms = 0;
  double flops = 0;
  double bytes = 0;
};

/// "blocks.7.mlp.fc1" → "blocks.*.mlp.fc1"
std::string layer_kind(const std::string& layer);

/// In the order in which the kinds first ran. Of steps that are done, on a device that was opened with profiling.
std::vector<LayerTotals> layer_totals(const std::vector<VitStep>& steps);

}  // namespace sylvit::bench
