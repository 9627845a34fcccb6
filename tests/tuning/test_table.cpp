#include <algorithm>
#include <chrono>

#include "catalogue/head_sizes.hpp"
#include "catalogue/kernel.hpp"
#include "catalogue/records.hpp"
#include "kernels/attention_forward.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/loss.hpp"
#include "nn/attention_choice.hpp"
#include "support.hpp"
#include "tuning/check.hpp"
#include "tuning/choice.hpp"
#include "tuning/record_check.hpp"
#include "tuning/table.hpp"
#include "tuning/variants.hpp"

using namespace sylvit;
using sylvit::test::check_error;
using tuning::Table;

TEST_SUITE("tuning/table") {
  TEST_CASE("the first record that fits is found") {
    const Table table = Table::parse("a/b", R"({"schema": 1, "records": [
      {"kernel": "k", "dtypes": ["bf16", "f16"], "max_head_size": 64, "max_length": 256, "numbers": {"n": 1}, "origin": "x"},
      {"kernel": "k", "score_class": "softmax", "numbers": {"n": 2}, "origin": "x"},
      {"kernel": "k", "numbers": {"n": 3}, "origin": "x"}]})");
    const auto n = [&](const tuning::Case& wanted) { return table.find(wanted).number("n"); };
    CHECK(n({.kernel = "k", .dtype = DType::bf16, .head_size = 64, .length = 256}) == 1);
    CHECK(n({.kernel = "k", .dtype = DType::bf16, .head_size = 65, .length = 256}) == 3);
    CHECK(n({.kernel = "k", .dtype = DType::bf16, .head_size = 64, .length = 257}) == 3);
    CHECK(n({.kernel = "k", .dtype = DType::f32, .score_class = ScoreClass::softmax}) == 2);
    CHECK(n({.kernel = "k", .dtype = DType::f32, .score_class = ScoreClass::pointwise}) == 3);
    check_error([&] { table.find({.kernel = "other", .head_size = 80}); }, {"a/b", "other", "head size 80"});
    check_error([&] { table.records()[0].number("m"); }, {"'m'"});
  }

  TEST_CASE("providers of products are found by the product's extents") {
    const Table table = Table::parse("a/b", R"({"schema": 1, "records": [
      {"kernel": "gemm_provider", "max_n": 16, "max_k": 64, "providers": ["x", "y"], "origin": "x"},
      {"kernel": "gemm_provider", "dtypes": ["f32"], "max_n": 8, "providers": ["z"], "origin": "x"}]})");
    const auto first = [&](DType dtype, std::int64_t n, std::int64_t k) -> std::string {
      const tuning::Record* record = table.match({.kernel = "gemm_provider", .dtype = dtype, .n = n, .k = k});
      return record == nullptr ? "none" : record->providers.front();
    };
    CHECK(first(DType::bf16, 16, 64) == "x");
    CHECK(first(DType::f32, 8, 65) == "z");
    CHECK(first(DType::f32, 9, 65) == "none");
    CHECK(first(DType::f32, 17, 64) == "none");
    CHECK(first(DType::bf16, 8, 65) == "none");
  }

  TEST_CASE("a table that cannot be used says where and why") {
    const auto check = [](const std::string& json, std::initializer_list<std::string> parts) {
      check_error([&] { Table::parse("a/b", json); }, parts);
    };
    check("{", {"a/b"});
    check(R"({"schema": 2, "records": []})", {"a/b", "schema is 2"});
    check(R"({"schema": 1, "records": [], "extra": 1})", {"a/b", "'extra'"});
    check(R"({"schema": 1, "records": [{"kernel": "k", "numbers": {}, "origin": "x"}, {"kernel": "k", "tile": 3}]})",
          {"a/b", "record 2", "'tile'"});
    check(R"({"schema": 1, "records": [{"kernel": "k", "origin": "x"}]})", {"record 1", "numbers"});
    check(
        R"({"schema": 1, "records": [{"kernel": "k", "min_length": 9, "max_length": 8, "numbers": {}, "origin": "x"}]})",
        {"record 1", "fits nothing"});
    check(R"({"schema": 1, "schema": 1, "records": []})", {"'schema' twice"});
    check(R"({"schema": 1.0, "records": []})", {"schema"});
    check(R"({"schema": 1, "family": {"vendor": "x"}, "records": []})", {"'vendor'"});
    check(R"({"schema": 1, "records": [{"kernel": "k", "providers": ["x"], "numbers": {}, "origin": "x"}]})",
          {"record 1", "gemm_provider"});
    check(R"({"schema": 1, "records": [{"kernel": "gemm_provider", "max_m": 3, "providers": ["x"], "origin": "x"}]})",
          {"record 1", "max_m"});
    check(R"({"schema": 1, "records": [{"kernel": "k", "dtypes": ["f8"], "numbers": {}, "origin": "x"}]})", {"f8"});
  }

  TEST_CASE("every embedded table is sound and serves every kernel") {
    CHECK(tuning::embedded().size() >= 21);
    for (const tuning::TableFile& file : tuning::embedded()) {
      CAPTURE(file.name);
      const Table table = tuning::embedded_table(file.name);
      for (const tuning::Problem& problem : tuning::problems_of(file, {})) FAIL_CHECK(problem.text());
      CHECK(file.name.ends_with("/default") == file.family.is_default());
      for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
        for (const char* kernel : {"elementwise", "patch_rows", "tokens", "loss", "optimizer"})
          CHECK(!table.find({.kernel = kernel, .dtype = dtype}).origin.empty());
      for (const catalogue::RecordKind& kind : catalogue::record_kinds())  // checks the tile numbers
        CHECK((kind.numbers.empty() || !tuning::variants_of(table, kind.kernel).empty()));
    }
  }

  TEST_CASE("tile numbers that do not fit are refused") {
    const Table table = Table::parse("a/b", R"({"schema": 1, "records": [
      {"kernel": "loss", "numbers": {"lanes": 3, "columns": 2, "sub_group": 0}, "origin": "a guess"},
      {"kernel": "layer_norm", "numbers": {"lanes": 8, "columns": 2}, "origin": "a guess"}]})");
    check_error([&] { tuning::config_of<kernels::LossConfig>(table.records()[0]); }, {"loss", "a guess"});
    check_error([&] { tuning::config_of<kernels::LayerNormConfig>(table.records()[1]); }, {"layer_norm", "'rows'"});
  }

  TEST_CASE("another table can be asked for by name") {
    const DeviceInfo& info = test::device().info();  // opened before the setting, with its own table
    {
      const test::Setting setting("SYLVIT_TUNING_TABLE", "acpp-hip/default");
      CHECK(tuning::table_for(info).name() == "acpp-hip/default");
    }
    const test::Setting setting("SYLVIT_TUNING_TABLE", "no/such");
    check_error([&] { tuning::table_for(info); }, {"'no/such'", "dpcpp-cpu/default"});
  }

  TEST_CASE("a device gets the table of its toolchain and backend") {
    const auto name = [](Toolchain toolchain, Backend backend, DeviceType type) {
      DeviceInfo info;
      info.toolchain = toolchain;
      info.backend = backend;
      info.type = type;
      return tuning::table_for(info).name();
    };
    CHECK(name(Toolchain::rtc, Backend::opencl, DeviceType::cpu).starts_with("dpcpp-cpu/"));
    CHECK(name(Toolchain::dpcpp, Backend::level_zero, DeviceType::gpu).starts_with("dpcpp-intel-gpu/"));
    CHECK(name(Toolchain::dpcpp, Backend::cuda, DeviceType::gpu).starts_with("dpcpp-cuda/"));
    CHECK(name(Toolchain::acpp, Backend::omp, DeviceType::cpu) == "acpp-cpu/default");
    CHECK(name(Toolchain::acpp, Backend::hip, DeviceType::gpu)
              .starts_with("dpcpp-hip/"));  // one file a family serves both compilers
  }

  TEST_CASE("a device gets its architecture's file, and the default after it") {
    const auto files = [](Backend backend, const char* architecture) {
      DeviceInfo info;
      info.toolchain = Toolchain::dpcpp;
      info.backend = backend;
      info.type = DeviceType::gpu;
      info.architecture = architecture;
      return tuning_files(info);
    };
    using Files = std::vector<std::string>;
    CHECK(files(Backend::cuda, "sm_80") == Files{"dpcpp-cuda/sm_80", "dpcpp-cuda/default"});
    CHECK(files(Backend::hip, "gfx1100") == Files{"dpcpp-hip/gfx1100", "dpcpp-hip/default"});
    CHECK(files(Backend::level_zero, "xe-hpc") == Files{"dpcpp-intel-gpu/xe-hpc", "dpcpp-intel-gpu/default"});
  }

  TEST_CASE("a device of no known family gets the nearest by its properties, and says so") {
    DeviceInfo info;
    info.toolchain = Toolchain::acpp;
    info.backend = Backend::hip;
    info.type = DeviceType::gpu;
    info.architecture = "gfx1201";
    info.sub_group_sizes = {32};
    info.local_memory_bytes = 65536;
    info.max_work_group = 1024;
    info.compute_units = 46;
    CHECK(tuning::table_for(info).name() == "dpcpp-hip/gfx1100");
    CHECK(tuning::table_for(info).note().find("gfx1201") != std::string::npos);
    info.sub_group_sizes = {64};
    info.compute_units = 228;
    CHECK(tuning::table_for(info).name() == "dpcpp-hip/gfx942");
    info.architecture = "gfx942";
    CHECK(tuning::table_for(info).note().empty());
    info.backend = Backend::level_zero;
    info.toolchain = Toolchain::dpcpp;
    info.architecture = "xe2";
    info.sub_group_sizes = {16, 32};
    info.local_memory_bytes = 131072;
    info.compute_units = 160;
    CHECK(tuning::table_for(info).name() == "dpcpp-intel-gpu/xe-hpc");
  }

  TEST_CASE("what a device cannot run is passed over") {
    DeviceInfo info;
    info.toolchain = Toolchain::rtc;
    info.backend = Backend::opencl;
    info.type = DeviceType::cpu;
    info.architecture = "avx2";
    info.sub_group_sizes = {8};
    info.max_work_group = 8192;
    info.local_memory_bytes = 1 << 18;
    const tuning::Case wanted{
        .kernel = "attention_forward", .score_class = ScoreClass::pointwise, .head_size = 64, .length = 197};
    const auto local_bytes = [&](const tuning::Record& record) { return tuning::demand_of(record, 64).local_bytes; };
    const tuning::Record& first = tuning::table_for(info).find(wanted);
    info.local_memory_bytes = static_cast<std::size_t>(local_bytes(first)) - 1;
    const tuning::Table& smaller = tuning::table_for(info);
    const tuning::Record& second = smaller.find(wanted);
    CHECK(local_bytes(second) < local_bytes(first));
    // The same record, as the other table has it, says why it was passed over.
    const auto same = std::ranges::find_if(smaller.records(), [&](const tuning::Record& record) {
      return record.file == first.file && record.position == first.position;
    });
    REQUIRE(same != smaller.records().end());
    CHECK(smaller.why_not(*same, wanted).find("up to head size") != std::string::npos);
    CHECK(smaller.why_not(second, wanted).empty());
  }

  TEST_CASE("each reason why a record does not fit has its words") {
    const Table table = Table::parse("a/b", R"({"schema": 1, "records": [
      {"kernel": "gemm", "dtypes": ["bf16", "f16"], "numbers": {}, "origin": "x"},
      {"kernel": "gemm", "score_class": "softmax", "numbers": {}, "origin": "x"},
      {"kernel": "gemm", "min_head_size": 80, "numbers": {}, "origin": "x"},
      {"kernel": "gemm", "max_length": 100, "numbers": {}, "origin": "x"},
      {"kernel": "gemm", "min_n": 64, "numbers": {}, "origin": "x"},
      {"kernel": "gemm", "max_k": 8, "numbers": {}, "origin": "x"},
      {"kernel": "gemm", "numbers": {}, "origin": "x"},
      {"kernel": "gemm", "numbers": {}, "origin": "x"}]})");
    const tuning::Case wanted{
        .kernel = "gemm", .score_class = ScoreClass::pointwise, .head_size = 64, .length = 101, .n = 63, .k = 9};
    const std::vector<std::string> reasons{"it is for bf16 and f16",
                                           "it is for softmax scores",
                                           "head size 64 is below 80",
                                           "length 101 is above 100",
                                           "N 63 is below 64",
                                           "K 9 is above 8",
                                           "",
                                           "an earlier record fits too"};
    for (std::size_t i = 0; i < reasons.size(); ++i) CHECK(table.why_not(table.records()[i], wanted) == reasons[i]);
    CHECK(table.match(wanted) == &table.records()[6]);
  }

  TEST_CASE("flaws of a record") {
    const auto flaw = [](const std::string& record) {
      return tuning::flaw_of(Table::parse("a/b", R"({"schema": 1, "records": [)" + record + "]}").records().front());
    };
    const auto has = [](const std::string& text, const char* part) {
      CAPTURE(text);
      CHECK(text.find(part) != std::string::npos);
    };
    const std::string forward = R"({"kernel": "attention_forward", "origin": "estimated: x", "numbers": {"lanes": 8,
      "columns": 2, "rows": 6, "key_block": 96, "query_tiles": 4, "sub_groups": 1, "resident": )";
    CHECK(flaw(forward + "0}}").empty());
    has(flaw(forward + "1}}"), "max_length");
    CHECK(flaw(forward + R"(1}, "max_length": 96})").empty());
    has(flaw(forward + R"(1}, "max_length": 97})"), "max_length");
    has(flaw(forward + "2}}"), "'resident' is 2");
    has(flaw(forward + R"(0, "more": 1}})"), "unknown number 'more'");
    has(flaw(R"({"kernel": "loss", "numbers": {"lanes": 16, "sub_group": 0}, "origin": "measured"})"),
        "lacks the number 'columns'");
    has(flaw(R"({"kernel": "loss", "numbers": {"lanes": 3, "columns": 2, "sub_group": 0}, "origin": "measured"})"),
        "do not fit");
    has(flaw(R"({"kernel": "loss", "numbers": {"lanes": 16, "columns": 2, "sub_group": 0}, "origin": "a guess"})"),
        "origin");
    has(flaw(R"({"kernel": "transposed", "numbers": {}, "origin": "measured"})"), "no kernel 'transposed'");
    has(flaw(R"({"kernel": "gemm_provider", "providers": ["cublas"], "origin": "measured"})"), "no provider 'cublas'");
    has(flaw(R"({"kernel": "gemm", "origin": "measured", "numbers": {"lanes": 1024, "columns": 4, "rows": 1,
      "row_block": 8192, "panels": 1024, "depth_block": 8192, "sub_groups": 64, "staged": 1}})"),
        "too large");
  }

  TEST_CASE("variants compiled ahead of time are those that every length leads to, of every file of the backend") {
    for (const tuning::TableFile& file : tuning::embedded()) {
      const Table table = tuning::embedded_table(file.name);
      std::vector<std::string> types;
      for (const runtime::KernelName& kernel : tuning::variants_of(table, "attention_forward"))
        types.push_back(kernel.type);
      CAPTURE(file.name);
      for (const std::int64_t length : {1, 49, 197, 204, 205, 785, 1024, 1025, 4096, 100000}) {
        const std::int64_t head_size = catalogue::compiled_head_size(Toolchain::acpp, 40);
        const nn::AttentionQuery wanted{Score::gelu, DType::bf16, head_size, length};
        const auto forward =
            tuning::config_of<kernels::AttentionForwardConfig>(table.find(wanted.of("attention_forward")), head_size);
        const auto kernel = catalogue::kernel<kernels::AttentionForwardKernel>(
            forward, catalogue::ScoreFunctor(Score::gelu), DType::bf16);
        CHECK(std::ranges::find(types, kernel.type) != types.end());
      }
    }
  }

  TEST_CASE("patterns of device names") {
    CHECK(tuning::matches_pattern("NVIDIA A100-SXM4-80GB", "*A100*"));
    CHECK(tuning::matches_pattern("NVIDIA A100-SXM4-80GB", "NVIDIA A100*80GB"));
    CHECK(tuning::matches_pattern("", "*"));
    CHECK(!tuning::matches_pattern("NVIDIA A10", "*A100*"));
    CHECK(!tuning::matches_pattern("NVIDIA A100", "A100*"));
    CHECK(!tuning::matches_pattern("x", ""));
    CHECK(!tuning::matches_pattern(std::string(5000, 'a'), "*a*a*a*a*a*a*a*a*b"));  // and does not take for ever
  }

  TEST_CASE("a look-up is cheap, since every launch makes one") {
    const tuning::Case wanted{
        .kernel = "attention_backward", .score_class = ScoreClass::softmax, .head_size = 64, .length = 197};
    constexpr int times = 20000;
    int found = 0;
    double best = 1e9;  // of several tries: the machine may be busy
    for (int attempt = 0; attempt < 5; ++attempt) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < times; ++i) found += tuning::table_for(test::device()).match(wanted) != nullptr ? 1 : 0;
      const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
      best = std::min(best, time.count() / times);
    }
    MESSAGE("a look-up takes " << best << " microseconds");
    CHECK(found == 5 * times);
    CHECK(best < 10);  // a launch takes 5 to 9
  }
}
