// Any input to the safetensors reader must either be refused with a sylvit::Error or be a file whose tensors tile its
// data and that says the same after it is written again; everything else crashes here.
#include <sylvit/error.hpp>

#include <algorithm>
#include <cstring>
#include <deque>

#include "fuzz/fuzz.hpp"
#include "io/safetensors.hpp"

namespace {

using sylvit::fuzz::require;
using sylvit::io::SafetensorsFile;

void check(const SafetensorsFile& file) {
  std::vector<sylvit::io::OutputTensor> tensors;
  std::deque<std::vector<std::byte>> kept;
  std::string data;
  for (const sylvit::io::TensorInfo& info : file.tensors()) {
    if (!info.foreign.empty()) return;  // it is neither read nor written
    const auto& bytes = kept.emplace_back(file.read_bytes(info));
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
    sylvit::fuzz::require_sentence(error.what());
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

namespace sylvit::fuzz {

std::vector<std::string> seeds() {
  const std::vector<std::byte> bytes(64);
  const auto first = [&](std::size_t count) { return std::span(bytes).first(count); };
  const std::vector<std::vector<io::OutputTensor>> files = {
      {},
      {{"a", DType::f32, {2, 3}, first(24)}},
      {{"a", DType::f64, {2}, first(16)}, {"b.weight", DType::bf16, {3, 1}, first(6)}, {"c", DType::f16, {}, first(2)}},
      {{"i", DType::i64, {2}, first(16)}, {"j", DType::i32, {1}, first(4)}, {"none", DType::f32, {4, 0}, first(0)}},
      {{"flag", DType::boolean, {3}, first(3)}, {"byte", DType::u8, {2, 2}, first(4)}}};
  std::vector<std::string> result;
  for (const std::vector<io::OutputTensor>& tensors : files) {
    std::string file = io::safetensors_header(tensors, {{"format", "pt"}});
    const std::size_t header = file.size() - 8;
    for (const io::OutputTensor& tensor : tensors)
      file.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    // And as LLVMFuzzerTestOneInput makes a file of it: how much data there is, the header, the data.
    result.push_back(static_cast<char>(file.size() - 8 - header) + file.substr(8));
    result.push_back(file);
  }
  return result;
}

std::vector<std::string_view> words() {
  return {"\"dtype\":",
          "\"shape\":",
          "\"data_offsets\":",
          "\"__metadata__\":",
          "\"F32\"",
          "\"BF16\"",
          "\"BOOL\"",
          "\"U16\"",
          "\"F8_E4M3\"",
          "[",
          "]",
          "{",
          "}",
          ",",
          "\"",
          "\\u0000",
          "\\ud800",
          "null",
          "-1",
          "1e3",
          "0",
          "[0,0]",
          "4294967296",
          "9223372036854775807",
          "18446744073709551616"};
}

}  // namespace sylvit::fuzz
