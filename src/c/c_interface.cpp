// sylvit/sylvit.h over the C++ interface: checks what C can get wrong, and turns every exception into a status.
#include <sylvit/sylvit.h>
#include <sylvit/sylvit.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

struct sylvit_device {
  sylvit::Device device;
};

namespace sylvit::c {

namespace {

std::string& last_error() {
  thread_local std::string sentence;
  return sentence;
}

/// The call itself was wrong.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

template <class Call>
sylvit_status guarded(const Call& call) noexcept {
  // Keeping the sentence may fail, too, when there is no memory left; then the old one stays.
  const auto failed = [](sylvit_status status, const char* sentence) {
    try {
      last_error() = sentence;
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
    return status;
  };
  try {
    call();
    return SYLVIT_OK;
  } catch (const InvalidArgument& error) {
    return failed(SYLVIT_INVALID_ARGUMENT, error.what());
  } catch (const std::bad_alloc&) {
    return failed(SYLVIT_FAILED, "the host is out of memory");
  } catch (const std::exception& error) {
    return failed(SYLVIT_FAILED, error.what());
  } catch (...) {
    return failed(SYLVIT_FAILED, "it failed for an unknown reason");
  }
}

void require_pointer(const void* pointer, const char* name) {
  if (pointer == nullptr) throw InvalidArgument(std::string(name) + " is null");
}

/// The caller's struct over the defaults; what a caller compiled with an older header does not have is as by default.
/// `name` and `init`: what the struct is, and the macro with its defaults.
template <class Options>
Options completed(const Options* given, Options options, const char* name, const char* init) {
  if (given == nullptr) return options;
  if (given->struct_size < sizeof(size_t) || given->struct_size > 4096)
    throw InvalidArgument("struct_size of " + std::string(name) + " is " + std::to_string(given->struct_size),
                          "initialise it with " + std::string(init));
  std::memcpy(&options, given, std::min(given->struct_size, sizeof(options)));
  return options;
}

std::string text(const char* given) { return given == nullptr ? "" : given; }

Pooling pooling_of(const std::string& name) {
  try {
    return parse_pooling(name);
  } catch (const Error& error) {
    throw InvalidArgument(error.failure(), error.advice());
  }
}

/// What the options say, over what a file tells, if there is one.
VitConfig config_of(const sylvit_model_options& options, const std::optional<VitWeights>& weights) {
  VitConfig config = weights ? weights->guess() : VitConfig();
  if (options.model != nullptr) {
    const VitConfig preset = vit_preset(options.model);
    const std::int64_t rows = config.grid_height();
    const std::int64_t columns = config.grid_width();
    config.width = preset.width;
    config.depth = preset.depth;
    config.heads = preset.heads;
    config.mlp = preset.mlp;
    config.patch = preset.patch;
    if (weights) {
      config.image_height = rows * config.patch;
      config.image_width = columns * config.patch;
    }
  }
  if (options.score != nullptr) config.score = parse_score(options.score);
  if (options.pooling != nullptr) {
    config.pooling = pooling_of(options.pooling);
    config.norm_after_pooling = false;
  }
  if (options.alpha >= 0) config.alpha = options.alpha;
  if (options.gelu_tanh != 0) config.gelu_tanh = true;
  if (options.heads != 0) config.heads = options.heads;
  if (options.image_size != 0) config.image_height = config.image_width = options.image_size;
  if (!weights) return config;
  config = weights->adapt(config);
  if (options.override_file == 0)
    if (const std::string sentence = weights->contradiction(config); !sentence.empty())
      throw InvalidArgument(sentence, "leave the option out, or set override_file");
  if (config.score == Score::custom)
    throw Error(weights->name() + " was written for the custom score \"" + weights->custom_score() +
                    "\", whose code only C++ can give",
                "set score and override_file for another");
  return config;
}

}  // namespace

}  // namespace sylvit::c

/// Images go in and logits come out through memory of the device that is there from the beginning.
struct sylvit_model {
  sylvit::Device device;
  sylvit::VitConfig config;
  sylvit::VitOptions options;
  sylvit::VitParameters parameters;
  sylvit::Vit vit;
  sylvit::Memory images, logits;

  sylvit_model(const sylvit::Device& on, const sylvit::VitConfig& model, const sylvit::VitOptions& wanted)
      : device(on),
        config(model),
        options(wanted),
        parameters(on, model, wanted.dtype),
        vit(on, model, wanted),
        images(on, bytes(wanted.batch * image_values()), "the images"),
        logits(on, bytes(wanted.batch * model.classes), "the logits") {}

  std::int64_t image_values() const { return config.channels * config.image_height * config.image_width; }
  static std::size_t bytes(std::int64_t floats) { return static_cast<std::size_t>(floats) * sizeof(float); }

  void run(const float* from, std::int64_t batch, float* to_logits, float* to_features) try {
    sycl::queue& queue = device.queue();
    const sycl::event copied = queue.memcpy(images.data(), from, bytes(batch * image_values()));
    const sylvit::TensorView image_view(images.data(), sylvit::DType::f32,
                                        {batch, config.channels, config.image_height, config.image_width});
    const sylvit::TensorView logit_view(logits.data(), sylvit::DType::f32, {batch, config.classes});
    const sycl::event done = vit.forward(parameters, image_view, logit_view, {&copied, 1});
    if (to_logits != nullptr) queue.memcpy(to_logits, logits.data(), bytes(batch * config.classes), done);
    const sylvit::TensorView features = vit.features();
    const auto count = static_cast<std::size_t>(features.shape().elements());
    std::vector<std::byte> stored(to_features == nullptr ? 0 : features.span_bytes());
    if (to_features != nullptr) queue.memcpy(stored.data(), features.data(), stored.size(), done);
    device.wait();
    if (to_features != nullptr) widen(features.dtype(), stored, {to_features, count});
  } catch (...) {
    // Copies from and to the caller's memory may be under way.
    device.queue().wait();
    throw;
  }

 private:
  template <class T>
  static void widen_as(const std::vector<std::byte>& stored, std::span<float> to) {
    for (std::size_t i = 0; i < to.size(); ++i) {
      T value;
      std::memcpy(&value, stored.data() + i * sizeof(T), sizeof(T));
      to[i] = static_cast<float>(value);
    }
  }

  static void widen(sylvit::DType dtype, const std::vector<std::byte>& stored, std::span<float> to) {
    if (dtype == sylvit::DType::bf16)
      widen_as<sylvit::bf16>(stored, to);
    else if (dtype == sylvit::DType::f16)
      widen_as<sylvit::f16>(stored, to);
    else
      widen_as<float>(stored, to);
  }
};

namespace sylvit::c {

namespace {

sylvit_model* make_model(const sylvit_device& on, const sylvit_model_options* given,
                         const std::optional<VitWeights>& weights, std::uint64_t seed) {
  const sylvit_model_options options =
      completed<sylvit_model_options>(given, SYLVIT_MODEL_OPTIONS_INIT, "the options", "SYLVIT_MODEL_OPTIONS_INIT");
  constexpr std::size_t most = std::size_t{1} << 20;
  if (options.batch > most)
    throw InvalidArgument("a batch of " + std::to_string(options.batch) + " images is more than " +
                          std::to_string(most));
  const VitOptions wanted{.dtype = options.dtype == nullptr ? DType::f32 : parse_dtype(options.dtype),
                          .batch = std::max<std::int64_t>(1, static_cast<std::int64_t>(options.batch)),
                          .constant = true};
  const VitConfig config = config_of(options, weights);
  config.check();
  auto model = std::make_unique<sylvit_model>(on.device, config, wanted);
  if (!weights)
    model->parameters.initialise(seed);
  else if (weights->load(model->parameters, Contradictions::allowed))
    on.device.warn("the positions of " + weights->name() + " were interpolated to " +
                   std::to_string(config.grid_height()) + " x " + std::to_string(config.grid_width()) + " patches");
  return model.release();
}

/// A dense f32 tensor on the device for one of the caller's.
class Tensor {
 public:
  Tensor(const Device& device, const char* name, const Shape& shape)
      : device_(device), memory_(device, bytes_of(shape, name), name), view_(memory_.data(), DType::f32, shape) {}

  const TensorView& view() const { return view_; }
  void copy_from(const float* host) { device_.queue().memcpy(memory_.data(), host, memory_.bytes()); }
  void copy_to(float* host) const { device_.queue().memcpy(host, memory_.data(), memory_.bytes()); }

 private:
  static std::size_t bytes_of(const Shape& shape, const char* name) {
    const auto elements = static_cast<std::size_t>(shape.elements());
    if (elements > std::numeric_limits<std::ptrdiff_t>::max() / sizeof(float))
      throw Error(std::string(name) + " of " + shape.text() + " is larger than any memory");
    return elements * sizeof(float);
  }

  const Device& device_;
  Memory memory_;
  TensorView view_;
};

/// Attention over the caller's memory. The device's queue is in-order: Device::open made it.
class HostAttention {
 public:
  HostAttention(const sylvit_device& on, const sylvit_attention* given, const float* q, const float* k, const float* v)
      : device_(on.device),
        attention_(checked(given)),
        description_(description_of(attention_)),
        q_(device_, "q", of_queries()),
        k_(device_, "k", of_keys()),
        v_(device_, "v", of_keys()),
        o_(device_, "o", of_queries()) {
    require_pointer(q, "q");
    require_pointer(k, "k");
    require_pointer(v, "v");
    q_.copy_from(q);
    k_.copy_from(k);
    v_.copy_from(v);
    inputs_ = {.q = q_.view(), .k = k_.view(), .v = v_.view()};
    if (attention_.lengths != nullptr) {
      const std::span<const std::int32_t> lengths(attention_.lengths, static_cast<std::size_t>(attention_.batch));
      check_lengths(lengths, attention_.keys);
      lengths_ = Memory(device_, lengths.size_bytes(), "the lengths");
      device_.queue().memcpy(lengths_.data(), lengths.data(), lengths.size_bytes());
      inputs_.lengths = TensorView(lengths_.data(), DType::i32, {attention_.batch});
    }
    if (is_softmax()) lse_.emplace(device_, "lse", Shape{attention_.batch, attention_.heads, attention_.queries});
  }

  /// Copies and kernels may be under way when something throws; so all that they use are members.
  ~HostAttention() {
    try {
      device_.queue().wait();
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
  }
  HostAttention(const HostAttention&) = delete;
  HostAttention& operator=(const HostAttention&) = delete;

  void forward(float* o, float* lse) {
    require_pointer(o, "o");
    if (lse != nullptr && !is_softmax()) throw InvalidArgument("lse is given, and only softmax has one");
    workspace_ = Memory(device_, attention_forward_workspace(device_, description_, inputs_), "the workspace");
    attention_forward(device_, description_, inputs_, o_.view(), view_of(lse_), workspace_.data());
    o_.copy_to(o);
    if (lse != nullptr) lse_->copy_to(lse);
    device_.wait();
  }

  void backward(const float* o, const float* lse, const float* o_gradient, float* q_gradient, float* k_gradient,
                float* v_gradient) {
    if (is_softmax() && (o == nullptr || lse == nullptr))
      throw InvalidArgument(std::string(o == nullptr ? "o" : "lse") + " is null",
                            "the backward pass of softmax needs both from the forward pass");
    require_pointer(o_gradient, "o_gradient");
    require_pointer(q_gradient, "q_gradient");
    require_pointer(k_gradient, "k_gradient");
    require_pointer(v_gradient, "v_gradient");
    if (is_softmax()) {
      o_.copy_from(o);
      lse_->copy_from(lse);
    }
    o_gradient_.emplace(device_, "o_gradient", of_queries());
    q_gradient_.emplace(device_, "q_gradient", of_queries());
    k_gradient_.emplace(device_, "k_gradient", of_keys());
    v_gradient_.emplace(device_, "v_gradient", of_keys());
    o_gradient_->copy_from(o_gradient);
    const AttentionGradients gradients{.q = q_gradient_->view(), .k = k_gradient_->view(), .v = v_gradient_->view()};
    workspace_ =
        Memory(device_, attention_backward_workspace(device_, description_, inputs_, gradients), "the workspace");
    attention_backward(device_, description_, inputs_, is_softmax() ? o_.view() : TensorView(), view_of(lse_),
                       o_gradient_->view(), gradients, workspace_.data());
    q_gradient_->copy_to(q_gradient);
    k_gradient_->copy_to(k_gradient);
    v_gradient_->copy_to(v_gradient);
    device_.wait();
  }

 private:
  static sylvit_attention checked(const sylvit_attention* given) {
    require_pointer(given, "attention");
    sylvit_attention attention =
        completed<sylvit_attention>(given, SYLVIT_ATTENTION_INIT, "the attention", "SYLVIT_ATTENTION_INIT");
    if (attention.kv_heads == 0) attention.kv_heads = attention.heads;
    if (attention.keys == 0) attention.keys = attention.queries;
    for (const auto& [name, value] : {std::pair{"batch", attention.batch},
                                      {"heads", attention.heads},
                                      {"kv_heads", attention.kv_heads},
                                      {"queries", attention.queries},
                                      {"keys", attention.keys},
                                      {"head_size", attention.head_size}})
      if (value < 1)
        throw InvalidArgument(std::string(name) + " is " + std::to_string(value) + ", and must be at least 1");
    return attention;
  }

  static AttentionDescription description_of(const sylvit_attention& attention) {
    AttentionDescription description{.divisor = attention.divisor, .causal = attention.causal != 0};
    if (attention.score != nullptr) description.score = parse_score(attention.score);
    if (!(attention.alpha < 0)) description.alpha = attention.alpha;
    if (attention.scale != 0) description.scale = attention.scale;
    return description;
  }

  Shape of_queries() const { return {attention_.batch, attention_.heads, attention_.queries, attention_.head_size}; }
  Shape of_keys() const { return {attention_.batch, attention_.kv_heads, attention_.keys, attention_.head_size}; }
  bool is_softmax() const { return description_.score == Score::softmax; }
  static TensorView view_of(const std::optional<Tensor>& tensor) { return tensor ? tensor->view() : TensorView(); }

  const Device& device_;
  sylvit_attention attention_;
  AttentionDescription description_;
  Tensor q_, k_, v_, o_;
  std::optional<Tensor> lse_, o_gradient_, q_gradient_, k_gradient_, v_gradient_;
  Memory lengths_, workspace_;
  AttentionInputs inputs_;
};

}  // namespace

}  // namespace sylvit::c

using sylvit::c::guarded;
using sylvit::c::require_pointer;

const char* sylvit_version() { return sylvit::version; }
const char* sylvit_last_error() { return sylvit::c::last_error().c_str(); }

sylvit_status sylvit_device_open(const char* selector, sylvit_device** device) {
  return guarded([&] {
    require_pointer(device, "device");
    *device = std::make_unique<sylvit_device>(sylvit_device{sylvit::Device::open(sylvit::c::text(selector))}).release();
  });
}

const char* sylvit_device_name(const sylvit_device* device) {
  return device == nullptr ? "" : device->device.name().c_str();
}

void sylvit_device_close(sylvit_device* device) { const std::unique_ptr<sylvit_device> owner(device); }

sylvit_status sylvit_model_load(const sylvit_device* device, const char* path, const sylvit_model_options* options,
                                sylvit_model** model) {
  return guarded([&] {
    require_pointer(device, "device");
    require_pointer(path, "path");
    require_pointer(model, "model");
    *model = sylvit::c::make_model(*device, options, sylvit::VitWeights(path), 0);
  });
}

sylvit_status sylvit_model_random(const sylvit_device* device, uint64_t seed, const sylvit_model_options* options,
                                  sylvit_model** model) {
  return guarded([&] {
    require_pointer(device, "device");
    require_pointer(model, "model");
    *model = sylvit::c::make_model(*device, options, std::nullopt, seed);
  });
}

sylvit_status sylvit_model_get_info(const sylvit_model* model, sylvit_model_info* info) {
  return guarded([&] {
    require_pointer(model, "model");
    require_pointer(info, "info");
    if (info->struct_size < sizeof(size_t) || info->struct_size > 4096)
      throw sylvit::c::InvalidArgument("struct_size of the info is " + std::to_string(info->struct_size),
                                       "set it to sizeof(sylvit_model_info)");
    const sylvit::VitConfig& config = model->config;
    const sylvit_model_info full{info->struct_size,  model->options.batch, config.channels, config.image_height,
                                 config.image_width, config.classes,       config.width};
    std::memcpy(info, &full, std::min(full.struct_size, sizeof(full)));
  });
}

sylvit_status sylvit_model_run(sylvit_model* model, const float* images, size_t batch, float* logits, float* features) {
  return guarded([&] {
    require_pointer(model, "model");
    require_pointer(images, "images");
    if (batch < 1 || batch > static_cast<std::size_t>(model->options.batch))
      throw sylvit::c::InvalidArgument("a batch of " + std::to_string(batch) +
                                       " images was given to a model made for 1 to " +
                                       std::to_string(model->options.batch));
    model->run(images, static_cast<std::int64_t>(batch), logits, features);
  });
}

sylvit_status sylvit_attention_forward(const sylvit_device* device, const sylvit_attention* attention, const float* q,
                                       const float* k, const float* v, float* o, float* lse) {
  return guarded([&] {
    require_pointer(device, "device");
    sylvit::c::HostAttention(*device, attention, q, k, v).forward(o, lse);
  });
}

sylvit_status sylvit_attention_backward(const sylvit_device* device, const sylvit_attention* attention, const float* q,
                                        const float* k, const float* v, const float* o, const float* lse,
                                        const float* o_gradient, float* q_gradient, float* k_gradient,
                                        float* v_gradient) {
  return guarded([&] {
    require_pointer(device, "device");
    sylvit::c::HostAttention(*device, attention, q, k, v)
        .backward(o, lse, o_gradient, q_gradient, k_gradient, v_gradient);
  });
}

void sylvit_model_free(sylvit_model* model) { const std::unique_ptr<sylvit_model> owner(model); }
