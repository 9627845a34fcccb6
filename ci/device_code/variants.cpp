// The C++ end of ci/device-code: which kernels a tuning table names, what a launch of each asks of a device, and their
// SPIR-V. All speak JSON.
//
//     sylvit_device_variants list <name of the table> <file>…     records of the first file before those of the next
//     sylvit_device_variants describe                             kernels by name on standard input
//     sylvit_device_variants spirv <directory>                    batches of kernels on standard input
//
// The SPIR-V is what the run-time compiler hands to a driver. It needs a device to build for, and the CPU device does:
// the modules do not depend on it.
#include "nn/variants.hpp"

#include <sylvit/device.hpp>
#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "blas/builtin.hpp"
#include "nn/attention_kernels.hpp"
#include "nn/row_kernels.hpp"
#include "nn/training_kernels.hpp"
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

/// What a launch of a kernel asks of a device.
struct Demand {
  int work_items;
  int local_floats;
};

/// Configurations are rows of ints that name their work-items and their local memory in the same few ways.
template <class Config>
Demand demand_of(const Config& config) {
  Demand demand{1, 0};
  if constexpr (requires { config.work_items(); })
    demand.work_items = config.work_items();
  else if constexpr (requires { config.work_items + 0; })
    demand.work_items = config.work_items;
  else
    demand.work_items = config.lanes;
  if constexpr (requires { config.local_floats(); }) demand.local_floats = config.local_floats();
  return demand;
}

struct ConfigKind {
  std::string record_kernel;  ///< what tuning records call the kernels that have it
  std::function<Demand(std::string_view functor, const std::vector<int>& numbers)> demand;
};

template <class Config>
ConfigKind kind(std::string record_kernel) {
  return {std::move(record_kernel), [](std::string_view functor, const std::vector<int>& numbers) {
            std::array<int, sizeof(Config) / sizeof(int)> members{};
            if (numbers.size() != members.size()) throw std::runtime_error("a configuration has too few numbers");
            std::ranges::copy(numbers, members.begin());
            const Config config = std::bit_cast<Config>(members);
            Demand demand = demand_of(config);
            // Kernels that share a configuration with others and ask for less.
            if constexpr (requires { config.local_floats_of_queries(); }) {
              if (functor == "AttentionBackwardQueries") demand.local_floats = config.local_floats_of_queries();
            }
            if constexpr (requires { config.local_floats_of_sum(); }) {
              demand.local_floats =
                  functor == "AttentionLinearSum" ? config.local_floats_of_sum() : config.local_floats_of_product();
            }
            if constexpr (requires { config.lanes + 0; }) {
              if (functor == "GemmPack") demand.work_items = config.lanes;
            }
            return demand;
          }};
}

const std::map<std::string, ConfigKind, std::less<>>& config_kinds() {
  static const std::map<std::string, ConfigKind, std::less<>> kinds{
      {"ElementwiseConfig", kind<kernels::ElementwiseConfig>("elementwise")},
      {"ReduceRowsConfig", kind<kernels::ReduceRowsConfig>("reduce_rows")},
      {"TransposeConfig", kind<kernels::TransposeConfig>("transpose")},
      {"PatchRowsConfig", kind<kernels::PatchRowsConfig>("patch_rows")},
      {"TokensConfig", kind<kernels::TokensConfig>("tokens")},
      {"LossConfig", kind<kernels::LossConfig>("loss")},
      {"OptimizerConfig", kind<kernels::OptimizerConfig>("optimizer")},
      {"LayerNormConfig", kind<kernels::LayerNormConfig>("layer_norm")},
      {"ActivationConfig", kind<kernels::ActivationConfig>("activation")},
      {"ColumnSumsConfig", kind<kernels::ColumnSumsConfig>("column_sums")},
      {"GemmConfig", kind<kernels::GemmConfig>("gemm")},
      {"GemmEpilogueConfig", kind<kernels::GemmEpilogueConfig>("gemm_epilogue")},
      {"AttentionBackwardRowsConfig", kind<kernels::AttentionBackwardRowsConfig>("attention_backward_rows")},
      {"AttentionBackwardHeadSumsConfig", kind<kernels::AttentionBackwardHeadSumsConfig>("head_sums")},
      {"AttentionLinearConfig", kind<kernels::AttentionLinearConfig>("attention_linear")},
      {"AttentionForwardConfig", kind<kernels::AttentionForwardConfig>("attention_forward")},
      {"AttentionBackwardConfig", kind<kernels::AttentionBackwardConfig>("attention_backward")}};
  return kinds;
}

/// "Functor<types, Config{1, 2}>" taken apart.
struct TypeText {
  std::string functor;
  std::string config;
  std::vector<int> numbers;

  explicit TypeText(const std::string& type) {
    const std::size_t open = type.rfind('{');  // the configuration stands last
    const std::size_t close = type.rfind('}');
    if (open == std::string::npos || close == std::string::npos)
      throw std::runtime_error("the kernel " + type + " has no configuration");
    functor = type.substr(0, type.find('<'));
    const std::size_t start = type.find_last_of(" <", open) + 1;
    config = type.substr(start, open - start);
    std::istringstream list(type.substr(open + 1, close - open - 1));
    for (std::string number; std::getline(list, number, ',');) numbers.push_back(std::stoi(number));
  }
};

/// The kernel with what its launch asks for.
Json described(const KernelName& kernel) {
  const TypeText text(kernel.type);
  const auto kind = config_kinds().find(text.config);
  if (kind == config_kinds().end())
    throw std::runtime_error("ci/device_code/variants.cpp does not know " + text.config + " of " + kernel.type);
  const Demand demand = kind->second.demand(text.functor, text.numbers);
  return {{"header", kernel.header},
          {"arguments", kernel.arguments},
          {"type", kernel.type},
          {"sub_group_size", kernel.sub_group_size},
          {"local_memory", kernel.local_memory},
          {"entry", sylvit::runtime::entry_name(kernel)},
          {"functor", text.functor},
          {"record_kernel", kind->second.record_kernel},
          {"work_items", demand.work_items},
          {"local_bytes", kernel.local_memory ? demand.local_floats * static_cast<int>(sizeof(float)) : 0}};
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
  for (const KernelName& kernel : sylvit::nn::variants_of(sylvit::tuning::Table::parse(name, merged.dump())))
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
    for (const Json& kernel : Json::parse(std::cin)) result.push_back(described(kernel_of(kernel)));
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
