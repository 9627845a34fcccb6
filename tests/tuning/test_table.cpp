#include <algorithm>

#include "nn/row_kernels.hpp"
#include "nn/training_kernels.hpp"
#include "nn/variants.hpp"
#include "support.hpp"
#include "tuning/table.hpp"

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
    CHECK(n({.kernel = "k", .dtype = DType::f32, .score_class = "softmax"}) == 2);
    CHECK(n({.kernel = "k", .dtype = DType::f32, .score_class = "pointwise"}) == 3);
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
    check(R"({"schema": 1, "records": [{"kernel": "k", "providers": ["x"], "numbers": {}, "origin": "x"}]})",
          {"record 1", "gemm_provider"});
    check(R"({"schema": 1, "records": [{"kernel": "gemm_provider", "max_m": 3, "providers": ["x"], "origin": "x"}]})",
          {"record 1", "max_m"});
    check(R"({"schema": 1, "records": [{"kernel": "k", "dtypes": ["f8"], "numbers": {}, "origin": "x"}]})", {"f8"});
  }

  TEST_CASE("every embedded table is sound and serves every kernel") {
    const auto tables = tuning::embedded();
    CHECK(tables.size() >= 7);
    for (const Table& table : tables) {
      CAPTURE(table.name());
      for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
        for (const char* kernel :
             {"elementwise", "reduce_rows", "transpose", "patch_rows", "tokens", "loss", "optimizer"})
          CHECK(!table.find({.kernel = kernel, .dtype = dtype}).origin.empty());
      CHECK(!nn::basic_variants(table).empty());  // checks the tile numbers
      CHECK(!nn::training_variants(table).empty());
      CHECK(!nn::row_variants(table).empty());
    }
  }

  TEST_CASE("tile numbers that do not fit are refused") {
    const Table table = Table::parse("a/b", R"({"schema": 1, "records": [
      {"kernel": "transpose", "numbers": {"tile": 16, "rows": 3}, "origin": "a guess"},
      {"kernel": "reduce_rows", "numbers": {"work_items": 48}, "origin": "a guess"}]})");
    check_error([&] { nn::transpose_config(table.records()[0]); }, {"transpose", "a guess"});
    check_error([&] { nn::reduce_rows_config(table.records()[1]); }, {"reduce_rows"});
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
    const auto name = [](const char* toolchain, const char* backend, const char* type) {
      DeviceInfo info;
      info.toolchain = toolchain;
      info.backend = backend;
      info.type = type;
      return tuning::table_for(info).name();
    };
    CHECK(name("rtc", "opencl", "cpu") == "dpcpp-cpu/default");
    CHECK(name("dpcpp", "level_zero", "gpu") == "dpcpp-intel-gpu/default");
    CHECK(name("dpcpp", "cuda", "gpu") == "dpcpp-cuda/default");
    CHECK(name("acpp", "omp", "cpu") == "acpp-cpu/default");
    CHECK(name("acpp", "hip", "gpu") == "acpp-hip/default");
  }
}
