// A user's own tables: found first, and whatever they hold, never an exception and never a wrong result.
#include <fstream>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

#include "nn/attention_case.hpp"
#include "support.hpp"
#include "tuning/overlay.hpp"
#include "tuning/table.hpp"

using namespace sylvit;
using sylvit::test::device;

namespace {

/// An overlay directory with files for the backend of the device that tests run on.
class Overlay {
 public:
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path folder = directory_.path() / tuning::backend_of(device().info());
    std::filesystem::create_directories(folder);
    std::ofstream(folder / name, std::ios::binary) << text;
  }
  std::string directory() const { return directory_.path().string(); }

 private:
  test::TemporaryDirectory directory_;
};

std::string table(const std::string& records, const std::string& family = "") {
  return R"({"schema": 1, )" + (family.empty() ? "" : R"("family": )" + family + ", ") + R"("records": [)" + records +
         "]}";
}

std::string layer_norm(int rows) {
  const tuning::Record& own = tuning::table_for(device().info()).find({.kernel = "layer_norm"});
  return R"({"kernel": "layer_norm", "numbers": {"lanes": )" + std::to_string(own.number("lanes")) +
         R"(, "columns": )" + std::to_string(own.number("columns")) + R"(, "rows": )" + std::to_string(rows) +
         R"(}, "origin": "measured"})";
}

/// Some other thing that the device runs: ahead of time, only what is compiled in.
bool any_tile_can_be_built() { return device().info().toolchain == Toolchain::rtc; }

int rows_in_use() { return tuning::table_for(device().info()).find({.kernel = "layer_norm"}).number("rows"); }

}  // namespace

TEST_SUITE("tuning/overlay") {
  TEST_CASE("where the directory is") {
    {
      const test::Setting setting("SYLVIT_TUNING_DIR", "/some/where");
      CHECK(tuning_overlay_directory() == "/some/where");
    }
    {
      const test::Setting setting("SYLVIT_TUNING_DIR", "");
      CHECK(tuning_overlay_directory().empty());
    }
    unsetenv("SYLVIT_TUNING_DIR");
    {
      const test::Setting setting("XDG_CONFIG_HOME", "/config");
      CHECK(tuning_overlay_directory() == "/config/sylvit/tuning");
    }
    {
      const test::Setting config("XDG_CONFIG_HOME", "");
      const test::Setting home("HOME", "/home/me");
      CHECK(tuning_overlay_directory() == "/home/me/.config/sylvit/tuning");
    }
    setenv("SYLVIT_TUNING_DIR", "", 1);  // as the tests are run
  }

  TEST_CASE("a record of the overlay goes first; others are left as they are") {
    if (!any_tile_can_be_built()) return;
    const int own = rows_in_use();
    const Overlay overlay;
    overlay.write("mine.json", table(layer_norm(own + 1)));
    const test::Setting setting("SYLVIT_TUNING_DIR", overlay.directory());
    const TuningChoice choice = tuning_choice(device().info(), {.kernel = "layer_norm"});
    CHECK(choice.numbers.at("rows") == own + 1);
    CHECK(choice.file.starts_with(overlay.directory()));
    CHECK(choice.record == 1);
    CHECK(!choice.estimated);
    CHECK(tuning_choice(device().info(), {.kernel = "loss"}).file.find('/') != std::string::npos);
    CHECK(tuning_files(device().info()).front() == choice.file);
  }

  TEST_CASE("a file for the device goes before one for its architecture, and that before one for all") {
    if (!any_tile_can_be_built()) return;
    const DeviceInfo& info = device().info();
    REQUIRE(!info.architecture.empty());
    const Overlay overlay;
    overlay.write("a.json", table(layer_norm(100)));
    overlay.write("b.json", table(layer_norm(101), R"({"architectures": [")" + info.architecture + "\"]}"));
    overlay.write("c.json", table(layer_norm(102), R"({"devices": [")" + info.name.substr(0, 3) + "*\"]}"));
    overlay.write("d.json", table(layer_norm(103), R"({"devices": ["another device"]})"));
    overlay.write("e.json", table(layer_norm(104), R"({"architectures": ["sm_80"]})"));
    overlay.write("f.txt", "not a table");
    const test::Setting setting("SYLVIT_TUNING_DIR", overlay.directory());
    CHECK(rows_in_use() == 102);
    const auto files = tuning_files(info);
    REQUIRE(files.size() >= 4);
    CHECK(files[1].ends_with("b.json"));
    CHECK(files[2].ends_with("a.json"));
    CHECK(files[3].starts_with("dpcpp-"));
    CHECK(tuning::table_for(info).problems().empty());
  }

  TEST_CASE("a bad record is passed over, whatever is wrong with it") {
    const int own = rows_in_use();
    const auto numbers = [](const std::string& text) {
      return R"({"kernel": "layer_norm", "origin": "measured", "numbers": {)" + text + "}}";
    };
    const std::vector<std::string> bad{
        numbers(R"("lanes": 8, "columns": 2, "rows": 0)"),
        numbers(R"("lanes": 7, "columns": 2, "rows": 4)"),         // no such sub-group
        numbers(R"("lanes": 1024, "columns": 64, "rows": 1024)"),  // no device
        numbers(R"("lanes": 8, "columns": 2)"),
        numbers(R"("lanes": 8, "columns": 2, "rows": 4, "extra": 1)"),
        numbers(R"("lanes": 8, "columns": 2, "rows": 99999999999999999999999999)"),
        numbers(R"("lanes": 8, "columns": 2, "rows": 18446744073709551615)"),
        numbers(R"("lanes": 8, "columns": 2, "rows": -4)"),
        numbers(R"("lanes": 8, "columns": 2, "rows": 4.0)"),
        numbers(R"("lanes": 8, "columns": 2, "rows": "4")"),
        numbers(R"("lanes": 8, "columns": 2, "rows": [4])"),
        R"({"kernel": "layer_norm", "origin": "measured", "numbers": [8, 2, 4]})",
        R"({"kernel": "layer_norm", "origin": "measured", "numbers": null})",
        R"({"kernel": "layer_norm", "origin": 3, "numbers": {"lanes": 8, "columns": 2, "rows": 4}})",
        R"({"kernel": "layer_norm", "numbers": {"lanes": 8, "columns": 2, "rows": 4}})",
        R"({"kernel": 5})",
        R"({"kernel": "unheard of", "numbers": {}, "origin": "measured"})",
        R"({"kernel": "layer_norm", "tile": 1, "origin": "measured", "numbers": {"lanes": 8, "columns": 2, "rows": 4}})",
        "7",
        "null",
        "[]",
        "\"text\"",
    };
    for (const std::string& record : bad) {
      CAPTURE(record);
      const Overlay overlay;
      overlay.write("bad.json", table(record));
      const test::Setting setting("SYLVIT_TUNING_DIR", overlay.directory());
      CHECK(rows_in_use() == own);
      REQUIRE(tuning::table_for(device().info()).problems().size() == 1);
      const tuning::Problem& problem = tuning::table_for(device().info()).problems().front();
      CHECK(problem.record == 1);
      CHECK(problem.file.ends_with("bad.json"));
      CHECK(!problem.reason.empty());
    }
  }

  TEST_CASE("a bad file is passed over, whatever is wrong with it") {
    const int own = rows_in_use();
    std::string deep;
    for (int i = 0; i < 100000; ++i) deep += "[";
    std::string deep_objects;
    for (int i = 0; i < 100000; ++i) deep_objects += "{\"a\":";
    const std::vector<std::string> bad{
        "",
        "{",
        "nonsense",
        "null",
        "3",
        "[]",
        "{}",
        deep,
        deep_objects,
        R"({"schema": 1, "records": )" + deep,
        R"({"schema": 2, "records": [], "new key": 1})",
        R"({"schema": 1e400, "records": []})",
        R"({"schema": "1", "records": []})",
        R"({"schema": 1})",
        R"({"schema": 1, "records": {}})",
        R"({"schema": 1, "records": [], "records": []})",
        R"({"schema": 1, "family": [], "records": []})",
        R"({"schema": 1, "family": {"devices": "AMD"}, "records": []})",
        R"({"schema": 1, "family": {"devices": []}, "records": []})",
        R"({"schema": 1, "family": {"backends": ["foo"]}, "records": []})",
        std::string("{\"schema\": 1, \"records\": []}\0x", 30),
        R"({"schema": 1, "family": {"properties": {"compute_units": -1}}, "records": []})",
        std::string("{\"schema\": 1, \"\xff\xfe\": 1, \"records\": []}"),
        std::string(5 << 20, ' '),
    };
    for (std::size_t i = 0; i < bad.size(); ++i) {
      CAPTURE(i);
      const Overlay overlay;
      overlay.write("bad.json", bad[i]);
      const test::Setting setting("SYLVIT_TUNING_DIR", overlay.directory());
      CHECK(rows_in_use() == own);
      REQUIRE(tuning::table_for(device().info()).problems().size() == 1);
      CHECK(tuning::table_for(device().info()).problems().front().record == 0);
    }
    const test::Setting setting("SYLVIT_TUNING_DIR", "/dev/null/nowhere");
    CHECK(rows_in_use() == own);
  }

  TEST_CASE("a pipe, a device or another's file behind a link is no table, and nothing waits for it") {
    const int own = rows_in_use();
    const test::TemporaryDirectory directory;
    const std::filesystem::path folder = directory.path() / tuning::backend_of(device().info());
    std::filesystem::create_directories(folder);
    REQUIRE(mkfifo((folder / "pipe.json").c_str(), 0600) == 0);
    std::filesystem::create_symlink("/dev/zero", folder / "zeros.json");
    std::ofstream(directory.path() / "elsewhere") << table(layer_norm(own + 1));
    std::filesystem::create_symlink(directory.path() / "elsewhere", folder / "link.json");
    const bool root = geteuid() == 0;  // who alone can give files away
    if (root) REQUIRE(chown((directory.path() / "elsewhere").c_str(), 12345, 12345) == 0);
    const test::Setting setting("SYLVIT_TUNING_DIR", directory.path().string());
    const auto problems = tuning::table_for(device().info()).problems();
    REQUIRE(problems.size() == (root ? 3 : 2));
    for (const tuning::Problem& problem : problems)
      CHECK(problem.reason ==
            (problem.file.ends_with("link.json")
                 ? "it is a link to a file that belongs to user 12345 and not to user 0, who runs this"
                 : "it is no regular file"));
  }

  TEST_CASE("damaged bytes anywhere in a table do no harm") {
    const std::string sound =
        table(layer_norm(32) + R"(, {"kernel": "attention_forward", "dtypes": ["f32"], "score_class": "softmax",
          "max_head_size": 64, "max_length": 96, "numbers": {"lanes": 8, "columns": 2, "rows": 6, "key_block": 96,
          "query_tiles": 4, "sub_groups": 1, "resident": 1}, "origin": "measured"})",
              R"({"devices": ["*"], "properties": {"sub_group_sizes": [8], "compute_units": 2}})");
    std::mt19937 random(1);
    const auto below = [&](std::size_t most) { return static_cast<std::size_t>(random() % most); };
    int refused = 0;
    for (int round = 0; round < 5000; ++round) {
      std::string text = sound;
      for (std::size_t change = 0; change <= below(4); ++change) {
        const std::size_t at = below(text.size());
        switch (below(4)) {
          case 0:
            text[at] = static_cast<char>(random());
            break;
          case 1:
            text.erase(at, 1 + below(20));
            break;
          case 2:
            text.insert(at, sound.substr(below(sound.size()), below(30)));
            break;
          default:
            text.insert(at, 1, "0123456789-{}[],:\"e."[below(20)]);
        }
        if (text.empty()) text.assign(1, ' ');
      }
      const tuning::TableFile file = tuning::read_table("damaged", "dpcpp-cpu", text);
      refused += file.problems.empty() ? 0 : 1;
    }
    CHECK(refused > 3000);
  }

  TEST_CASE("the user is warned once, and results are right") {
    const Overlay overlay;
    // It would read 8 of the keys: refused, because it is not limited to so few.
    overlay.write("bad.json", table(R"({"kernel": "attention_forward", "numbers": {"lanes": 8, "columns": 2, "rows": 2,
      "key_block": 8, "query_tiles": 1, "sub_groups": 1, "resident": 1}, "origin": "measured"},
      {"kernel": "attention_backward", "numbers": {"lanes": 8, "columns": 2, "rows": 6, "query_block": 35,
      "key_block": 96, "sub_groups": 1, "cut": 0}, "origin": "measured"})"));
    const test::Setting setting("SYLVIT_TUNING_DIR", overlay.directory());
    std::vector<std::string> warnings;
    const Device watched(device().queue(), {.warn = [&](std::string_view text) { warnings.emplace_back(text); }});
    for (int i = 0; i < 3; ++i) tuning::table_for(watched);
    tuning::table_for(watched.with_tuning(
        std::make_shared<const tuning::Table>(tuning::table_for(watched.info()).with({.kernel = "gemm"}))));
    REQUIRE(warnings.size() == 1);
    CHECK(warnings.front().find("bad.json, record 1 (attention_forward)") != std::string::npos);
    CHECK(warnings.front().find("and 1 more") != std::string::npos);
    const test::AttentionCase wanted{.queries = 50, .keys = 50};
    const test::AttentionData data(wanted);
    CHECK(test::agrees_with_reference(wanted, data, test::run_attention(wanted, data)));
  }

  TEST_CASE("compiled ahead of time, an overlay chooses among what is compiled in") {
    DeviceInfo info;
    info.toolchain = Toolchain::acpp;
    info.backend = Backend::omp;
    info.type = DeviceType::cpu;
    const test::TemporaryDirectory directory;
    const tuning::Case wanted{.kernel = "layer_norm"};
    const int own = tuning::table_for(info).find(wanted).number("rows");
    std::filesystem::create_directories(directory.path() / "acpp-cpu");
    const auto write = [&](int rows) {
      std::ofstream(directory.path() / "acpp-cpu" / "mine.json")
          << table(R"({"kernel": "layer_norm", "dtypes": ["bf16"], "numbers": {"lanes": 1, "columns": 16, "rows": )" +
                   std::to_string(rows) + R"(}, "origin": "measured: mine"})");
    };
    const tuning::Case narrow{.kernel = "layer_norm", .dtype = DType::bf16};
    const test::Setting setting("SYLVIT_TUNING_DIR", directory.path().string());
    write(own);
    CHECK(tuning::table_for(info).find(narrow).origin == "measured: mine");
    info.name = "another, for the table is kept";
    write(own + 1);
    CHECK(tuning::table_for(info).find(narrow).origin != "measured: mine");
    REQUIRE(tuning::table_for(info).problems().size() == 1);
    CHECK(tuning::table_for(info).problems().front().reason.find("ahead of time") != std::string::npos);
  }

  TEST_CASE("a table that is written is read back as it was") {
    const test::TemporaryDirectory directory;
    tuning::TableFile file;
    file.family.backends = {"dpcpp-cpu"};
    file.family.devices = {"A \"device\""};
    tuning::Record record;
    record.kernel = "attention_forward";
    record.dtypes = {DType::f16};
    record.score_class = ScoreClass::softmax;
    record.head_size = {33, 64};
    record.length = {0, 300};
    record.numbers = {{"lanes", 8}, {"rows", 6}};
    record.origin = "measured: here";
    tuning::Record provider;
    provider.kernel = "gemm_provider";
    provider.n = {5, 5};
    provider.k = {6, 0};
    provider.providers = {"builtin", "onemkl"};
    provider.origin = "measured: here";
    file.records = {record, provider};
    const std::filesystem::path path = directory.path() / "deep" / "folder" / "x.json";
    tuning::write_table_file(path, file, "what it is");
    const tuning::TableFile back = tuning::read_table_file(path);
    REQUIRE(back.problems.empty());
    REQUIRE(back.records.size() == 2);
    CHECK(back.family.devices == file.family.devices);
    CHECK(back.family.backends == file.family.backends);
    CHECK(back.records[0].numbers == record.numbers);
    CHECK(back.records[0].dtypes == record.dtypes);
    CHECK(back.records[0].head_size == record.head_size);
    CHECK(back.records[0].length == record.length);
    CHECK(back.records[1].providers == provider.providers);
    CHECK(back.records[1].n == provider.n);
    CHECK(back.records[1].k == provider.k);
    CHECK(std::distance(std::filesystem::directory_iterator(path.parent_path()), {}) == 1);  // nothing left behind
    // Its temporary name cannot be foreseen: one made of the process's number, as once, could be a link by then.
    const std::filesystem::path victim = directory.path() / "victim";
    std::ofstream(victim) << "untouched";
    std::filesystem::create_symlink(victim, path.string() + std::to_string(getpid()) + ".partial");
    tuning::write_table_file(path, file, "again");
    CHECK(test::read_file(victim) == "untouched");
    file.records[0].origin = std::string(5000, 'x');
    test::check_error([&] { tuning::write_table_file(path, file, "x"); }, {"not written", "origin"});
    CHECK(tuning::read_table_file(path).problems.empty());
    file.records[0].origin = "measured";
    test::check_error([&] { tuning::write_table_file("/dev/null/x.json", file, "x"); }, {"/dev/null/x.json"});
  }
}
