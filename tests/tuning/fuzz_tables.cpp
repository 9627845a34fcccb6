// Any bytes are read as a tuning table without a throw. What comes of them is a list of sound records, and a list of
// problems each of which is one line.
#include <sylvit/error.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/printable.hpp"
#include "fuzz/fuzz.hpp"
#include "tuning/record_check.hpp"
#include "tuning/table_file.hpp"

using sylvit::fuzz::require;

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const sylvit::tuning::TableFile file = sylvit::tuning::read_table("fuzz", "dpcpp-cpu", text);
  require(file.name == "fuzz" && file.records.size() + file.problems.size() <= size + 1);
  for (const sylvit::tuning::Problem& problem : file.problems) sylvit::fuzz::require_sentence(problem.text());
  for (const sylvit::tuning::Record& record : file.records) {
    require(record.file == "fuzz" && record.position > 0 && !record.kernel.empty() && !record.origin.empty());
    require(record.providers.empty() == (record.kernel != "gemm_provider"));
    for (const auto& [name, value] : record.numbers) require(value >= 0);
    // Whether the numbers make sense is judged apart.
    if (const std::string flaw = sylvit::tuning::flaw_of(record); !flaw.empty())
      sylvit::fuzz::require_sentence("fuzz: " + sylvit::base::printable(flaw));
  }
  sylvit::DeviceInfo device;
  device.name = "a device";
  device.architecture = "zen3";
  device.sub_group_sizes = {8, 16};
  static_cast<void>(file.family.names(device));
  static_cast<void>(file.family.has_architecture_of(device));
  static_cast<void>(file.family.distance(device));
  return 0;
}

namespace sylvit::fuzz {

/// The tables that the library has, cut to some records, so that one is read in no time.
std::vector<std::string> seeds() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SYLVIT_TABLES))
    if (entry.path().extension() == ".json" && entry.path().filename() != "schema.json") paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> result;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    // A record a line, and the last of those that are kept ends in no comma.
    std::size_t end = text.find("\"records\"");
    for (int line = 0; line < 12 && end != std::string::npos; ++line) end = text.find("},\n", end + 1);
    result.push_back(end == std::string::npos ? text : text.substr(0, end + 1) + "\n]}\n");
    require(sylvit::tuning::read_table("fuzz", "dpcpp-cpu", result.back()).problems.empty());
  }
  require(!result.empty());
  return result;
}

std::vector<std::string_view> words() {
  return {"\"schema\":",
          "\"family\":",
          "\"records\":",
          "\"kernel\":",
          "\"dtypes\":",
          "\"numbers\":",
          "\"origin\":",
          "\"providers\":",
          "\"score_class\":",
          "\"min_length\":",
          "\"max_head_size\":",
          "\"backends\":",
          "\"devices\":",
          "\"architectures\":",
          "\"properties\":",
          "\"gemm\"",
          "\"attention_forward\"",
          "\"layer_norm\"",
          "\"f32\"",
          "\"estimated: x\"",
          "[",
          "]",
          "{",
          "}",
          ",",
          "\"",
          "*",
          "null",
          "true",
          "-1",
          "0",
          "1e9",
          "4294967296",
          "18446744073709551616",
          "\\u001b",
          "\\ud800"};
}

}  // namespace sylvit::fuzz
