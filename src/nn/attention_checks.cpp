#include "nn/attention_checks.hpp"

#include <sylvit/error.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include "base/head_sizes.hpp"
#include "base/storage_types.hpp"

namespace sylvit {

void check_lengths(std::span<const std::int32_t> lengths, std::int64_t keys) {
  for (std::size_t b = 0; b < lengths.size(); ++b)
    if (lengths[b] < 0 || lengths[b] > keys)
      throw Error("lengths[" + std::to_string(b) + "] is " + std::to_string(lengths[b]) +
                  ", and a sequence has 0 to Lk = " + std::to_string(keys) + " keys");
}

}  // namespace sylvit

namespace sylvit::nn {

namespace {

struct Named {
  const char* name;
  const TensorView& view;
};

std::string described(const Named& tensor) {
  return std::string(tensor.name) + " is " + std::string(name_of(tensor.view.dtype())) + " " +
         tensor.view.shape().text();
}

void require_form(bool condition, const Named& tensor, const std::string& rule) {
  if (!condition) throw Error(described(tensor) + ", and must be " + rule);
}

/// A tensor of rows whose channels are contiguous.
void require_rows(const Named& tensor, DType dtype, const Shape& shape) {
  require_form(tensor.view.dtype() == dtype && tensor.view.shape() == shape, tensor,
               std::string(name_of(dtype)) + " " + shape.text());
  if (shape[3] > 1 && tensor.view.stride(3) != 1)
    throw Error(std::string(tensor.name) + " has stride " + std::to_string(tensor.view.stride(3)) +
                " along its last axis, which must be contiguous");
}

void require_dense(const Named& tensor, DType dtype, const Shape& shape) {
  if (!tensor.view) return;
  require_form(tensor.view.dtype() == dtype && tensor.view.shape() == shape && tensor.view.is_dense(), tensor,
               "dense " + std::string(name_of(dtype)) + " " + shape.text());
}

/// Nothing that is written may share memory with anything else.
void require_apart(std::span<const Named> written, std::span<const Named> read) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (written[i].view.may_alias_itself())
      throw Error(std::string(written[i].name) + " has strides with which two of its elements share memory");
    for (std::size_t j = i + 1; j < written.size(); ++j)
      if (written[i].view.overlaps(written[j].view))
        throw Error(std::string(written[i].name) + " and " + written[j].name + " are both written and overlap");
    for (const Named& other : read)
      if (written[i].view.overlaps(other.view))
        throw Error(std::string(written[i].name) + " is written and overlaps " + other.name + ", which is read");
  }
}

std::vector<Named> all_inputs(const AttentionInputs& inputs) {
  return {{"q", inputs.q},
          {"k", inputs.k},
          {"v", inputs.v},
          {"lengths", inputs.lengths},
          {"head_scale", inputs.head_scale},
          {"head_alpha", inputs.head_alpha},
          {"q_norm.weight", inputs.q_norm_weight},
          {"q_norm.bias", inputs.q_norm_bias},
          {"k_norm.weight", inputs.k_norm_weight},
          {"k_norm.bias", inputs.k_norm_bias}};
}

void check_description(const AttentionDescription& description) {
  const auto finite = [](float value, const char* name) {
    if (!std::isfinite(value)) throw Error(std::string(name) + " is " + std::to_string(value) + ", and must be finite");
  };
  check_custom_score(description.score, description.custom_score);
  finite(description.alpha, "alpha");
  if (description.alpha < 0 || description.alpha > 2)
    throw Error("alpha is " + std::to_string(description.alpha) + ", and must lie in [0, 2]");
  finite(description.divisor, "the divisor");
  if (description.divisor < 0)
    throw Error("the divisor is " + std::to_string(description.divisor) +
                ", and must be positive, or 0 for the number of keys");
  if (description.scale) finite(*description.scale, "scale");
  finite(description.norm_epsilon, "the norm's epsilon");
  if (description.norm_epsilon < 0) throw Error("the norm's epsilon is negative");
}

}  // namespace

void check_custom_score(Score score, const CustomScore& custom) {
  if (score == Score::custom && !custom) throw Error("the score is custom, and no custom_score is given");
  if (score != Score::custom && custom)
    throw Error("the custom score " + custom.name() + " is given, and the score is " + std::string(name_of(score)),
                "set it to Score::custom");
}

AttentionSizes check_inputs(const AttentionDescription& description, const AttentionInputs& inputs) {
  check_description(description);
  const Named q{"q", inputs.q};
  const Named k{"k", inputs.k};
  require_form(q.view.shape().rank() == 4, q, "[B, H, Lq, d]");
  require_form(k.view.shape().rank() == 4, k, "[B, Hkv, Lk, d]");
  const AttentionSizes sizes{q.view.extent(0), q.view.extent(1), k.view.extent(1), q.view.extent(2),
                             k.view.extent(2), q.view.extent(3), q.view.dtype()};
  require_form(base::is_storage(sizes.dtype), q, "f32, bf16 or f16");
  if (!base::is_head_size(sizes.head_size))
    throw Error(described(q) + ": its head size " + std::to_string(sizes.head_size) + " must be " +
                base::head_size_rule());
  if (sizes.kv_heads == 0 || sizes.heads % sizes.kv_heads != 0)
    throw Error(described(q) + " and " + described(k) + ": the " + std::to_string(sizes.heads) +
                " heads of q must be a multiple of the " + std::to_string(sizes.kv_heads) + " heads of k");
  if (sizes.queries < 1 || sizes.keys < 1 || sizes.heads < 1)
    throw Error(described(q) + " and " + described(k) + ": there must be at least one head, one query and one key");
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() / 2;
  if (sizes.queries > most || sizes.keys > most)
    throw Error(described(q) + " and " + described(k) + ": kernels count rows in 32 bits");
  const Shape q_shape{sizes.batch, sizes.heads, sizes.queries, sizes.head_size};
  const Shape k_shape{sizes.batch, sizes.kv_heads, sizes.keys, sizes.head_size};
  require_rows(q, sizes.dtype, q_shape);
  require_rows(k, sizes.dtype, k_shape);
  require_rows({"v", inputs.v}, sizes.dtype, k_shape);
  require_dense({"lengths", inputs.lengths}, DType::i32, Shape{sizes.batch});
  require_dense({"head_scale", inputs.head_scale}, DType::f32, Shape{sizes.heads});
  require_dense({"head_alpha", inputs.head_alpha}, DType::f32, Shape{sizes.heads});
  if (inputs.head_alpha && description.score == Score::softmax)
    throw Error("head_alpha is given, and softmax has no alpha");
  for (const Named& parameter :
       {Named{"q_norm.weight", inputs.q_norm_weight}, Named{"q_norm.bias", inputs.q_norm_bias},
        Named{"k_norm.weight", inputs.k_norm_weight}, Named{"k_norm.bias", inputs.k_norm_bias}}) {
    require_dense(parameter, DType::f32, Shape{sizes.head_size});
    if (parameter.view && !description.qk_norm)
      throw Error(std::string(parameter.name) + " is given, and qk-norm is switched off");
  }
  return sizes;
}

void check_outputs(const AttentionDescription& description, const AttentionSizes& sizes, const AttentionInputs& inputs,
                   const TensorView& o, const TensorView& lse) {
  require_rows({"o", o}, sizes.dtype, inputs.q.shape());
  if (lse && description.score != Score::softmax) throw Error("lse is given, and only softmax has one");
  require_dense({"lse", lse}, DType::f32, Shape{sizes.batch, sizes.heads, sizes.queries});
  require_apart(std::vector<Named>{{"o", o}, {"lse", lse}}, all_inputs(inputs));
}

void check_gradients(const AttentionDescription& description, const AttentionSizes& sizes,
                     const AttentionInputs& inputs, const TensorView& o, const TensorView& lse,
                     const TensorView& o_gradient, const AttentionGradients& gradients) {
  require_rows({"grad_o", o_gradient}, sizes.dtype, inputs.q.shape());
  if (description.score == Score::softmax) {
    if (!o || !lse) throw Error("the backward pass of softmax needs the forward pass's o and lse");
    require_rows({"o", o}, sizes.dtype, inputs.q.shape());
    require_dense({"lse", lse}, DType::f32, Shape{sizes.batch, sizes.heads, sizes.queries});
  }
  require_rows({"dq", gradients.q}, sizes.dtype, inputs.q.shape());
  require_rows({"dk", gradients.k}, sizes.dtype, inputs.k.shape());
  require_rows({"dv", gradients.v}, sizes.dtype, inputs.v.shape());
  const auto parameter = [&](const char* name, const TensorView& gradient, bool there, std::int64_t size) {
    require_dense({name, gradient}, DType::f32, Shape{size});
    if (gradient && !there) throw Error(std::string(name) + " is asked for, and the parameter is not in use");
  };
  parameter("dhead_scale", gradients.head_scale, true, sizes.heads);
  parameter("dhead_alpha", gradients.head_alpha, description.score != Score::softmax, sizes.heads);
  parameter("dq_norm.weight", gradients.q_norm_weight, description.qk_norm, sizes.head_size);
  parameter("dq_norm.bias", gradients.q_norm_bias, description.qk_norm, sizes.head_size);
  parameter("dk_norm.weight", gradients.k_norm_weight, description.qk_norm, sizes.head_size);
  parameter("dk_norm.bias", gradients.k_norm_bias, description.qk_norm, sizes.head_size);
  std::vector<Named> read = all_inputs(inputs);
  read.push_back({"grad_o", o_gradient});
  read.push_back({"o", o});
  read.push_back({"lse", lse});
  require_apart(std::vector<Named>{{"dq", gradients.q},
                                   {"dk", gradients.k},
                                   {"dv", gradients.v},
                                   {"dhead_scale", gradients.head_scale},
                                   {"dhead_alpha", gradients.head_alpha},
                                   {"dq_norm.weight", gradients.q_norm_weight},
                                   {"dq_norm.bias", gradients.q_norm_bias},
                                   {"dk_norm.weight", gradients.k_norm_weight},
                                   {"dk_norm.bias", gradients.k_norm_bias}},
                read);
}

}  // namespace sylvit::nn
