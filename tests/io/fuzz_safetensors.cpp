// libFuzzer entry for the safetensors reader, built on request with clang:
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/io/fuzz_safetensors.cpp
//     src/io/{safetensors,files,messages,tensor_list}.cpp src/runtime/tensor.cpp -o fuzz_safetensors
//   ./fuzz_safetensors -max_len=4096 corpus
// Any input must either be refused with a sylvit::Error or be a file whose tensors tile its data and that says the
// same after it is written again; everything else crashes here.
#include <sylvit/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "io/safetensors.hpp"

namespace {

using sylvit::io::SafetensorsFile;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const SafetensorsFile& file) {
  std::vector<sylvit::io::OutputTensor> tensors;
  std::string data;
  for (const sylvit::io::TensorInfo& info : file.tensors()) {
    if (!info.foreign.empty()) return;  // it is neither read nor written
    const auto bytes = file.bytes(info);
    require(info.begin == data.size());
    require(bytes.size() == sylvit::size_of(info.dtype) * static_cast<std::size_t>(info.shape.elements()));
    require(file.find(info.name) == &info);
    data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    tensors.push_back({info.name, info.dtype, info.shape, bytes});
    try {
      static_cast<void>(file.read_f32(info.name));
    } catch (const sylvit::Error&) {
      if (info.dtype != sylvit::DType::boolean) static_cast<void>(file.read_i64(info.name));
    }
  }
  const std::string written = sylvit::io::safetensors_header(tensors, file.metadata()) + data;
  const SafetensorsFile again = SafetensorsFile::parse(std::as_bytes(std::span(written)), "again");
  require(again.metadata() == file.metadata());
  require(again.tensors().size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    require(again.tensors()[i].name == tensors[i].name);
    require(again.tensors()[i].dtype == tensors[i].dtype);
    require(again.tensors()[i].shape == tensors[i].shape);
  }
}

void try_file(std::span<const std::byte> bytes) {
  try {
    const SafetensorsFile file = SafetensorsFile::parse(bytes, "fuzz");
    try {
      check(file);
    } catch (const sylvit::Error&) {
      std::abort();  // what was accepted must be readable and writable
    }
  } catch (const sylvit::Error& error) {
    require(std::strncmp(error.what(), "fuzz", 4) == 0 && std::strchr(error.what(), '\n') == nullptr);
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try_file(bytes);
  // The length is hard to guess, so the input is also tried as a header followed by data: its first byte says how many.
  if (size > 0) {
    const std::uint64_t length = size - 1 - std::min<std::size_t>(data[0], size - 1);
    std::vector<std::byte> file(8);
    std::memcpy(file.data(), &length, 8);
    file.insert(file.end(), bytes.begin() + 1, bytes.end());
    try_file(file);
  }
  return 0;
}
