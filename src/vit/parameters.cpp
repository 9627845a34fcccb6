#include <sylvit/error.hpp>
#include <sylvit/vit.hpp>

#include <atomic>
#include <cmath>

#include "base/counts.hpp"
#include "nn/basic.hpp"
#include "runtime/kernel.hpp"
#include "runtime/memory_error.hpp"
#include "vit/init.hpp"

namespace sylvit {

namespace {

constexpr std::int64_t alignment = base::memory_alignment / sizeof(float);

using base::size;

std::uint64_t next_version() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

/// BigVision's posemb_sincos_2d; zeros for the class token.
std::vector<float> sincos_positions(const VitConfig& config) {
  constexpr double temperature = 10000;
  const std::int64_t quarter = config.width / 4;
  const std::int64_t first = config.class_token ? 1 : 0;
  std::vector<float> positions(size(config.tokens() * config.width), 0.0F);
  for (std::int64_t y = 0; y < config.grid_height(); ++y)
    for (std::int64_t x = 0; x < config.grid_width(); ++x) {
      float* row = positions.data() + (first + y * config.grid_width() + x) * config.width;
      for (std::int64_t i = 0; i < quarter; ++i) {
        const double exponent = quarter > 1 ? static_cast<double>(i) / static_cast<double>(quarter - 1) : 0.0;
        const double frequency = std::pow(temperature, -exponent);
        row[i] = static_cast<float>(std::sin(static_cast<double>(x) * frequency));
        row[quarter + i] = static_cast<float>(std::cos(static_cast<double>(x) * frequency));
        row[2 * quarter + i] = static_cast<float>(std::sin(static_cast<double>(y) * frequency));
        row[3 * quarter + i] = static_cast<float>(std::cos(static_cast<double>(y) * frequency));
      }
    }
  return positions;
}

}  // namespace

VitBuffer::VitBuffer(const Device& device, const VitConfig& config, std::string_view purpose)
    : device_(device), config_(config) {
  config.check();
  // Before they are listed and counted in 64 bits.
  runtime::check_fits(device.info(), vit::parameter_count(config) * sizeof(float), purpose);
  parameters_ = vit_parameters(config);
  for (const VitParameter& parameter : parameters_) {
    index_.emplace(parameter.name, offsets_.size());
    offsets_.push_back(total_);
    total_ += (parameter.shape.elements() + alignment - 1) / alignment * alignment;
  }
  memory_ = Memory(device, size(total_) * sizeof(float), purpose);
  data_ = memory_.as<std::byte>();
  nn::fill(device, flat(), 0.0F);
  device.wait();
}

TensorView VitBuffer::at(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) throw Error("the model has no parameter \"" + std::string(name) + "\"");
  return {data_ + size(offsets_[found->second]) * sizeof(float), DType::f32, parameters_[found->second].shape};
}

std::int64_t VitBuffer::offset(std::string_view name) const {
  return (at(name).as<std::byte>() - data_) / static_cast<std::int64_t>(sizeof(float));
}

TensorView VitBuffer::flat() const { return {data_, DType::f32, {total_}}; }

void VitBuffer::write(std::string_view name, std::span<const float> values) const {
  const TensorView view = at(name);
  if (static_cast<std::int64_t>(values.size()) != view.shape().elements())
    throw Error(std::string(name) + " is " + view.shape().text() + " and was given " + std::to_string(values.size()) +
                " values");
  device_.wait();
  runtime::copy(device_, view.data(), values.data(), values.size_bytes());
  device_.wait();
}

std::vector<float> VitBuffer::read(std::string_view name) const {
  const TensorView view = at(name);
  std::vector<float> values(size(view.shape().elements()));
  device_.wait();
  runtime::copy(device_, values.data(), view.data(), values.size() * sizeof(float));
  device_.wait();
  return values;
}

VitParameters::VitParameters(const Device& device, const VitConfig& config, DType dtype)
    : device_(device), dtype_(dtype), values_(device, config, "the model's parameters"), version_(next_version()) {
  const std::int64_t total = values_.flat().shape().elements();
  if (dtype != DType::f32) copy_ = Memory(device, size(total) * size_of(dtype), "the parameters' 16-bit copy");
  copy_data_ = copy_.as<std::byte>();
  if (config.positions == Positions::sincos) {
    const double count = static_cast<double>(config.tokens()) * static_cast<double>(config.width);
    runtime::check_fits(device.info(), count * sizeof(float), "the positions");
    const std::vector<float> positions = sincos_positions(config);
    sincos_ = Memory(device, positions.size() * sizeof(float), "the positions");
    sincos_data_ = sincos_.as<std::byte>();
    runtime::copy(device, sincos_data_, positions.data(), positions.size() * sizeof(float)).wait();
  }
}

void VitParameters::write(std::string_view name, std::span<const float> values) {
  values_.write(name, values);
  version_ = next_version();
}

void VitParameters::assign(const VitBuffer& values) {
  if (!(values.config() == config())) throw Error("the values are those of another model");
  const TensorView from = values.flat();
  device_.wait();
  runtime::copy(device_, values_.flat().data(), from.data(), from.span_bytes());
  update_copy();
}

TensorView VitParameters::operand(std::string_view name) const {
  const TensorView value = values_.at(name);
  if (dtype_ == DType::f32) return value;
  auto* begin = copy_data_ + size(values_.offset(name)) * size_of(dtype_);
  return {begin, dtype_, value.shape()};
}

TensorView VitParameters::copy() const {
  return dtype_ == DType::f32 ? TensorView() : TensorView(copy_data_, dtype_, values_.flat().shape());
}

TensorView VitParameters::positions() const {
  const VitConfig& model = config();
  void* data = model.positions == Positions::sincos ? sincos_data_ : values_.at("pos_embed").as<std::byte>();
  return {data, DType::f32, {model.tokens(), model.width}};
}

void VitParameters::initialise(std::uint64_t seed) {
  for (const VitParameter& parameter : values_.parameters()) {
    std::vector<float> values(size(parameter.shape.elements()));
    vit::initialise(config(), parameter, seed, values);
    write(parameter.name, values);
  }
  update_copy();
}

void VitParameters::update_copy() {
  if (dtype_ != DType::f32) nn::convert(device_, values_.flat(), copy());
  version_ = next_version();
  device_.wait();
}

}  // namespace sylvit
