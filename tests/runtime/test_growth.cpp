// Memory that a process takes must not grow with what it did and finished. The suite runtime/growth takes seconds,
// runtime/soak (a long one) the same for minutes.
#include <sylvit/sylvit.h>

#include <fstream>
#include <functional>
#include <malloc.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "nn/attention_case.hpp"
#include "support.hpp"
#include "vit/tiny.hpp"

using namespace sylvit;

namespace {

/// Bytes on the heap that are in use, of all threads' arenas.
double heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

/// What the system has given the process, which also knows of what others than malloc take.
double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0;
  double resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// A sanitizer has its own malloc, keeps what was freed, and finds leaks itself.
bool is_measurable() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  MESSAGE("left out: a sanitizer's memory is not the program's");
  return false;
#else
  return true;
#endif
}

/// Does the work so often, after some rounds in which caches fill, and fails if more than `most` bytes of each stay.
void check_growth(int rounds, double most, const std::function<void()>& work) {
  for (int i = 0; i < std::max(10, rounds / 10); ++i) work();
  malloc_trim(0);
  const double heap = heap_bytes();
  const double resident = resident_bytes();
  for (int i = 0; i < rounds; ++i) work();
  malloc_trim(0);
  const double heap_growth = (heap_bytes() - heap) / rounds;
  const double resident_growth = (resident_bytes() - resident) / rounds;
  MESSAGE(rounds, " rounds, bytes that each leaves on the heap: ", heap_growth, ", resident: ", resident_growth);
  CHECK(heap_growth < most);
  // Pages are shared by what lives long and what does not, so some of them stay: not many, and not in each round.
  constexpr double pages = 8 << 20;
  CHECK(resident_growth < most + pages / rounds);
}

void check(sylvit_status status) { REQUIRE_MESSAGE(status == SYLVIT_OK, sylvit_last_error()); }

/// The device that tests run on, through the C interface.
sylvit_device* open_device() {
  sylvit_device* opened = nullptr;
  check(sylvit_device_open(std::to_string(test::device().info().index).c_str(), &opened));
  return opened;
}

/// A small model's weights in a file.
class Weights {
 public:
  Weights() {
    std::string command = "init --image-size 8 --output " + path();
    command.append(" ").append(test::tiny_vit_options);
    REQUIRE(test::run_sylvit(command).exit_code == 0);
  }
  std::string path() const { return (directory_.path() / "weights.safetensors").string(); }

 private:
  test::TemporaryDirectory directory_;
};

void load_run_and_free(const sylvit_device* device, const std::string& path) {
  sylvit_model_options options = SYLVIT_MODEL_OPTIONS_INIT;
  options.heads = 3;
  sylvit_model* model = nullptr;
  check(sylvit_model_load(device, path.c_str(), &options, &model));
  const std::vector<float> image(3 * 8 * 8, 0.5F);
  std::vector<float> logits(7);
  check(sylvit_model_run(model, image.data(), 1, logits.data(), nullptr));
  sylvit_model_free(model);
}

// DPC++ 2026.0 keeps 11 KB of every in-order queue that something ran on, also in a program that does nothing else.
constexpr double of_a_queue = 24 << 10;
// What is smaller than this is noise: the last nodes of hash tables, events that are collected later.
constexpr double of_a_call = 4 << 10;

void grow_by_devices(int rounds) {
  if (!is_measurable()) return;
  check_growth(rounds, of_a_queue, [] { sylvit_device_close(open_device()); });
}

void grow_by_listing(int rounds) {
  if (!is_measurable()) return;
  const auto count = static_cast<double>(list_devices().size());
  check_growth(rounds, count * of_a_queue, [] { REQUIRE(!list_devices().empty()); });
}

void grow_by_models(int rounds) {
  if (!is_measurable()) return;
  const Weights weights;
  sylvit_device* device = open_device();
  check_growth(rounds, of_a_call, [&] { load_run_and_free(device, weights.path()); });
  sylvit_device_close(device);
}

void grow_by_attention(int rounds) {
  if (!is_measurable()) return;
  std::vector<test::AttentionCase> cases{{.score = Score::relu}, {.score = Score::softmax, .dtype = DType::bf16}};
  std::vector<test::AttentionData> data;
  for (const test::AttentionCase& wanted : cases) data.emplace_back(wanted);
  test::prepare_attention(cases);
  check_growth(rounds, of_a_call, [&] {
    for (std::size_t i = 0; i < cases.size(); ++i) test::run_attention(cases[i], data[i]);
  });
}

/// Each of four threads with a device of its own, a model, and attention on the device that all share.
void grow_by_threads(int rounds) {
  if (!is_measurable()) return;
  const Weights weights;
  const test::AttentionCase wanted;
  const test::AttentionData data(wanted);
  test::prepare_attention({wanted});
  constexpr int threads = 4;
  check_growth(rounds, threads * (of_a_queue + of_a_call), [&] {
    std::vector<std::thread> running;
    for (int i = 0; i < threads; ++i)
      running.emplace_back([&] {
        sylvit_device* device = open_device();
        load_run_and_free(device, weights.path());
        test::run_attention(wanted, data);
        sylvit_device_close(device);
      });
    for (std::thread& thread : running) thread.join();
  });
}

}  // namespace

TEST_SUITE("runtime/growth") {
  TEST_CASE("devices") { grow_by_devices(100); }
  TEST_CASE("listing devices") { grow_by_listing(50); }
  TEST_CASE("models") { grow_by_models(100); }
  TEST_CASE("attention") { grow_by_attention(100); }
  TEST_CASE("four threads") { grow_by_threads(50); }
}

TEST_SUITE("runtime/soak") {
  TEST_CASE("devices" * doctest::skip()) { grow_by_devices(5000); }
  TEST_CASE("listing devices" * doctest::skip()) { grow_by_listing(2000); }
  TEST_CASE("models" * doctest::skip()) { grow_by_models(5000); }
  TEST_CASE("attention" * doctest::skip()) { grow_by_attention(10000); }
  TEST_CASE("four threads" * doctest::skip()) { grow_by_threads(2000); }
}
