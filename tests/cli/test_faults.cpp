// Every command that writes, with a fault at its first operation that changes files, then at its second, and so on
// until it has no more (tests/faults/preload.cpp makes them): the disk has an error there, is full from there on, or
// the process is killed there. Afterwards each target is whole, the old one or the new one, and who did not write it
// said so in one sentence and left with 1.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <random>

#include "io/safetensors.hpp"
#include "support.hpp"
#include "tuning/overlay.hpp"
#include "vit/tiny.hpp"

using namespace sylvit;
using sylvit::test::CommandResult;
using sylvit::test::read_file;
using sylvit::test::run_sylvit;
using sylvit::test::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

struct Command {
  std::string arguments;  ///< DIRECTORY stands for the directory of its targets
  std::string settings = {};
  std::vector<std::string> targets = {};                 ///< within the directory, with something old in them at first
  bool makes_do = false;                                 ///< it goes on when it cannot write
  std::function<void(const fs::path&)> check_left = {};  ///< of what the targets do not show
};

enum class Fault { once, full, kill };

std::string filled_in(std::string text, const std::string& directory) {
  for (std::size_t at = 0; (at = text.find("DIRECTORY", at)) != std::string::npos; at += directory.size())
    text.replace(at, 9, directory);
  return text;
}

void put_old(const Command& command, const fs::path& directory) {
  for (const std::string& target : command.targets) std::ofstream(directory / target) << "old " << target;
}

/// The content of each target after a run without faults.
std::map<std::string, std::string> expected(const Command& command) {
  const TemporaryDirectory directory;
  put_old(command, directory.path());
  const CommandResult result =
      run_sylvit(filled_in(command.arguments, directory.path()), filled_in(command.settings, directory.path()));
  CAPTURE(result.errors);
  REQUIRE(result.exit_code == 0);
  std::map<std::string, std::string> contents;
  for (const std::string& target : command.targets) {
    contents[target] = read_file(directory.path() / target);
    REQUIRE(contents[target] != "old " + target);
  }
  if (command.check_left) command.check_left(directory.path());
  return contents;
}

void check_files(const Command& command, const std::map<std::string, std::string>& contents, const fs::path& directory,
                 Fault fault, bool done) {
  for (const std::string& target : command.targets) {
    CAPTURE(target);
    const std::string now = read_file(directory / target);
    const bool is_new = now == contents.at(target);
    CHECK((is_new || now == "old " + target));
    if (done) CHECK(is_new);
  }
  if (fault != Fault::kill)
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory)) {
      CAPTURE(entry.path());
      const std::string name = entry.path().filename();
      CHECK(name.find(".tmp") == std::string::npos);
      CHECK(name.find(".partial") == std::string::npos);
    }
  if (command.check_left) command.check_left(directory);
}

/// Lets every n-th of its operations fail, up to the last. How many there are.
int walk(const Command& command, Fault fault, int first = 1, int step = 1) {
  const std::map<std::string, std::string> contents = expected(command);
  const std::string library = fs::path(std::getenv("SYLVIT_PROGRAM")).parent_path() / "libsylvit_faults.so";
  REQUIRE(fs::exists(library));
  for (int at = first; at < 1000; at += step) {
    const TemporaryDirectory around;
    const fs::path directory = fs::canonical(around.path()) / "watched";
    const fs::path mark = around.path() / "mark";
    fs::create_directory(directory);
    put_old(command, directory);
    const std::string kind = fault == Fault::once ? "once" : fault == Fault::full ? "full" : "kill";
    const CommandResult result = run_sylvit(
        filled_in(command.arguments, directory),
        filled_in(command.settings, directory) + " ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD='" + library +
            "' SYLVIT_FAULT_IN='" + directory.string() + "' SYLVIT_FAULT_AT=" + std::to_string(at) +
            " SYLVIT_FAULT=" + kind + " SYLVIT_FAULT_MARK='" + mark.string() + "'");
    CAPTURE(command.arguments);
    CAPTURE(kind);
    CAPTURE(at);
    CAPTURE(result.output);
    CAPTURE(result.errors);
    const bool reached = fs::exists(mark);
    if (!reached) CHECK(result.exit_code == 0);
    if (reached && fault == Fault::kill) {
      CHECK(result.exit_code == -1);
    } else if (result.exit_code != 0) {
      CHECK(result.exit_code == 1);
      CHECK(!command.makes_do);
      CHECK(std::ranges::count(result.errors, '\n') == 1);
      CHECK(result.errors.starts_with("sylvit: "));
      CHECK(result.errors.find(directory.string()) != std::string::npos);
    }
    check_files(command, contents, directory, fault, result.exit_code == 0);
    if (command.makes_do) {
      // What is there afterwards, whole or not, is used or passed over.
      const CommandResult again =
          run_sylvit(filled_in(command.arguments, directory), filled_in(command.settings, directory));
      CAPTURE(again.errors);
      CHECK(again.exit_code == 0);
      CHECK(again.errors.empty());
      if (fault != Fault::kill && result.exit_code == 0) CHECK(again.output == result.output);
    }
    if (!reached) return at - 1;
  }
  FAIL("there is no end to its operations");
  return 0;
}

void walk_all(const Command& command, int least) {
  for (const Fault fault : {Fault::once, Fault::full, Fault::kill}) CHECK(walk(command, fault) >= least);
}

const std::string tiny = std::string(test::tiny_vit_options) + " --image-size 8";
const Command init{
    "init --width 16 --depth 1 --heads 1 --mlp 8 --patch 4 --classes 1 --image-size 4 --output "
    "'DIRECTORY/weights'",
    {},
    {"weights"}};

std::vector<float> numbers(std::int64_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

/// A file with one tensor under each of these names.
std::string write_tensors(const fs::path& path, const std::vector<std::string>& names, const Shape& shape) {
  const std::vector<float> values = numbers(shape.elements());
  std::vector<io::OutputTensor> tensors;
  for (const std::string& name : names) tensors.push_back({name, DType::f32, shape, std::as_bytes(std::span(values))});
  io::write_safetensors(path, tensors);
  return path;
}

}  // namespace

TEST_SUITE("cli/faults") {
  TEST_CASE("a disk that fills up while weights are written") { CHECK(walk(init, Fault::full, 1, 4) > 20); }

  TEST_CASE("an output that cannot be written to its end") {
    // A limit on the size of files stands in for a full disk: it counts for standard output, too.
    const std::string image = (test::image_directory() / "grey8.png").string();
    const std::string arguments = "infer --json --seed 1 " + tiny + " " + image;
    const std::string whole = run_sylvit(arguments).output;
    REQUIRE(whole.size() > 512);
    const CommandResult cut = run_sylvit(arguments, R"(sh -c 'trap "" XFSZ; ulimit -f 1; exec "$0" "$@"')");
    CHECK(cut.exit_code == 1);
    CHECK(whole.starts_with(cut.output));
    // In front of it may be what a driver says that has no room for its own files.
    CHECK(cut.errors.ends_with("sylvit: cannot write to standard output\n"));
  }
}

TEST_SUITE("cli/faults_all") {
  TEST_CASE("init") { walk_all(init, 20); }

  TEST_CASE("run attention") {
    const TemporaryDirectory inputs;
    const std::string in = write_tensors(inputs.path() / "in", {"q", "k", "v"}, {1, 2, 9, 16});
    walk_all({"run attention --score relu --input '" + in + "' --output 'DIRECTORY/out'", {}, {"out"}}, 7);
  }

  TEST_CASE("run vit") {
    const TemporaryDirectory inputs;
    const std::string in = write_tensors(inputs.path() / "in", {"images"}, {1, 3, 8, 8});
    walk_all({"run vit --seed 1 " + tiny + " --input '" + in + "' --output 'DIRECTORY/out'", {}, {"out"}}, 7);
  }

  TEST_CASE("compare") {
    const TemporaryDirectory inputs;
    const std::string one = inputs.path() / "one";
    const CommandResult made = run_sylvit("compare --seed 1 " + tiny +
                                          " --dtypes f32 --scores relu --batch 1 --seconds 0 --image-count 1 "
                                          "--judged 1 --forward-only --gradients none --out '" +
                                          one + "'");
    CAPTURE(made.errors);
    REQUIRE(made.exit_code == 0);
    walk_all(
        {"compare --merge '" + one + "/report.json' --out DIRECTORY", {}, {"report.json", "index.html", "report.csv"}},
        20);
  }

  TEST_CASE("tune") {
    const TemporaryDirectory inputs;
    const std::string shapes = inputs.path() / "shapes";
    std::ofstream(shapes) << "layer_norm 64,48\n";
    Command tune{"tune --kernel layer_norm --dtype f32 --candidates 1 --budget 60 --shapes '" + shapes +
                 "' --output DIRECTORY"};
    // A table is not there, or it is whole.
    tune.check_left = [](const fs::path& directory) {
      for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory))
        if (entry.path().extension() == ".json") {
          const tuning::TableFile file = tuning::read_table_file(entry.path());
          CHECK(file.problems.empty());
          CHECK(file.records.size() == 1);
        }
    };
    walk_all(tune, 5);
  }

  TEST_CASE("the kernel cache") {
    Command devices{"devices", "SYLVIT_CACHE_DIR='DIRECTORY/cache/kernels'"};
    devices.makes_do = true;
    walk_all(devices, 5);
  }
}
