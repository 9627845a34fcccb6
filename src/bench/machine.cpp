#include "bench/machine.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <fmt/chrono.h>
#include <fstream>
#include <iterator>
#include <link.h>
#include <sched.h>
#include <set>
#include <sys/utsname.h>

namespace sylvit::bench {

namespace {

using Named = std::vector<std::pair<std::string, std::string>>;

std::string whole_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Of variables that a SYCL runtime, its backends, its drivers, its threads or this program listen to.
constexpr std::array prefixes{"SYLVIT_",   "SYCL_", "ONEAPI_", "UR_",  "ACPP_", "HIPSYCL_", "OCL_",  "OPENCL_",
                              "CL_CONFIG", "OMP_",  "GOMP_",   "KMP_", "MKL_",  "ONEMKL_",  "TBB_",  "TCM_",
                              "ZE_",       "NEO",   "CUDA_",   "HIP_", "ROCR_", "OPENBLAS", "GOTO_", "BLIS_"};

/// A wheel's folder of metadata is "intel_sycl_rt-2026.2.0.dist-info"; these are the ones that compute or let compute.
constexpr std::array wheels{"intel_sycl_rt", "intel_cmplr_lib_ur", "intel_opencl_rt", "onemkl_sycl_blas", "mkl",
                            "tbb",           "intel_openmp"};

/// The shared libraries that tell the same where there are no wheels.
constexpr std::array libraries{"libsycl.so",   "libacpp-rt.so",  "libintelocl.so", "libOpenCL.so",    "libmkl_core.so",
                               "libtbb.so",    "libopenblas",    "libblis.so",     "libze_loader.so", "libcuda.so",
                               "libcublas.so", "libamdhip64.so", "librocblas.so"};

bool begins_with_any(std::string_view text, const auto& beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view one) { return text.starts_with(one); });
}

/// The wheels that were installed into the prefix whose libraries lie in this folder.
Named wheels_beside(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  Named found;
  std::error_code ignored;
  for (const fs::directory_entry& python : fs::directory_iterator(folder, ignored)) {
    if (!python.path().filename().string().starts_with("python")) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(python.path() / "site-packages", ignored)) {
      const std::string name = entry.path().filename().string();
      const std::size_t dash = name.find('-');
      if (!name.ends_with(".dist-info") || dash == std::string::npos) continue;
      std::string wheel = name.substr(0, dash);
      if (std::ranges::find(wheels, wheel) == wheels.end()) continue;
      std::ranges::replace(wheel, '_', '-');  // as pip writes it
      found.emplace_back(wheel, entry.path().stem().string().substr(dash + 1));
    }
  }
  std::ranges::sort(found);
  return found;
}

/// "/usr/lib/libsycl.so.9.0.0" → libsycl.so, 9.0.0
std::pair<std::string, std::string> library_version(const std::filesystem::path& path) {
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::canonical(path, failed);
  const std::string name = (failed ? path : whole).filename().string();
  const std::size_t end = name.find(".so");
  if (end == std::string::npos || end + 4 >= name.size()) return {name, "unknown"};
  return {name.substr(0, end + 3), name.substr(end + 4)};
}

}  // namespace

std::string compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#elif defined(__GNUC__)
  return "GCC " __VERSION__;
#else
  return "unknown";
#endif
}

std::string now() { return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr))); }

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text;
  for (std::string word; std::getline(file, word, '\0');) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n\"'\\$`&|;<>()*?[]{}~#!") == std::string::npos;
    if (!text.empty()) text += ' ';
    text += plain ? word : fmt::format("'{}'", word);
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> settings_among(std::string_view variables) {
  Named found;
  while (!variables.empty()) {
    const std::string_view one = variables.substr(0, variables.find('\0'));
    variables.remove_prefix(std::min(variables.size(), one.size() + 1));
    const std::size_t equal = one.find('=');
    if (equal != std::string_view::npos && begins_with_any(one, prefixes))
      found.emplace_back(one.substr(0, equal), one.substr(equal + 1));
  }
  std::ranges::sort(found);
  return found;
}

// Not getenv: what the process has set itself since it was started, nobody chose.
std::vector<std::pair<std::string, std::string>> environment() {
  return settings_among(whole_file("/proc/self/environ"));
}

std::string machine_name() {
  utsname system{};
  return uname(&system) == 0 ? system.nodename : "";
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) {
      const std::size_t begin = line.find(": ");
      return begin == std::string::npos ? "" : line.substr(begin + 2);
    }
  return "";
}

std::int64_t usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 0;
}

std::string operating_system() {
  utsname system{};
  return uname(&system) == 0 ? fmt::format("{} {} {}", system.sysname, system.release, system.machine) : "";
}

std::vector<std::pair<std::string, std::string>> packages() {
  std::vector<std::filesystem::path> loaded;
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* list) {
        const std::filesystem::path path = library->dlpi_name;
        if (begins_with_any(path.filename().string(), libraries))
          static_cast<std::vector<std::filesystem::path>*>(list)->push_back(path);
        return 0;
      },
      &loaded);
  Named found;
  std::set<std::filesystem::path> seen;
  for (const std::filesystem::path& path : loaded) {
    const Named beside = wheels_beside(path.parent_path());
    if (beside.empty()) found.push_back(library_version(path));
    if (seen.insert(path.parent_path()).second) found.insert(found.end(), beside.begin(), beside.end());
  }
  return found;
}

}  // namespace sylvit::bench
