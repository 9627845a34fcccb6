// The file that a run command writes: names, shapes, and the f32 values they point to.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "io/safetensors.hpp"

namespace sylvit::cli {

class Results {
 public:
  void add(const std::string& name, const Shape& shape, std::vector<float> values) {
    values_.push_back(std::move(values));
    tensors_.push_back({name, DType::f32, shape, std::as_bytes(std::span(values_.back()))});
  }
  void write(const std::string& path, const io::SafetensorsMetadata& metadata = {}) const {
    io::write_safetensors(path, tensors_, metadata);
  }

 private:
  std::deque<std::vector<float>> values_;
  std::vector<io::OutputTensor> tensors_;
};

}  // namespace sylvit::cli
