// Any bytes that begin as a zip file are either a checkpoint of big_vision, all of whose tensors can be read, or are
// refused with a sentence. An input is tried as the file, and as a list of arrays from which a whole zip file is made,
// so that names and shapes are tried that no changed byte of a file would reach: a line is a name, a type, extents.
#include <sylvit/error.hpp>

#include <algorithm>
#include <set>
#include <sstream>

#include "fuzz/fuzz.hpp"
#include "io/npz_writer.hpp"
#include "io/weights_file.hpp"

namespace {

using sylvit::fuzz::require;
using sylvit::io::WeightsFile;

void try_file(std::string bytes) {
  bytes.replace(0, std::min<std::size_t>(4, bytes.size()), "PK\x03\x04");
  try {
    const WeightsFile file = WeightsFile::parse(std::as_bytes(std::span(bytes)), "fuzz");
    require(file.heads().has_value());
    std::uint64_t end = 0;
    for (const sylvit::io::TensorInfo& info : file.tensors()) {
      require(info.begin == end && file.find(info.name) == &info);
      end = info.end;
      require(info.end - info.begin == sylvit::size_of(info.dtype) * static_cast<std::uint64_t>(info.shape.elements()));
      require(file.read_f32(info.name).size() == static_cast<std::size_t>(info.shape.elements()));
    }
  } catch (const sylvit::Error& error) {
    sylvit::fuzz::require_sentence(error.what());
  }
}

/// Members of zeros, small enough that an input takes no time.
std::vector<std::pair<std::string, std::string>> members_of(const std::string& text) {
  constexpr std::size_t most_members = 80;
  constexpr std::int64_t most_elements = 4096;
  std::vector<std::pair<std::string, std::string>> members;
  std::set<std::string> names;
  std::istringstream lines(text);
  for (std::string line; members.size() < most_members && std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::string descr;
    if (!(words >> name >> descr) || name.find('\0') != std::string::npos || !names.insert(name).second) continue;
    std::vector<std::int64_t> shape;
    std::int64_t elements = 1;
    for (std::int64_t extent = 0; words >> extent && shape.size() < 8;) {
      shape.push_back(extent);
      elements *= std::clamp<std::int64_t>(extent, 0, most_elements);
      elements = std::min(elements, most_elements);
    }
    const std::size_t size = descr.back() == '8' ? 8 : descr.back() == '2' ? 2 : 4;
    members.emplace_back(name, sylvit::test::npy_of(sylvit::test::npy_dict(descr, shape),
                                                    std::string(static_cast<std::size_t>(elements) * size, '\0')));
  }
  return members;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("PK")) {
    try_file(text);
  } else {
    std::string bytes;
    try {
      bytes = sylvit::test::npz_of(members_of(text), size % 2 == 0);
    } catch (const std::runtime_error&) {  // libzip takes no such names
      return 0;
    }
    try_file(bytes);
  }
  return 0;
}

namespace sylvit::fuzz {

std::vector<std::string> seeds() {
  const std::string embedding = "embedding/kernel <f4 2 1 1 4\nembedding/bias <f4 4\n";
  const auto block = [](const std::string& path, const std::string& shared, const std::string& query_norm) {
    std::string text;
    const auto add = [&](const std::string& name, const std::string& shape) {
      text += path + name + " <f4 " + shared + shape + "\n";
    };
    for (const char* norm : {"LayerNorm_0", "LayerNorm_1"}) {
      add(norm + std::string("/scale"), "4");
      add(norm + std::string("/bias"), "4");
    }
    const std::string attention = "MultiHeadDotProductAttention_0/";
    for (const char* part : {"query", "key", "value"}) {
      add(attention + part + "/kernel", "4 2 2");
      add(attention + part + "/bias", "2 2");
      if (!query_norm.empty() && part != std::string("value")) add(attention + part + query_norm + "/scale", "2");
    }
    add(attention + "out/kernel", "2 2 4");
    add(attention + "out/bias", "4");
    add("MlpBlock_0/Dense_0/kernel", "4 3");
    add("MlpBlock_0/Dense_0/bias", "3");
    add("MlpBlock_0/Dense_1/kernel", "3 4");
    add("MlpBlock_0/Dense_1/bias", "4");
    return text;
  };
  const std::string rest =
      "Transformer/encoder_norm/scale <f4 4\nTransformer/encoder_norm/bias <f4 4\nhead/kernel <f4 4 3\nhead/bias <f4 "
      "3\n";
  const std::string map =
      "MAPHead_0/probe <f4 1 1 4\nMAPHead_0/LayerNorm_0/scale <f4 4\nMAPHead_0/LayerNorm_0/bias <f4 4\n";
  const std::string positions = "cls <f4 1 1 4\npos_embedding <f4 1 5 4\n";
  const std::string one_by_one = embedding + positions + block("Transformer/encoderblock_0/", "", "_ln") +
                                 block("Transformer/encoderblock_1/", "", "_ln");
  const std::string scanned = embedding + positions + block("Transformer/encoderblock/", "3 ", "");
  std::vector<std::string> result{one_by_one + rest, scanned + rest, scanned + map + rest, embedding};
  // And as files.
  for (const bool deflated : {false, true})
    for (const std::string& text : {scanned + rest, embedding})
      result.push_back(test::npz_of(members_of(text), deflated));
  return result;
}

std::vector<std::string_view> words() {
  return {"embedding/kernel",
          "Transformer/encoderblock_0/",
          "Transformer/encoderblock/",
          "LayerNorm_0/scale",
          "LayerNorm_2/scale",
          "MultiHeadDotProductAttention_1/query/kernel",
          "MlpBlock_3/Dense_0/kernel",
          "MAPHead_0/probe",
          "query_norm/scale",
          "query_ln/bias",
          "params/",
          "opt/target/",
          "params/img/",
          "cls",
          "pos_embedding",
          "Transformer/posembed_input/pos_embedding",
          " <f4 ",
          " <f8 ",
          " |V2 ",
          " 0",
          " 1",
          " 4097",
          " 9223372036854775807",
          "\n",
          "PK\x01\x02",
          "PK\x05\x06",
          "PK\x06\x06"};
}

}  // namespace sylvit::fuzz
