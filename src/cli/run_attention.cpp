// sylvit run attention: one attention from a safetensors file to another.
#include <sylvit/attention.hpp>
#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <limits>

#include "bench/device_tensors.hpp"
#include "cli/commands.hpp"
#include "cli/results.hpp"
#include "io/messages.hpp"
#include "io/safetensors.hpp"
#include "nn/attention_checks.hpp"
#include "options/attention_options.hpp"
#include "terminal/print.hpp"

namespace sylvit::cli {

namespace {

struct Options {
  std::string input;
  std::string output;
  AttentionOptions attention;
  bool backward = false;
};

/// A tensor of the input file, on the host.
struct HostTensor {
  std::vector<std::byte> bytes;
  DType dtype = DType::f32;
  Shape shape;
  bool there = false;

  TensorView view() { return there ? TensorView(bytes.data(), dtype, shape) : TensorView(); }
};

struct HostInputs {
  HostTensor q, k, v, lengths, head_scale, head_alpha, q_norm_weight, q_norm_bias, k_norm_weight, k_norm_bias, grad_o;

  /// What `make` gives for each tensor, as attention's inputs or their gradients, which have the same names.
  template <class Tensors, class Make>
  Tensors as(const Make& make) {
    return {.q = make(q),
            .k = make(k),
            .v = make(v),
            .head_scale = make(head_scale),
            .head_alpha = make(head_alpha),
            .q_norm_weight = make(q_norm_weight),
            .q_norm_bias = make(q_norm_bias),
            .k_norm_weight = make(k_norm_weight),
            .k_norm_bias = make(k_norm_bias)};
  }
  template <class Make>
  AttentionInputs inputs(const Make& make) {
    auto result = as<AttentionInputs>(make);
    result.lengths = make(lengths);
    return result;
  }
};

HostTensor read_floats(const io::SafetensorsFile& file, const std::string& name, DType dtype) {
  const std::vector<float> values = file.read_f32(name);
  return {stored(values, dtype), dtype, file.at(name).shape, true};
}

/// 32-bit lengths, checked against the number of keys.
HostTensor read_lengths(const io::SafetensorsFile& file, std::int64_t keys) {
  const io::TensorInfo& info = file.at("lengths");
  if (!info.foreign.empty() || (info.dtype != DType::i32 && info.dtype != DType::i64))
    throw Error("lengths in " + file.name() + " is " + info.dtype_text() + ", and must be i32 or i64");
  std::vector<std::int32_t> lengths;
  for (const std::int64_t length : file.read_i64("lengths")) {
    if (length < 0 || length > keys)
      throw Error("lengths[" + std::to_string(lengths.size()) + "] in " + file.name() + " is " +
                  std::to_string(length) + ", and a sequence has 0 to Lk = " + std::to_string(keys) + " keys");
    lengths.push_back(static_cast<std::int32_t>(length));
  }
  const auto bytes = std::as_bytes(std::span(lengths));
  return {{bytes.begin(), bytes.end()}, DType::i32, info.shape, true};
}

/// An alpha that is NaN would make every output of its head one.
HostTensor read_alphas(const io::SafetensorsFile& file) {
  const std::vector<float> values = file.read_f32("head_alpha");
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      throw Error(fmt::format("head_alpha[{}] in {} is {}, and must be finite", i, file.name(), values[i]));
  return read_floats(file, "head_alpha", DType::f32);
}

HostInputs read_inputs(const io::SafetensorsFile& file, const Options& options, DType dtype) {
  HostInputs inputs;
  inputs.q = read_floats(file, "q", dtype);
  inputs.k = read_floats(file, "k", dtype);
  inputs.v = read_floats(file, "v", dtype);
  if (file.find("lengths") != nullptr)
    // A k of another rank is refused by check_inputs, in its own words.
    inputs.lengths =
        read_lengths(file, inputs.k.shape.rank() == 4 ? inputs.k.shape[2] : std::numeric_limits<std::int32_t>::max());
  if (options.backward) inputs.grad_o = read_floats(file, "grad_o", dtype);
  const bool norm = options.attention.qk_norm;
  const bool softmax = options.attention.score == "softmax";
  const std::array optional = {std::tuple{"head_scale", &inputs.head_scale, true, ""},
                               std::tuple{"head_alpha", &inputs.head_alpha, !softmax, "softmax has no alpha"},
                               std::tuple{"q_norm.weight", &inputs.q_norm_weight, norm, "--qk-norm is not given"},
                               std::tuple{"q_norm.bias", &inputs.q_norm_bias, norm, "--qk-norm is not given"},
                               std::tuple{"k_norm.weight", &inputs.k_norm_weight, norm, "--qk-norm is not given"},
                               std::tuple{"k_norm.bias", &inputs.k_norm_bias, norm, "--qk-norm is not given"}};
  for (const auto& [name, tensor, used, reason] : optional) {
    if (file.find(name) == nullptr) continue;
    if (used)
      *tensor = tensor == &inputs.head_alpha ? read_alphas(file) : read_floats(file, name, DType::f32);
    else
      terminal::print(stderr, "sylvit: warning: {} in {} is not used: {}\n", name, file.name(), reason);
  }
  for (const io::TensorInfo& info : file.tensors()) {
    constexpr std::array known = {"q", "k", "v", "lengths", "grad_o"};
    const bool is_optional =
        std::ranges::any_of(optional, [&](const auto& entry) { return info.name == std::get<0>(entry); });
    if (!is_optional && std::ranges::find(known, info.name) == known.end())
      terminal::print(stderr, "sylvit: warning: {} in {} is not used: attention has no such tensor\n",
                      io::in_quotes(info.name), file.name());
  }
  return inputs;
}

void run(const Options& options) {
  const AttentionDescription description = options.attention.description();
  const DType dtype = parse_dtype(options.attention.dtype);
  const io::SafetensorsFile file = io::SafetensorsFile::open(options.input);
  HostInputs host = read_inputs(file, options, dtype);
  const nn::AttentionSizes sizes =
      nn::check_inputs(description, host.inputs([](HostTensor& tensor) { return tensor.view(); }));
  if (options.backward && !(host.grad_o.shape == host.q.shape))
    throw Error("grad_o in " + file.name() + " is " + host.grad_o.shape.text() + ", and must have q's shape " +
                host.q.shape.text());

  const Device device = Device::open(options.attention.device);
  DeviceTensors tensors(device, "attention");
  const auto upload = [&](const HostTensor& tensor) {
    return tensor.there ? tensors.upload(tensor.bytes, tensor.dtype, tensor.shape) : TensorView();
  };
  const AttentionInputs inputs = host.inputs(upload);
  attention_prepare(device, description, inputs, options.backward);
  const TensorView o = tensors.empty(dtype, host.q.shape);
  TensorView lse;
  if (description.score == Score::softmax && options.backward)
    lse = tensors.empty(DType::f32, Shape{sizes.batch, sizes.heads, sizes.queries});
  attention_forward(device, description, inputs, o, lse,
                    tensors.scratch(attention_forward_workspace(device, description, inputs)));
  Results results;
  results.add("o", host.q.shape, tensors.download(o));
  if (options.backward) {
    const auto gradient = [&](const HostTensor& of) {
      return of.there ? tensors.empty(of.dtype, of.shape) : TensorView();
    };
    const auto gradients = host.as<AttentionGradients>(gradient);
    attention_backward(device, description, inputs, o, lse, upload(host.grad_o), gradients,
                       tensors.scratch(attention_backward_workspace(device, description, inputs, gradients)));
    const std::array named = {std::pair{"dq", gradients.q},
                              std::pair{"dk", gradients.k},
                              std::pair{"dv", gradients.v},
                              std::pair{"dhead_scale", gradients.head_scale},
                              std::pair{"dhead_alpha", gradients.head_alpha},
                              std::pair{"dq_norm.weight", gradients.q_norm_weight},
                              std::pair{"dq_norm.bias", gradients.q_norm_bias},
                              std::pair{"dk_norm.weight", gradients.k_norm_weight},
                              std::pair{"dk_norm.bias", gradients.k_norm_bias}};
    for (const auto& [name, view] : named)
      if (view) results.add(name, view.shape(), tensors.download(view));
  }
  results.write(options.output);
}

}  // namespace

void add_run_attention(CLI::App& program) {
  CLI::App* command = program.add_subcommand("attention", "Attention over q, k, v of a safetensors file");
  auto options = std::make_shared<Options>();
  command->add_option("--input", options->input, "Holds q, k, v, and optionally lengths, head_scale, …")->required();
  command->add_option("--output", options->output, "Gets o, and with --backward the gradients, in f32")->required();
  options->attention.add_to(*command);
  command->add_flag("--backward", options->backward, "Also the gradients; the input then holds grad_o");
  command->callback([options] { run(*options); });
}

}  // namespace sylvit::cli
