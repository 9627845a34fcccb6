// The search for fast records, with benches that are told how fast and how right each record is.
#include <algorithm>
#include <random>

#include "support.hpp"
#include "tuner/candidates.hpp"
#include "tuner/search.hpp"
#include "tuning/record_check.hpp"
#include "tuning/table.hpp"

using namespace sylvit;
using tuning::Record;

namespace {

Record numbered(int number) {
  Record record;
  record.kernel = "loss";
  record.numbers = {{"rows", number}};
  record.origin = "estimated: a test";
  return record;
}

std::vector<Record> numbered(int first, int count) {
  std::vector<Record> records;
  for (int i = 0; i < count; ++i) records.push_back(numbered(first + i));
  return records;
}

/// A record takes as long as the test says, and what a busy machine adds.
class PretendBench final : public tuner::Bench {
 public:
  std::function<double(int)> ms = [](int number) { return 1.0 + 0.01 * number; };
  std::function<bool(int)> right = [](int) { return true; };
  std::function<bool(int)> builds = [](int) { return true; };
  double noise = 0;
  int runs = 0;
  std::vector<std::size_t> batches;

  void build(std::span<const Record> batch) override {
    batches.push_back(batch.size());
    for (const Record& record : batch)
      if (!builds(record.number("rows"))) throw Error("this one does not compile");
  }
  std::string verify(const Record& record) override { return right(record.number("rows")) ? "" : "it is off"; }
  double run(const Record& record) override {
    ++runs;
    std::exponential_distribution<double> delay(1);
    return ms(record.number("rows")) * (1 + noise * delay(random_));
  }

 private:
  std::mt19937 random_{3};
};

DeviceInfo cpu() {
  DeviceInfo info;
  info.toolchain = Toolchain::rtc;
  info.backend = Backend::opencl;
  info.type = DeviceType::cpu;
  info.architecture = "avx2";
  info.sub_group_sizes = {4, 8, 16, 32, 64};
  info.max_work_group = 8192;
  info.local_memory_bytes = 1 << 18;
  info.compute_units = 2;
  return info;
}

DeviceInfo gpu() {
  DeviceInfo info = cpu();
  info.type = DeviceType::gpu;
  info.backend = Backend::cuda;
  info.toolchain = Toolchain::dpcpp;
  info.architecture = "sm_80";
  info.sub_group_sizes = {32};
  info.max_work_group = 1024;
  info.local_memory_bytes = 49152;
  info.compute_units = 108;
  return info;
}

tuner::Workload attention(const char* kernel, std::int64_t length, std::int64_t head_size) {
  return {.wanted = {.kernel = kernel, .score_class = ScoreClass::pointwise, .head_size = head_size, .length = length},
          .independent = 48,
          .rows = length};
}

}  // namespace

TEST_SUITE("tuner/search") {
  TEST_CASE("the fastest is found, in batches, and the slow ones are run seldom") {
    PretendBench bench;
    bench.noise = 0.2;
    bench.ms = [](int number) { return number == 137 ? 0.8 : 1.0 + 0.001 * number; };
    const auto result = tuner::search(bench, numbered(100), numbered(101, 100), {.seconds = 1e9});
    CHECK(result.finished);
    CHECK(result.improved);
    CHECK(result.best.number("rows") == 137);
    CHECK(result.best_ms / result.used_ms == doctest::Approx(0.8 / 1.1).epsilon(0.1));
    CHECK(result.tried == 100);
    CHECK(bench.batches == std::vector<std::size_t>{1, 20, 20, 20, 20, 20});
    CHECK(bench.runs < 1000);
  }

  TEST_CASE("noise does not choose: equals do not replace what is in use") {
    int replaced = 0;
    for (int trial = 0; trial < 40; ++trial) {
      PretendBench bench;
      bench.noise = 0.3;
      bench.ms = [](int) { return 1.0; };
      for (int skip = 0; skip < trial * 7; ++skip) bench.run(numbered(1));  // another piece of the noise
      replaced += tuner::search(bench, numbered(100), numbered(101, 40), {.seconds = 1e9}).improved ? 1 : 0;
    }
    CHECK(replaced == 0);
  }

  TEST_CASE("a winner by less than the margin does not replace what is in use") {
    PretendBench bench;
    bench.ms = [](int number) { return number == 105 ? 0.99 : 1.0; };
    CHECK(!tuner::search(bench, numbered(100), numbered(101, 10), {.seconds = 1e9, .margin = 0.02}).improved);
    CHECK(tuner::search(bench, numbered(100), numbered(101, 10), {.seconds = 1e9, .margin = 0.005}).improved);
  }

  TEST_CASE("a winner that is slow, wrong or unbuildable in other work that it would serve does not keep up") {
    PretendBench other;
    other.ms = [](int number) { return number == 105 ? 1.05 : number == 106 ? 4.0 : 1.0; };
    CHECK(tuner::keeps_up(other, numbered(100), numbered(105)));
    CHECK(!tuner::keeps_up(other, numbered(100), numbered(106)));
    other.right = [](int number) { return number != 105; };
    CHECK(!tuner::keeps_up(other, numbered(100), numbered(105)));
    other.right = [](int) { return true; };
    other.builds = [](int number) { return number != 105; };
    CHECK(!tuner::keeps_up(other, numbered(100), numbered(105)));
  }

  TEST_CASE("a wrong one cannot win, however fast") {
    PretendBench bench;
    bench.ms = [](int number) { return number == 103 ? 0.1 : number == 104 ? 0.9 : 1.0; };
    bench.right = [](int number) { return number != 103; };
    const auto result = tuner::search(bench, numbered(100), numbered(101, 10), {.seconds = 1e9});
    CHECK(result.best.number("rows") == 104);
    CHECK(result.wrong == 1);
    CHECK(result.remarks.size() == 1);
    bench.right = [](int) { return false; };
    test::check_error([&] { tuner::search(bench, numbered(100), numbered(101, 10), {.seconds = 1e9}); },
                      {"the record in use", "it is off"});
  }

  TEST_CASE("one that does not compile does not spoil its batch") {
    PretendBench bench;
    bench.ms = [](int number) { return number == 108 ? 0.5 : 1.0; };
    bench.builds = [](int number) { return number != 103; };
    const auto result = tuner::search(bench, numbered(100), numbered(101, 10), {.seconds = 1e9});
    CHECK(result.best.number("rows") == 108);
    CHECK(result.unbuilt == 1);
    CHECK(result.tried == 9);
  }

  TEST_CASE("being stopped leaves no result; out of time, what was tried counts") {
    PretendBench bench;
    bench.ms = [](int number) { return number == 101 ? 0.5 : number == 150 ? 0.1 : 1.0; };
    int asked = 0;
    const auto stopped =
        tuner::search(bench, numbered(100), numbered(101, 100), {.seconds = 1e9, .stop = [&] { return ++asked > 50; }});
    CHECK(!stopped.finished);
    CHECK(!stopped.improved);
    const auto hurried = tuner::search(bench, numbered(100), numbered(101, 100), {.seconds = 0});
    CHECK(hurried.finished);
    CHECK(hurried.tried == 20);
    CHECK(hurried.best.number("rows") == 101);
    const auto alone = tuner::search(bench, numbered(100), {}, {.seconds = 1});
    CHECK(alone.finished);
    CHECK(!alone.improved);
  }

  TEST_CASE("candidates are sound, run on the device, and are in order of promise") {
    for (const DeviceInfo& device : {cpu(), gpu()})
      for (const std::string kernel : {"attention_forward", "attention_backward", "gemm", "layer_norm"})
        for (const std::int64_t length : {50, 197, 4096}) {
          CAPTURE(name_of(device.type));
          CAPTURE(kernel);
          CAPTURE(length);
          const tuner::Machine machine = tuner::Machine::of(device);
          tuner::Workload workload = attention(kernel.c_str(), length, 64);
          workload.wanted.n = 1152;
          workload.wanted.k = 384;
          const std::vector<Record> candidates = tuner::candidates_for(machine, workload);
          CHECK(candidates.size() > (device.type == DeviceType::gpu ? 1 : 20));
          double last = 0;
          for (const Record& record : candidates) {
            const std::string flaw = tuning::flaw_of(record) + tuning::obstacle_of(record, machine.limits, 64);
            CHECK_MESSAGE(flaw.empty(), flaw);
            CHECK(record.length.holds(length));
            const double cost = tuner::predicted_cost(record, machine, workload);
            CHECK(cost >= last);
            last = cost;
          }
        }
  }

  TEST_CASE("the model discards tiles that spill and knows what is good on a CPU") {
    const tuner::Machine machine = tuner::Machine::of(cpu());
    for (const std::int64_t length : {197, 785, 4096}) {
      const tuner::Workload workload = attention("attention_forward", length, 64);
      const std::vector<Record> candidates = tuner::candidates_for(machine, workload);
      const auto tile = [](const Record& record) {
        return std::array{record.number("lanes"), record.number("columns"), record.number("rows")};
      };
      CHECK(std::ranges::none_of(candidates, [&](const Record& record) {
        return tile(record) == std::array{8, 4, 6};
      }));
      // 8 x 2 x 6 is what was found by hand: among the first twenty.
      const auto found = std::ranges::find(candidates, std::array{8, 2, 6}, tile);
      REQUIRE(found != candidates.end());
      MESSAGE("length " << length << ": 8 x 2 x 6 is candidate " << found - candidates.begin() + 1 << " of "
                        << candidates.size());
      CHECK(found - candidates.begin() < 20);
    }
  }

  TEST_CASE("numbers beyond the work do not count") {
    Record record;
    record.kernel = "attention_forward";
    record.numbers = {{"lanes", 8},      {"columns", 2},      {"rows", 6},    {"sub_groups", 1},
                      {"key_block", 96}, {"query_tiles", 13}, {"resident", 0}};
    const auto effective = [&](std::int64_t length) {
      return tuner::effective_numbers(record, attention("attention_forward", length, 64));
    };
    CHECK(effective(4096) == record.numbers);
    CHECK(effective(49).at("query_tiles") == 4);  // of 16 queries
    CHECK(effective(49).at("key_block") == 54);   // in rows of 6
    CHECK(effective(97).at("key_block") == 96);
    record.kernel = "attention_backward";
    record.numbers = {{"lanes", 8},        {"columns", 2},     {"rows", 6}, {"sub_groups", 1},
                      {"query_block", 36}, {"key_block", 128}, {"cut", 0}};
    const auto numbers = tuner::effective_numbers(record, attention("attention_backward", 20, 64));
    CHECK(numbers.at("query_block") == 24);
    CHECK(numbers.at("key_block") == 32);
    CHECK(numbers.at("cut") == 0);
    Record norm;
    norm.kernel = "layer_norm";
    norm.numbers = {{"rows", 128}};
    CHECK(tuner::effective_numbers(norm, attention("layer_norm", 20, 64)) == norm.numbers);
  }

  TEST_CASE("neighbours change one number") {
    const tuner::Machine machine = tuner::Machine::of(cpu());
    const tuner::Workload workload = attention("attention_forward", 197, 64);
    const Record& used = tuning::table_for(cpu()).find(workload.wanted);
    const std::vector<Record> neighbours = tuner::neighbours_of(used, machine, workload);
    CHECK(neighbours.size() >= 4);
    for (const Record& neighbour : neighbours) {
      int changes = 0;
      for (const auto& [name, value] : neighbour.numbers) changes += used.number(name) == value ? 0 : 1;
      CHECK(changes == 1);
      CHECK(tuning::flaw_of(neighbour).empty());
    }
  }
}
