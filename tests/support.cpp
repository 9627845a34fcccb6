#include "support.hpp"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdlib.h>
#include <sys/wait.h>

#include "tuning/variants.hpp"

namespace sylvit::test {

const Device& device() {
  static const Device opened = [] {
    const Device first = Device::open();
    // One batch instead of a build for each test.
    runtime::prepare(first, tuning::variants_of(tuning::table_for(first), "elementwise"));
    return first;
  }();
  return opened;
}

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "sylvit-test-XXXXXX").string();
  REQUIRE(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Setting::Setting(const char* name, const std::string& value) : name_(name) {
  if (const char* old = std::getenv(name); old != nullptr) old_ = old;
  setenv(name, value.c_str(), 1);
}

Setting::~Setting() { old_.empty() ? unsetenv(name_) : setenv(name_, old_.c_str(), 1); }

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), "cannot open " << path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::filesystem::path image_directory() { return std::filesystem::path(SYLVIT_TEST_FOLDER) / "images" / "data"; }

CommandResult run_sylvit(const std::string& arguments, const std::string& environment) {
  const char* program = std::getenv("SYLVIT_PROGRAM");
  REQUIRE_MESSAGE(program != nullptr, "SYLVIT_PROGRAM must name the program (ctest sets it)");
  const TemporaryDirectory directory;
  const std::string out = (directory.path() / "out").string();
  const std::string err = (directory.path() / "err").string();
  const std::string line =
      "env " + environment + " '" + program + "' " + arguments + " >'" + out + "' 2>'" + err + "' </dev/null";
  const auto start = std::chrono::steady_clock::now();
  const int status = std::system(line.c_str());
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return {code > 128 ? -1 : code, read_file(out), read_file(err), time.count()};
}

}  // namespace sylvit::test
