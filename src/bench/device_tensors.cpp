#include "bench/device_tensors.hpp"

#include <sylvit/float16.hpp>

#include <algorithm>
#include <limits>

#include "runtime/kernel.hpp"
#include "runtime/memory_error.hpp"

namespace sylvit::bench {

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

void* DeviceTensors::scratch(std::size_t bytes) {
  // Each allocation may succeed where all of them together are more than there is: the system then ends the program.
  const DeviceInfo& info = device_.info();
  if (taken_ > 0 && bytes <= info.memory_bytes && bytes > info.memory_bytes - std::min(taken_, info.memory_bytes))
    throw runtime::memory_error(info, bytes, purpose_, ", of which it takes " + readable_bytes(taken_) + " already");
  void* data = memory_.emplace_back(device_, bytes, purpose_).data();
  taken_ += bytes;
  return data;
}

TensorView DeviceTensors::empty(DType dtype, const Shape& shape) {
  // What 64 bits cannot count becomes what no device has.
  const auto elements = static_cast<std::size_t>(shape.elements());
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  return {scratch(elements > most / size_of(dtype) ? most : elements * size_of(dtype)), dtype, shape};
}

TensorView DeviceTensors::upload(std::span<const std::byte> bytes, DType dtype, const Shape& shape) {
  TensorView view = empty(dtype, shape);
  runtime::copy(device_, view.data(), bytes.data(), bytes.size());
  device_.wait();
  return view;
}

TensorView DeviceTensors::random(DType dtype, const Shape& shape) {
  TensorView view = empty(dtype, shape);
  fill_randomly(view);
  return view;
}

void DeviceTensors::fill_randomly(const TensorView& view) {
  constexpr std::size_t piece = std::size_t{1} << 22;  // the host never holds a second copy of a large tensor
  std::normal_distribution<float> normal;
  std::vector<float> values;
  const auto count = static_cast<std::size_t>(view.shape().elements());
  for (std::size_t first = 0; first < count; first += piece) {
    std::vector<std::byte> bytes;
    // The numbers are made for the copy alone, which a rehearsal leaves out.
    runtime::submit_other(device_, "random numbers", [&](sycl::queue& queue) {
      values.resize(std::min(piece, count - first));
      for (float& value : values) value = normal(generator_);
      bytes = stored(values, view.dtype());
      return queue.memcpy(view.as<std::byte>() + first * size_of(view.dtype()), bytes.data(), bytes.size());
    });
    device_.wait();
  }
}

std::vector<float> DeviceTensors::download(const TensorView& view) const {
  std::vector<std::byte> bytes(view.span_bytes());
  device_.wait();
  runtime::copy(device_, bytes.data(), view.data(), bytes.size());
  device_.wait();
  return widened(bytes, view.dtype());
}

}  // namespace sylvit::bench
