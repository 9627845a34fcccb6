#include "cli/device_tensors.hpp"

#include <sylvit/float16.hpp>

#include <algorithm>

namespace sylvit::cli {

std::vector<std::byte> stored(std::span<const float> values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * size_of(dtype));
  const auto store = [&](auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    std::ranges::transform(values, to, [](float value) { return T(value); });
  };
  if (dtype == DType::bf16)
    store(reinterpret_cast<bf16*>(bytes.data()));
  else if (dtype == DType::f16)
    store(reinterpret_cast<f16*>(bytes.data()));
  else
    store(reinterpret_cast<float*>(bytes.data()));
  return bytes;
}

std::vector<float> widened(std::span<const std::byte> bytes, DType dtype) {
  std::vector<float> values(bytes.size() / size_of(dtype));
  const auto load = [&](const auto* from) { std::copy_n(from, values.size(), values.begin()); };
  if (dtype == DType::bf16)
    load(reinterpret_cast<const bf16*>(bytes.data()));
  else if (dtype == DType::f16)
    load(reinterpret_cast<const f16*>(bytes.data()));
  else
    load(reinterpret_cast<const float*>(bytes.data()));
  return values;
}

void* DeviceTensors::scratch(std::size_t bytes) { return memory_.emplace_back(device_, bytes, purpose_).data(); }

TensorView DeviceTensors::empty(DType dtype, const Shape& shape) {
  return {scratch(static_cast<std::size_t>(shape.elements()) * size_of(dtype)), dtype, shape};
}

TensorView DeviceTensors::upload(std::span<const std::byte> bytes, DType dtype, const Shape& shape) {
  TensorView view = empty(dtype, shape);
  device_.queue().memcpy(view.data(), bytes.data(), bytes.size());
  device_.wait();
  return view;
}

TensorView DeviceTensors::random(DType dtype, const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(generator_);
  return upload(stored(values, dtype), dtype, shape);
}

std::vector<float> DeviceTensors::download(const TensorView& view) const {
  std::vector<std::byte> bytes(view.span_bytes());
  device_.wait();
  device_.queue().memcpy(bytes.data(), view.data(), bytes.size());
  device_.wait();
  return widened(bytes, view.dtype());
}

}  // namespace sylvit::cli
