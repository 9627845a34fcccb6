// The program as a user meets it.
#include <nlohmann/json.hpp>

#include "support.hpp"

using sylvit::test::CommandResult;
using sylvit::test::run_sylvit;

namespace {

/// One sentence on standard error, and this exit code.
void check_sentence(const CommandResult& result, int exit_code, std::initializer_list<std::string> parts) {
  CAPTURE(result.output);
  CAPTURE(result.errors);
  CHECK(result.exit_code == exit_code);
  for (const std::string& part : parts) CHECK(result.errors.find(part) != std::string::npos);
}

}  // namespace

TEST_SUITE("cli/devices") {
  TEST_CASE("devices --json has every documented key") {
    const CommandResult result = run_sylvit("devices --json");
    CHECK(result.exit_code == 0);
    CHECK(result.errors.empty());
    const auto devices = nlohmann::json::parse(result.output);
    REQUIRE(devices.is_array());
    REQUIRE(!devices.empty());
    for (const auto& device : devices) {
      for (const char* key : {"name", "vendor", "backend", "toolchain", "type", "why", "tuning"})
        CHECK(device.at(key).is_string());
      for (const char* key : {"index", "memory_bytes", "compute_units", "local_memory_bytes"})
        CHECK(device.at(key).is_number_integer());
      for (const char* key : {"usable", "fp16", "bf16", "fp64"}) CHECK(device.at(key).is_boolean());
      CHECK(device.at("sub_group_sizes").is_array());
    }
  }

  TEST_CASE("devices prints a table") {
    const CommandResult result = run_sylvit("devices");
    CHECK(result.exit_code == 0);
    CHECK(result.output.find("usable") != std::string::npos);
    CHECK(result.output.find(sylvit::test::device().name()) != std::string::npos);
  }

  TEST_CASE("self-check passes, on all devices and on one") {
    const CommandResult all = run_sylvit("self-check");
    CHECK(all.exit_code == 0);
    CHECK(all.output.find("product            ok") != std::string::npos);
    CHECK(run_sylvit("self-check --device 0").exit_code == 0);
    check_sentence(run_sylvit("self-check --device nonsense"), 1, {"'nonsense'", "the devices are: 0 = "});
    check_sentence(run_sylvit("self-check", "SYLVIT_DEVICE=nonsense"), 0, {});
    check_sentence(run_sylvit("self-check --device ''"), 0, {});
  }

#if !defined(SYLVIT_TOOLCHAIN_ACPP)
  TEST_CASE("no device is one sentence that names the selector") {
    const std::string setting = "ONEAPI_DEVICE_SELECTOR=level_zero:gpu";
    check_sentence(run_sylvit("devices", setting), 1, {"no SYCL device was found", "level_zero:gpu"});
    check_sentence(run_sylvit("self-check --device 0", setting), 1, {"no SYCL device was found", "level_zero:gpu"});
    check_sentence(run_sylvit("devices", "ONEAPI_DEVICE_SELECTOR=rubbish"), 1, {"sylvit: "});
  }
#endif

  TEST_CASE("what is printed and does not arrive is a failure") {
    const auto result = run_sylvit("--version");
    CHECK(result.exit_code == 0);
    const std::string program = std::getenv("SYLVIT_PROGRAM");
    for (const char* lost : {" --version >/dev/full", " tuning check >/dev/full", " tuning check >&-"}) {
      CAPTURE(lost);
      const int status = std::system(("'" + program + "'" + lost + " 2>/dev/null").c_str());
      REQUIRE(WIFEXITED(status));
      CHECK(WEXITSTATUS(status) == 1);
    }
  }

  TEST_CASE("a wrong command line leaves with 2 and says how to go on") {
    check_sentence(run_sylvit(""), 2, {"subcommand", "--help"});
    check_sentence(run_sylvit("no-such-command"), 2, {"--help"});
    check_sentence(run_sylvit("devices --no-such-option"), 2, {"--no-such-option"});
    CHECK(run_sylvit("--version").output.starts_with("sylvit "));
    CHECK(run_sylvit("--help").output.find("devices") != std::string::npos);
  }

#if defined(SYLVIT_TOOLCHAIN_RTC)
  TEST_CASE("a warm start is quick") {
    run_sylvit("devices");
    double best = 1e9;
    for (int i = 0; i < 5; ++i) best = std::min(best, run_sylvit("devices").seconds);
    MESSAGE("warm start of 'sylvit devices': " << best << " s");
    CHECK(best < 1.0);  // 0.1 s alone; the bound leaves room for a busy machine and still notices a rebuild
  }
#endif
}
