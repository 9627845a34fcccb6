// What a report must say of the program and the machine, so that others can tell what ran and run it again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sylvit::bench {

/// Of the sources that this program was built from: twelve digits of the commit, with "-dirty" behind them where files
/// differed from it; "unknown" where git had no answer. CMake writes it at each build.
std::string_view build_commit();
/// "GCC 12.2.0"
std::string compiler();

/// "2026-01-02 03:04 UTC"
std::string now();
/// As it was typed, but for quotes where a word needs them.
std::string command_line();
/// Names and values of the variables that this process was started with and that change what runs or how fast.
std::vector<std::pair<std::string, std::string>> environment();
/// The same, of variables as the system hands them over: each ends with a zero byte.
std::vector<std::pair<std::string, std::string>> settings_among(std::string_view variables);

/// What the machine calls itself.
std::string machine_name();
std::string processor();
/// That this process may use.
std::int64_t usable_cores();
/// "Linux 6.1.0 x86_64"
std::string operating_system();
/// Names and versions of the SYCL runtime, the OpenCL device and the libraries of matrix products in this process: of
/// their wheels, or, where they come from no wheel, of their files.
std::vector<std::pair<std::string, std::string>> packages();

}  // namespace sylvit::bench
