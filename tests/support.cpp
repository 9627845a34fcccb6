#include "support.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

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

std::filesystem::path test_directory() { return SYLVIT_TEST_FOLDER; }

std::filesystem::path image_directory() { return test_directory() / "images" / "data"; }

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

RunningSylvit::RunningSylvit(const std::vector<std::string>& arguments) {
  const char* program = std::getenv("SYLVIT_PROGRAM");
  REQUIRE_MESSAGE(program != nullptr, "SYLVIT_PROGRAM must name the program (ctest sets it)");
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const std::string out = (directory_.path() / "out").string();
  const std::string err = (directory_.path() / "err").string();
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  REQUIRE(posix_spawn(&process_, program, &files, nullptr, pointers.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&files);
}

RunningSylvit::~RunningSylvit() {
  if (ended_) return;
  signal(SIGKILL);
  ended(0);
}

bool RunningSylvit::ended(int options) {
  if (!ended_ && waitpid(process_, &status_, options) == process_) ended_ = true;
  return ended_;
}

bool RunningSylvit::wait_for_output(const std::string& text) {
  const std::filesystem::path out = directory_.path() / "out";
  for (;;) {
    const bool last = ended(WNOHANG);
    if (std::filesystem::exists(out) && read_file(out).find(text) != std::string::npos) return true;
    if (last) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void RunningSylvit::signal(int number) const {
  if (!ended_) kill(process_, number);
}

CommandResult RunningSylvit::wait() {
  ended(0);
  const int code = WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  return {code > 128 ? -1 : code, read_file(directory_.path() / "out"), read_file(directory_.path() / "err"), 0};
}

}  // namespace sylvit::test
