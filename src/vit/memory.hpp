// Where the activations of a Vision Transformer lie: one layout for counting and for use.
#pragma once

#include <sylvit/vit.hpp>

#include <vector>

#include "nn/workspace.hpp"

namespace sylvit::vit {

using namespace nn;  // a model is made of its operations

/// What a block keeps. In inference x, mid and the block's output are one and the same, and what only the backward pass
/// reads is empty. Behind its qkv the last block has only the rows that the pooling looks at
/// (VitConfig::pooled_tokens).
struct VitBlockMemory {
  TensorView x;            ///< input, [rows, width]
  TensorView statistics1;  ///< of norm1
  TensorView qkv;          ///< [rows, 3 width]
  TensorView lse;          ///< softmax: of each score row
  TensorView heads;        ///< what attention gives, [rows, width]
  TensorView gate, gated;  ///< the gate, and heads times it
  TensorView mid;          ///< between attention and MLP
  TensorView statistics2;  ///< of norm2
  TensorView u;            ///< [rows, mlp]: what gelu is taken of
};

/// The pooling by attention.
struct VitMapMemory {
  TensorView query;       ///< [1, width]
  TensorView key_values;  ///< [rows, 2 width]
  TensorView lse;
  TensorView heads, y, normed;  ///< [batch, width]
  TensorView statistics;
  TensorView u, activated;  ///< [batch, mlp]
};

struct VitMemory {
  VitMemory(const VitConfig& config, const VitOptions& options, std::int64_t batch, std::size_t scratch_bytes,
            Workspace& space);

  TensorView patches, embedded;  ///< [batch * patches, …]; share their memory with what comes later
  std::vector<VitBlockMemory> blocks;
  TensorView x;           ///< the last block's output, [batch * pooled tokens, width]
  TensorView normed;      ///< [rows, width]: output of whichever norm ran last
  TensorView activated;   ///< [rows, mlp]: output of gelu
  TensorView statistics;  ///< of the last norm
  TensorView mean;        ///< [batch, width]: where the norm comes after the average
  TensorView tokens;      ///< [rows, width]: output of the last norm, where all tokens go through it
  TensorView pooled;      ///< [batch, width]
  VitMapMemory map;

  // Gradients.
  TensorView x_gradient, normed_gradient;                            ///< [rows, width]
  TensorView y_gradient;                                             ///< of the last block's output
  TensorView activated_gradient;                                     ///< [rows, mlp]
  TensorView qkv_gradient, heads_gradient, gate_gradient;            ///< share their memory with activated_gradient
  TensorView pooled_gradient, pooled_gradient2, map_heads_gradient;  ///< [batch, width]
  TensorView map_activated_gradient;                                 ///< [batch, mlp]
  TensorView map_key_values_gradient;                                ///< [rows, 2 width]
  TensorView map_query_gradient;                                     ///< [1, width] in the model's type, and f32
  TensorView map_query_sum;

  void* scratch;  ///< of the operations themselves
};

}  // namespace sylvit::vit
