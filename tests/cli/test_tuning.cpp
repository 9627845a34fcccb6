// sylvit tuning show and check, as a user meets them.
#include <fstream>
#include <nlohmann/json.hpp>

#include "catalogue/head_sizes.hpp"
#include "support.hpp"
#include "tuning/table.hpp"

using sylvit::test::CommandResult;
using sylvit::test::run_sylvit;
using sylvit::test::TemporaryDirectory;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

constexpr const char* bad_records = R"({"schema": 1, "records": [
  {"kernel": "loss", "numbers": {"lanes": 16, "columns": 4, "sub_group": 0}, "origin": "measured"},
  {"kernel": "loss", "numbers": {"lanes": 3, "columns": 4, "sub_group": 0}, "origin": "measured"},
  {"kernel": "gemm", "tiles": 3},
  {"kernel": "head_sums", "numbers": {"items": 8192}, "origin": "measured"}]})";

}  // namespace

TEST_SUITE("cli/tuning") {
  TEST_CASE("show names the record and says why it is not another") {
    const CommandResult all = run_sylvit("tuning show");
    CAPTURE(all.errors);
    CHECK(all.exit_code == 0);
    CHECK(has(all.output, "attention_forward (f32, pointwise, head size 64, length 197)"));
    CHECK(has(all.output, "default of the backend"));
    const CommandResult one =
        run_sylvit("tuning show --kernel attention_forward --score softmax --head-size 32 --length 5000");
    CHECK(one.exit_code == 0);
    // Ahead of time there may be kernels of larger head sizes only, and theirs is the record.
    const std::int64_t head_size = sylvit::catalogue::compiled_head_size(sylvit::test::device().info().toolchain, 32);
    CHECK(has(one.output, "softmax, head size " + std::to_string(head_size) + ", length 5000"));
    CHECK(has(one.output, "  chosen "));
    CHECK(has(one.output, "an earlier record fits too"));
    const CommandResult wrong = run_sylvit("tuning show --kernel nonsense");
    CHECK(wrong.exit_code == 2);
    CHECK(has(wrong.errors, "no kernel 'nonsense'; the kernels are: attention_forward"));
    for (const char* size : {"0", "20", "264"}) {
      const CommandResult odd = run_sylvit(std::string("tuning show --head-size ") + size);
      CHECK(odd.exit_code == 2);
      CHECK(has(odd.errors, "--head-size is"));
    }
    for (const char* length : {"0", "-5", "1.5", "99999999999999999999"})
      CHECK(run_sylvit(std::string("tuning show --length ") + length).exit_code == 2);
  }

  TEST_CASE("show --json says the same") {
    const CommandResult result = run_sylvit("tuning show --kernel gemm --n 100 --k 10 --json");
    CHECK(result.exit_code == 0);
    const auto json = nlohmann::json::parse(result.output);
    CHECK(json.at("device") == sylvit::test::device().name());
    REQUIRE(json.at("files").size() >= 1);
    const auto& kernel = json.at("kernels").at(0);
    CHECK(kernel.at("case") == "f32, N 100, K 10");
    CHECK(kernel.at("chosen").at("numbers").at("lanes").is_number_integer());
    CHECK(kernel.at("chosen").at("record").is_number_integer());
  }

  TEST_CASE("check finds the library's own tables sound") {
    const CommandResult result = run_sylvit("tuning check");
    CAPTURE(result.errors);
    CHECK(result.exit_code == 0);
    CHECK(has(result.output, "are sound"));
  }

  TEST_CASE("check names file, record and reason") {
    const TemporaryDirectory directory;
    const std::filesystem::path bad = directory.path() / "dpcpp-cpu" / "bad.json";
    write(bad, bad_records);
    const std::filesystem::path newer = directory.path() / "dpcpp-cpu" / "newer.json";
    write(newer, R"({"schema": 7, "records": []})");
    const CommandResult both = run_sylvit("tuning check '" + bad.string() + "' '" + newer.string() + "'");
    CAPTURE(both.errors);
    CHECK(both.exit_code == 1);
    CHECK(has(both.errors, "bad.json, record 2 (loss): its tile numbers do not fit together"));
    CHECK(has(both.errors, "bad.json, record 3 (gemm): it has the unknown key 'tiles'"));
    CHECK(has(both.errors, "newer.json: its schema is 7, and this sylvit reads 1"));
    CHECK(!has(both.errors, "record 1 "));
    CHECK(has(both.errors, "in 2 of 2 tables"));
    CHECK(has(run_sylvit("tuning check '" + (directory.path() / "none.json").string() + "'").errors, "no such file"));
    CHECK(has(run_sylvit("tuning check '" + directory.path().string() + "'").errors, "it is no regular file"));
    const std::filesystem::path misspelt = directory.path() / "misspelt.json";
    write(misspelt, R"({"schema": 1, "family": {"backends": ["dpcpp-cup"]}, "records": []})");
    CHECK(has(run_sylvit("tuning check '" + misspelt.string() + "'").errors, "there is no backend 'dpcpp-cup'"));
    // The overlay directory is checked with the library's tables.
    const CommandResult overlay = run_sylvit("tuning check", "SYLVIT_TUNING_DIR='" + directory.path().string() + "'");
    CHECK(overlay.exit_code == 1);
    CHECK(has(overlay.errors, "bad.json, record 2"));
  }

  TEST_CASE("check compares with the device and with what a family is like") {
    const TemporaryDirectory directory;
    const std::filesystem::path path = directory.path() / "dpcpp-cuda" / "x.json";
    write(path, R"({"schema": 1, "family": {"architectures": ["sm_99"], "properties": {"sub_group_sizes": [32],
      "local_memory_bytes": 1000}}, "records": [
      {"kernel": "layer_norm", "numbers": {"lanes": 64, "columns": 1, "rows": 4}, "origin": "measured"},
      {"kernel": "head_sums", "numbers": {"items": 1024}, "origin": "measured"},
      {"kernel": "layer_norm", "numbers": {"lanes": 32, "columns": 1, "rows": 1}, "origin": "measured"}]})");
    const CommandResult result = run_sylvit("tuning check '" + path.string() + "'");
    CAPTURE(result.errors);
    CHECK(result.exit_code == 1);
    CHECK(has(result.errors, "record 1 (layer_norm): a device of its family cannot run it: it wants sub-groups of 64"));
    CHECK(has(result.errors, "record 2 (head_sums): a device of its family cannot run it: it wants 4096 bytes"));
    CHECK(!has(result.errors, "record 3"));
    const std::string backend(sylvit::tuning::backend_of(sylvit::test::device().info()));
    const std::filesystem::path own = directory.path() / backend / "x.json";
    write(own, R"({"schema": 1, "records": [{"kernel": "layer_norm", "numbers": {"lanes": 7, "columns": 1, "rows": 4},
      "origin": "measured"}]})");
    CHECK(has(run_sylvit("tuning check '" + own.string() + "'").errors, "cannot run it: it wants sub-groups of 7"));
  }

  TEST_CASE("a bad overlay is one warning, and the command goes on") {
    const TemporaryDirectory directory;
    const std::string backend(sylvit::tuning::backend_of(sylvit::test::device().info()));
    write(directory.path() / backend / "bad.json", bad_records);
    const CommandResult result = run_sylvit("self-check", "SYLVIT_TUNING_DIR='" + directory.path().string() + "'");
    CHECK(result.exit_code == 0);
    const std::size_t first = result.errors.find("sylvit: warning: a tuning table is not used as it stands");
    CHECK(first != std::string::npos);
    CHECK(result.errors.find("warning", first + 20) == std::string::npos);
  }

  TEST_CASE("estimates say so") {
    const CommandResult result = run_sylvit("devices", "SYLVIT_TUNING_TABLE=dpcpp-intel-gpu/default");
    CHECK(result.exit_code == 0);
    CHECK(has(result.output, "estimated: run `sylvit tune`"));
  }
}
