// sylvit tune, with few candidates and little work: what it writes, and what it does when it cannot.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support.hpp"
#include "tuning/overlay.hpp"
#include "tuning/record_check.hpp"
#include "tuning/table.hpp"

using sylvit::test::CommandResult;
using sylvit::test::run_sylvit;
using sylvit::test::TemporaryDirectory;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string shapes(const TemporaryDirectory& directory, const std::string& text) {
  std::ofstream(directory.path() / "shapes.txt") << text;
  return (directory.path() / "shapes.txt").string();
}

std::vector<std::filesystem::path> tables(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> found;
  std::error_code failed;
  for (std::filesystem::recursive_directory_iterator it(directory, failed), end; !failed && it != end; ++it)
    if (it->is_regular_file()) found.push_back(it->path());
  return found;
}

}  // namespace

TEST_SUITE("cli/tune") {
  TEST_CASE("an overlay that holds, is used, and is not made twice") {
    const TemporaryDirectory directory;
    const TemporaryDirectory overlay;
    const std::string settings = "SYLVIT_TUNING_DIR='" + overlay.path().string() + "'";
    const std::string arguments = "tune --shapes '" +
                                  shapes(directory,
                                         "# small ones\nattention 1,2,40,32\nattention 1,2,80,32\n"
                                         "gemm 40,64,32\nlayer_norm 64,48\n") +
                                  "' --score relu --budget 600 --candidates 2";
    const CommandResult result = run_sylvit(arguments, settings);
    CAPTURE(result.output);
    CAPTURE(result.errors);
    REQUIRE(result.exit_code == 0);
    CHECK(has(result.output, ": 7 cases"));  // two lengths by two passes, layer norm, gemm, its provider
    REQUIRE(tables(overlay.path()).size() == 1);
    const sylvit::tuning::TableFile file = sylvit::tuning::read_table_file(tables(overlay.path()).front());
    CHECK(file.problems.empty());
    CHECK(file.family.devices == std::vector<std::string>{sylvit::test::device().name()});
    CHECK(file.records.size() >= 5);  // neighbouring lengths may have become one
    for (const sylvit::tuning::Record& record : file.records) {
      CHECK_MESSAGE(sylvit::tuning::flaw_of(record).empty(), sylvit::tuning::flaw_of(record));
      CHECK(record.origin.starts_with("measured: "));
      CHECK(has(record.origin, sylvit::test::device().info().driver));
    }
    CHECK(run_sylvit("tuning check", settings).exit_code == 0);
    for (const char* kernel : {"attention_forward", "layer_norm"}) {
      const CommandResult shown =
          run_sylvit(std::string("tuning show --head-size 32 --length 40 --json --kernel ") + kernel, settings);
      REQUIRE(shown.exit_code == 0);
      CHECK(nlohmann::json::parse(shown.output).at("kernels").at(0).at("chosen").at("file") ==
            tables(overlay.path()).front().string());
    }
    // Nothing that was not measured is changed.
    const CommandResult other = run_sylvit("tuning show --head-size 64 --kernel attention_forward --json", settings);
    CHECK(!has(nlohmann::json::parse(other.output).at("kernels").at(0).at("chosen").at("file"), "sylvit-test"));
    const CommandResult again = run_sylvit(arguments + " --resume", settings);
    CHECK(again.exit_code == 0);
    CHECK(has(again.output, ": 0 cases"));
    // The numbers that it found give right results.
    CHECK(run_sylvit("bench attention --shape 1,2,40,32 --score relu --pass both --seconds 0.1", settings).exit_code ==
          0);
  }

  TEST_CASE("Ctrl-C keeps what is done") {
    const TemporaryDirectory directory;
    std::string many = "layer_norm 64,48\n";  // more than can be done before it is interrupted
    for (int length = 16; length < 1000; ++length) many += "attention 1,2," + std::to_string(length) + ",32\n";
    const std::string path = shapes(directory, many);
    const std::filesystem::path out = directory.path() / "out";
    const std::vector<std::string> arguments{"--score",  "relu", "--candidates", "1",
                                             "--shapes", path,   "--output",     out.string()};
    const auto tune = [&](std::vector<std::string> words) {
      words.insert(words.end(), arguments.begin(), arguments.end());
      return words;
    };
    REQUIRE(sylvit::test::RunningSylvit(tune({"tune", "--kernel", "layer_norm"})).wait().exit_code == 0);
    sylvit::test::RunningSylvit running(tune({"tune", "--resume", "--kernel", "layer_norm,attention_forward"}));
    REQUIRE(running.wait_for_output("relu 1,2,16,32"));  // the first case is done, and written
    running.signal(SIGINT);
    const CommandResult result = running.wait();
    CHECK(result.exit_code == 1);
    CAPTURE(result.errors);
    CHECK(has(result.errors, "interrupted after"));
    CHECK(has(result.errors, "of 984 cases"));  // layer norm was there
    CHECK(has(result.errors, "--resume goes on"));
    REQUIRE(tables(out).size() == 1);
    const sylvit::tuning::TableFile file = sylvit::tuning::read_table_file(tables(out).front());
    CHECK(file.problems.empty());
    CHECK(std::ranges::count(file.records, "layer_norm", &sylvit::tuning::Record::kernel) == 1);
    MESSAGE("interrupted with " << file.records.size() << " records");
  }

  TEST_CASE("what makes no sense is one sentence") {
    const TemporaryDirectory directory;
    const std::string out = " --output '" + directory.path().string() + "'";
    const auto check = [&](const std::string& arguments, const std::string& part) {
      const CommandResult result = run_sylvit("tune " + arguments + out);
      CAPTURE(arguments);
      CAPTURE(result.errors);
      CHECK(result.exit_code == 1);
      CHECK(has(result.errors, part));
    };
    check("--shapes no-such-file", "neither vit nor long nor a file");
    check("--shapes '" + shapes(directory, "\nattention 1,2\n") + "'", "line 2");
    check("--shapes '" + shapes(directory, "attention 1,2,-3,64\n") + "'", "is no shape");
    check("--shapes '" + shapes(directory, "attention 1,2,3,20\n") + "'", "head size 20");
    check("--shapes /dev/zero", "/dev/zero is not a regular file");
    check("--shapes /proc/self/fd/0", "is not a regular file");
    check("--shapes '" + shapes(directory, std::string(2'000'000, '\n')) + "'", "a file of shapes may have 1048576");
    std::string many;
    for (int i = 0; i < 5000; ++i) many += "gemm 8,8,8\n";
    check("--shapes '" + shapes(directory, many) + "'", "more than 4096 shapes");
    check("--shapes '" + shapes(directory, "gemm\x1b[2J 8,8,8\n") + "'", R"("gemm\x1b[2J 8,8,8")");
    check("--shapes '" + shapes(directory, "gemm 8,8,8 9\n") + "'", "line 1");
    check("--shapes '" + shapes(directory, "# nothing\n\n") + "'", "nothing to tune");
    check("--kernel gemm --shapes '" + shapes(directory, "layer_norm 8,8\n") + "'", "nothing to tune");
    check("--kernel layer_norm --budget 1e-9", "0 of 1 cases; give a larger --budget");
    for (const char* wrong : {"--budget 0", "--budget -1", "--budget inf", "--budget nan", "--candidates -1",
                              "--kernel loss", "--dtype f8", "--score softer"})
      CHECK(run_sylvit(std::string("tune ") + wrong + out).exit_code == 2);
    const CommandResult nowhere = run_sylvit("tune", "SYLVIT_TUNING_DIR=");
    CHECK(nowhere.exit_code == 1);
    CHECK(has(nowhere.errors, "SYLVIT_TUNING_DIR"));
  }

  TEST_CASE("a product of a file has a record for itself") {
    const TemporaryDirectory directory;
    const std::filesystem::path out = directory.path() / "out";
    const auto tuned = [&](const std::string& text, const std::string& options, const char* cases) {
      const CommandResult result = run_sylvit("tune --kernel gemm --candidates 1 --budget 600 --shapes '" +
                                              shapes(directory, text) + "' --output '" + out.string() + "'" + options);
      CAPTURE(result.errors);
      CHECK(result.exit_code == 0);
      CHECK(has(result.output, cases));
    };
    tuned("gemm 8,8,8\ngemm 16,8,8\ngemm 40,64,32\n", "", ": 2 cases");  // rows are no case
    tuned("gemm 8,8,8\n", " --resume", ": 0 cases");
    tuned("gemm 8,16,8\n", " --resume", ": 1 cases");
    tuned("gemm 8,8,8\n", " --resume --spread", ": 1 cases");
    REQUIRE(tables(out).size() == 1);
    const auto records = sylvit::tuning::read_table_file(tables(out).front()).records;
    REQUIRE(records.size() == 4);
    using sylvit::tuning::Range;
    CHECK(std::ranges::count(records, Range{8, 8}, &sylvit::tuning::Record::n) == 1);
    CHECK(std::ranges::count(records, Range{64, 64}, &sylvit::tuning::Record::n) == 1);
    CHECK(std::ranges::count(records, Range{32, 32}, &sylvit::tuning::Record::k) == 1);
    // The one for all products stands after those for one each, or these would never be used.
    CHECK(records.back().n.unlimited());
    CHECK(records.back().k.unlimited());
  }

  TEST_CASE("a table that is not sound is not overwritten") {
    const TemporaryDirectory directory;
    const std::string arguments = "tune --kernel layer_norm --budget 1 --candidates 1 --shapes '" +
                                  shapes(directory, "layer_norm 64,48\n") + "' --output '" +
                                  (directory.path() / "out").string() + "'";
    REQUIRE(run_sylvit(arguments).exit_code == 0);
    REQUIRE(tables(directory.path() / "out").size() == 1);
    const std::filesystem::path path = tables(directory.path() / "out").front();
    std::ofstream(path) << "not a table";
    const CommandResult result = run_sylvit(arguments);
    CHECK(result.exit_code == 1);
    CHECK(has(result.errors, "cannot be added to"));
    CHECK(sylvit::test::read_file(path) == "not a table");
  }
}
