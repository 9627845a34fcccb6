// The C++ end of ci/device-code: which kernels a tuning table names, what a launch of each asks of a device, and their
// SPIR-V. All speak JSON.
//
//     sylvit_device_variants list <name of the table> <file>…     records of the first file before those of the next
//     sylvit_device_variants describe                             kernels by their parts on standard input
//     sylvit_device_variants spirv <directory>                    batches of kernels on standard input
//
// The SPIR-V is what the run-time compiler hands to a driver. It needs a device to build for, and the CPU device does:
// the modules do not depend on it.
#include "tuning/variants.hpp"

#include <sylvit/device.hpp>
#include <sylvit/error.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "catalogue/catalogue.hpp"
#include "catalogue/kernel.hpp"
#include "runtime/kernel_cache.hpp"
#include "runtime/kernel_source.hpp"

namespace {

using Json = nlohmann::json;
using sylvit::runtime::KernelName;
namespace experimental = sycl::ext::oneapi::experimental;
namespace kernels = sylvit::kernels;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The kernel with what its launch asks for.
Json described(const KernelName& kernel) {
  return {{"header", kernel.header},
          {"arguments", kernel.arguments},
          {"type", kernel.type},
          {"sub_group_size", kernel.sub_group_size},
          {"local_memory", kernel.local_memory},
          {"entry", sylvit::runtime::entry_name(kernel)},
          {"functor", kernel.functor},
          {"record_kernel", kernel.record},
          {"work_items", kernel.work_items},
          {"local_bytes", kernel.local_floats * static_cast<int>(sizeof(float))}};
}

/// A kernel with a score by its parts: functor, score, dtype, head_size and numbers by name.
KernelName composed(const Json& parts) {
  std::optional<KernelName> found;
  sylvit::catalogue::for_each_kernel([&]<class Described>() {
    if constexpr (Described::parameters == kernels::Parameters::score_type) {
      if (parts.at("functor").get<std::string>() != Described::functor) return;
      const auto config = sylvit::catalogue::config_of<typename Described::Config>(
          [&](std::string_view name) { return parts.at("numbers").at(std::string(name)).template get<int>(); },
          parts.at("head_size").get<int>());
      const sylvit::catalogue::ScoreFunctor score(sylvit::parse_score(parts.at("score").get<std::string>()));
      found = sylvit::catalogue::kernel<Described>(config, score,
                                                   sylvit::parse_dtype(parts.at("dtype").get<std::string>()));
    }
  });
  if (!found) throw std::runtime_error("there is no kernel with a score called " + parts.at("functor").dump());
  return *found;
}

KernelName kernel_of(const Json& json) {
  return {.header = json.at("header").get<std::string>(),
          .arguments = json.at("arguments").get<std::string>(),
          .type = json.at("type").get<std::string>(),
          .sub_group_size = json.at("sub_group_size").get<int>(),
          .local_memory = json.at("local_memory").get<bool>()};
}

Json list(const std::string& name, std::span<const std::string> files) {
  Json merged{{"records", Json::array()}};
  for (const std::string& file : files) {
    const Json table = Json::parse(content_of(file));
    merged["schema"] = table.at("schema");
    for (const Json& record : table.at("records")) merged["records"].push_back(record);
  }
  Json result = Json::array();
  for (const KernelName& kernel : sylvit::tuning::variants_of(sylvit::tuning::Table::parse(name, merged.dump())))
    result.push_back(described(kernel));
  return result;
}

/// The SPIR-V modules inside a SYCLBIN file: one for each sub-group size. A module does not say how long it is, but
/// what follows its first function can only be functions, so it ends where something else begins.
std::vector<std::span<const char>> modules_in(std::span<const char> syclbin) {
  constexpr std::uint32_t magic = 0x07230203;
  constexpr std::size_t header_bytes = 20;
  enum Opcode : std::uint32_t { no_line = 317, line = 8, function = 54, function_end = 56 };
  const auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    if (at + sizeof value <= syclbin.size()) std::memcpy(&value, syclbin.data() + at, sizeof value);
    return value;
  };
  std::vector<std::span<const char>> modules;
  for (std::size_t start = 0; start + header_bytes <= syclbin.size(); ++start) {
    if (word(start) != magic) continue;
    std::size_t end = start + header_bytes;
    std::uint32_t last = 0;
    for (std::size_t at = end; at < syclbin.size();) {
      const std::uint32_t opcode = word(at) & 0xffffU;
      const std::size_t length = (word(at) >> 16U) * sizeof(std::uint32_t);
      const bool goes_on = last != function_end || opcode == function || opcode == line || opcode == no_line;
      if (length == 0 || at + length > syclbin.size() || !goes_on) break;
      at += length;
      last = opcode;
      if (opcode == function_end) end = at;
    }
    modules.push_back(syclbin.subspan(start, end - start));
    start = end - 1;
  }
  return modules;
}

/// The modules of a batch as files in a directory, where they are found again the next time.
std::vector<std::string> module_files(const sylvit::Device& device, const std::filesystem::path& directory,
                                      std::span<const KernelName> batch) {
  const std::string source = sylvit::runtime::source_of(batch);
  std::string key = sylvit::runtime::with_headers(source) + std::to_string(__SYCL_COMPILER_VERSION);
  for (const std::string& option : sylvit::runtime::build_options()) key += " " + option;
  const std::string stem = sylvit::runtime::fingerprint(key);
  const auto path_of = [&](std::size_t i) { return directory / (stem + "-" + std::to_string(i) + ".spv"); };
  std::vector<std::string> files;
  if (std::ifstream list(directory / (stem + ".modules")); list) {
    std::size_t count = 0;
    list >> count;
    while (files.size() < count && std::filesystem::exists(path_of(files.size())))
      files.push_back(path_of(files.size()).string());
    if (count > 0 && files.size() == count) return files;
    files.clear();
  }
  std::string log;
  auto bundle = sylvit::runtime::source_bundle(device.queue().get_context(), source);
  try {
    const std::vector<char> binary =
        experimental::compile(bundle, {device.queue().get_device()},
                              experimental::properties{experimental::build_options{sylvit::runtime::build_options()},
                                                       experimental::save_log{&log}})
            .ext_oneapi_get_content();
    for (const std::span<const char> module : modules_in(binary)) {
      const std::string path = path_of(files.size()).string();
      std::ofstream file(path, std::ios::binary);
      file.write(module.data(), static_cast<std::streamsize>(module.size()));
      if (!file.flush()) throw std::runtime_error("cannot write " + path);
      files.push_back(path);
    }
  } catch (const sycl::exception& error) {
    throw std::runtime_error(std::string(error.what()) + "\n" + log);
  }
  // Written last, so that an interrupted build is begun again.
  std::ofstream(directory / (stem + ".modules")) << files.size() << '\n';
  return files;
}

/// A batch that does not compile is told on standard output and does not keep the others from being built.
void write_all(const std::filesystem::path& directory, const Json& batches) {
  const sylvit::Device device = sylvit::Device::open("opencl:cpu");
  for (const Json& batch : batches) {
    std::vector<KernelName> names;
    for (const Json& kernel : batch.at("kernels")) names.push_back(kernel_of(kernel));
    Json answer{{"name", batch.at("name")}};
    try {
      answer["files"] = module_files(device, directory, names);
    } catch (const std::exception& error) {
      answer["error"] = error.what();
    }
    std::cout << answer.dump() << std::endl;
  }
}

}  // namespace

int main(int count, char** words) try {
  const std::vector<std::string> arguments(words + 1, words + count);
  if (arguments.size() >= 3 && arguments[0] == "list") {
    std::cout << list(arguments[1], std::span(arguments).subspan(2)).dump() << '\n';
  } else if (arguments.size() == 1 && arguments[0] == "describe") {
    Json result = Json::array();
    for (const Json& kernel : Json::parse(std::cin)) result.push_back(described(composed(kernel)));
    std::cout << result.dump() << '\n';
  } else if (arguments.size() == 2 && arguments[0] == "spirv") {
    write_all(arguments[1], Json::parse(std::cin));
  } else {
    throw std::runtime_error("usage: see the top of ci/device_code/variants.cpp");
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
