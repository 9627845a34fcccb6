// One forward or backward pass of a Vision Transformer: the order of the operations and nothing else. The same code
// runs on a device and, on a Rehearsal, finds out which kernels and how much scratch memory it needs.
#pragma once

#include <sylvit/attention.hpp>
#include <sylvit/gemm.hpp>
#include <sylvit/vit.hpp>

#include <functional>
#include <initializer_list>
#include <string>

#include "nn/activation.hpp"
#include "vit/memory.hpp"
#include "vit/packed.hpp"

namespace sylvit::vit {

class VitPass {
 public:
  /// `scratch_bytes`: grows to the most scratch memory that an operation wants; null: nobody asks.
  VitPass(const Device& device, const VitParameters& parameters, const VitOptions& options, const VitMemory& memory,
          VitPacked* packed, std::int64_t batch, const std::function<void(const VitStep&)>& observer,
          std::span<const sycl::event> after, std::size_t* scratch_bytes = nullptr)
      : device_(device),
        parameters_(parameters),
        config_(parameters.config()),
        options_(options),
        memory_(memory),
        packed_(packed),
        batch_(batch),
        observer_(observer),
        last_(after.begin(), after.end()),
        scratch_bytes_(scratch_bytes) {}

  void forward(const TensorView& images, const TensorView& logits);
  void backward(const TensorView& images, const TensorView& logits_gradient, const VitBuffer& gradients);

  sycl::event last() const { return last_.empty() ? sycl::event() : last_.front(); }

 private:
  void embed(const TensorView& images);
  void block_forward(std::size_t index, bool whole);
  void head_forward(const TensorView& logits);
  void head_backward(const TensorView& logits_gradient);
  void map_backward();
  void block_backward(std::size_t index);
  void embed_backward(const TensorView& images);

  // The operations. Each starts after the last one; `name` is that of the parameters, or of the step.
  struct After {
    Epilogue epilogue = Epilogue::bias;
    TensorView residual = {};
    TensorView pre_activation = {};
  };
  /// out = epilogue(in · Wᵀ + bias)
  void linear(const std::string& name, const TensorView& in, const TensorView& out, const After& then);
  void linear(const std::string& name, const TensorView& in, const TensorView& out) { linear(name, in, out, After{}); }
  /// The gradients of weight and bias, and that of `in` (added to what is there if `beta` is 1; not if it is empty).
  void linear_backward(const std::string& name, const TensorView& in, const TensorView& out_gradient,
                       const TensorView& in_gradient, float beta = 0.0F);
  void norm(const std::string& name, const TensorView& in, const TensorView& out, const TensorView& statistics);
  void norm_backward(const std::string& name, const TensorView& in, const TensorView& statistics,
                     const TensorView& out_gradient, const TensorView& residual, const TensorView& in_gradient);
  void product(const std::string& name, const Gemm& gemm);
  /// The same with a layer's weights as the right factor, packed once where they are constant.
  void product_with_weights(const std::string& name, Gemm gemm);
  void column_sum(const std::string& name, const TensorView& in, const TensorView& out);
  AttentionDescription attention_of_blocks() const;
  template <class Tensors>
  Tensors attention_tensors(std::size_t block, const TensorView& qkv, const VitBuffer& parameters) const;
  AttentionInputs map_inputs() const;
  void run_attention(const std::string& name, const AttentionDescription& description, const AttentionInputs& inputs,
                     const TensorView& o, const TensorView& lse);
  void run_attention_backward(const std::string& name, const AttentionDescription& description,
                              const AttentionInputs& inputs, const TensorView& o, const TensorView& lse,
                              const TensorView& o_gradient, const AttentionGradients& gradients);

  /// A linear layer's weights as the right factor, [in, out], in the model's type.
  TensorView matrix_operand(const std::string& name) const;
  /// Tokens that go on after a block's keys and values: all, or what the pooling looks at.
  std::int64_t continuing_tokens(std::size_t block) const {
    return block + 1 < memory_.blocks.size() ? config_.tokens() : config_.pooled_tokens();
  }
  /// Of a row for every token, those that go on after the block.
  TensorView continuing_rows(std::size_t block, const TensorView& rows) const {
    return continuing_tokens(block) == config_.tokens() ? rows : class_tokens(rows);
  }
  /// The front of memory with a row for every token, a row for each that goes on after the block.
  TensorView front_for(std::size_t block, const TensorView& memory) const {
    return memory ? memory.slice(0, 0, batch_ * continuing_tokens(block)) : memory;
  }
  TensorView as_tokens(const TensorView& rows) const;
  TensorView class_tokens(const TensorView& rows) const;
  TensorView class_statistics() const;
  TensorView value(const std::string& name) const { return parameters_.values().at(name); }
  TensorView gradient(const std::string& name) const { return gradients_->at(name); }
  TensorView heads_view(const TensorView& rows, std::int64_t length, std::int64_t first_column) const;
  TensorView patch_heads(const TensorView& rows, std::int64_t first_column) const;
  bool training() const { return options_.use == VitUse::training; }
  Epilogue gelu() const { return config_.gelu_tanh ? Epilogue::bias_gelu_tanh : Epilogue::bias_gelu; }
  Gelu gelu_form() const { return config_.gelu_tanh ? Gelu::tanh : Gelu::exact; }
  /// Notes how much scratch memory an operation wants, where somebody plans it.
  template <class Bytes>
  void need(const Bytes& bytes) {
    if (scratch_bytes_ != nullptr) *scratch_bytes_ = std::max(*scratch_bytes_, bytes());
  }
  /// Ends a step: the next starts after it. What it wrote and read is for the observer.
  void done(const std::string& name, double flops, const sycl::event& event, const TensorView& output,
            std::initializer_list<const TensorView*> others = {}, std::optional<GemmProvider> provider = {});

  const Device& device_;
  const VitParameters& parameters_;
  const VitConfig& config_;
  const VitOptions& options_;
  const VitMemory& memory_;
  VitPacked* packed_;  // null: weights are packed in every pass
  std::int64_t batch_;
  const std::function<void(const VitStep&)>& observer_;
  std::vector<sycl::event> last_;
  const VitBuffer* gradients_ = nullptr;
  std::size_t* scratch_bytes_;
};

}  // namespace sylvit::vit
