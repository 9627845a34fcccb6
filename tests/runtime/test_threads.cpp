// What the headers say of threads, tried out. ci/threads runs this under ThreadSanitizer.
#include <sylvit/sylvit.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <latch>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support.hpp"
#include "vit/tiny.hpp"

using namespace sylvit;

namespace {

/// Runs the work in so many threads that start together; whatever one throws fails the test.
void together(int threads, const std::function<void(int)>& work) {
  std::latch start(threads);
  std::vector<std::string> errors(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i)
    running.emplace_back([&, i] {
      start.arrive_and_wait();
      try {
        work(i);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(i)] = error.what();
      }
    });
  for (std::thread& thread : running) thread.join();
  for (const std::string& error : errors) CHECK_MESSAGE(error.empty(), error);
}

std::vector<float> random_numbers(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  std::ranges::generate(values, [&] { return normal(generator); });
  return values;
}

/// Attention forward and backward on tensors of its own, on any device.
class Work {
 public:
  Work(const Device& device, Score score, unsigned seed) : device_(device), description_{.score = score} {
    for (TensorView* view : {&inputs_.q, &inputs_.k, &inputs_.v, &o_gradient_})
      *view = put(random_numbers(count, seed++));
    for (TensorView* view : {&o_, &gradients_.q, &gradients_.k, &gradients_.v}) *view = put(std::vector<float>(count));
    if (score == Score::softmax) lse_ = {put(std::vector<float>(count)).data(), DType::f32, {1, 2, length}};
    workspace_ = Memory(device,
                        std::max(attention_forward_workspace(device, description_, inputs_),
                                 attention_backward_workspace(device, description_, inputs_, gradients_)),
                        "a test");
  }

  /// All results, one after the other.
  std::vector<float> run() const {
    const sycl::event done = attention_forward(device_, description_, inputs_, o_, lse_, workspace_.data());
    const sycl::event end = attention_backward(device_, description_, inputs_, o_, lse_, o_gradient_, gradients_,
                                               workspace_.data(), {&done, 1});
    std::vector<float> all(4 * count);
    std::vector<sycl::event> copies;
    std::size_t at = 0;
    for (const TensorView* view : {&o_, &gradients_.q, &gradients_.k, &gradients_.v}) {
      copies.push_back(device_.queue().memcpy(&all[at], view->data(), count * sizeof(float), end));
      at += count;
    }
    sycl::event::wait(copies);
    return all;
  }

 private:
  static constexpr std::int64_t length = 40;
  static constexpr std::size_t count = 2 * length * 32;

  TensorView put(const std::vector<float>& values) {
    memories_.emplace_back(device_, values.size() * sizeof(float), "a test");
    device_.queue().memcpy(memories_.back().data(), values.data(), values.size() * sizeof(float)).wait();
    return {memories_.back().data(), DType::f32, {1, 2, length, 32}};
  }

  Device device_;
  AttentionDescription description_;
  std::vector<Memory> memories_;
  AttentionInputs inputs_;
  AttentionGradients gradients_;
  TensorView o_, lse_, o_gradient_;
  Memory workspace_;
};

}  // namespace

TEST_SUITE("runtime/threads") {
  TEST_CASE("two threads on one device compute what one computes") {
    const Work relu(test::device(), Score::relu, 1), softmax(test::device(), Score::softmax, 11);
    const std::vector<float> relu_alone = relu.run(), softmax_alone = softmax.run();
    together(2, [&](int thread) {
      for (int i = 0; i < 20; ++i)
        if ((thread == 0 ? relu : softmax).run() != (thread == 0 ? relu_alone : softmax_alone))
          throw Error("thread " + std::to_string(thread) + " got other numbers in run " + std::to_string(i));
    });
  }

  TEST_CASE("threads that want one kernel at once get it built once and all use it") {
    const test::TemporaryDirectory cache;
    const test::Setting directory("SYLVIT_CACHE_DIR", cache.path().string());
    const Device fresh = Device::open();
    std::vector<std::vector<float>> results(3);
    together(3, [&](int thread) { results[static_cast<std::size_t>(thread)] = Work(fresh, Score::silu, 5).run(); });
    CHECK(results[0] == results[1]);
    CHECK(results[1] == results[2]);
  }

  TEST_CASE("two devices in one process") {
    const sycl::queue& first = test::device().queue();
    const sycl::queue unordered(first.get_context(), first.get_device());
    const std::vector<float> expected = Work(test::device(), Score::gelu, 3).run();
    together(2, [&](int thread) {
      const Device own = thread == 0 ? Device::open() : Device(unordered);
      const Work work(own, Score::gelu, 3);
      for (int i = 0; i < 10; ++i)
        if (work.run() != expected) throw Error("thread " + std::to_string(thread) + " got other numbers");
    });
  }

  TEST_CASE("devices are listed and opened by several threads at once") {
    const std::size_t count = list_devices().size();
    together(3, [&](int) {
      if (list_devices().size() != count) throw Error("another number of devices");
      Device::open().wait();
    });
  }

  TEST_CASE("two models share a device and parameters") {
    const VitConfig config = test::tiny_vit();
    VitParameters parameters(test::device(), config, DType::f32);
    parameters.initialise(2);
    const auto run = [&](unsigned seed, int times) {
      Vit model(test::device(), config, {.batch = 2, .constant = seed == 1});
      const std::vector<float> pixels = random_numbers(2 * 3 * 12 * 8, seed);
      const test::OnDevice<float> images(std::span<const float>(pixels), {2, 3, 12, 8});
      const test::OnDevice<float> logits(14, {2, 7});
      std::vector<float> result(14);
      for (int i = 0; i < times; ++i) {
        const sycl::event done = model.forward(parameters, images.view(), logits.view());
        test::device().queue().memcpy(result.data(), logits.data(), 14 * sizeof(float), done).wait();
      }
      return result;
    };
    const std::vector<std::vector<float>> alone{run(0, 1), run(1, 1)};
    together(2, [&](int thread) {
      if (run(static_cast<unsigned>(thread), 10) != alone[static_cast<std::size_t>(thread)])
        throw Error("thread " + std::to_string(thread) + " got other logits");
    });
  }

  TEST_CASE("a warning is said once, whichever thread has it") {
    std::atomic<int> said = 0;
    const Device device = Device::open({}, {.warn = [&](std::string_view) { ++said; }});
    together(4, [&](int) { device.warn("the same sentence"); });
    CHECK(said == 1);
  }

  TEST_CASE("the C interface keeps an error for each thread") {
    sylvit_device* device = nullptr;
    REQUIRE(sylvit_device_open(nullptr, &device) == SYLVIT_OK);
    together(2, [&](int thread) {
      for (int i = 0; i < 5; ++i) {
        sylvit_model* model = nullptr;
        const std::string path = "/no/such/file/" + std::to_string(thread) + std::to_string(i);
        if (sylvit_model_load(device, path.c_str(), nullptr, &model) != SYLVIT_FAILED) throw Error("it was loaded");
        if (std::string(sylvit_last_error()).find(path) == std::string::npos)
          throw Error(std::string("another thread's error: ") + sylvit_last_error());
      }
    });
    sylvit_device_close(device);
  }
}
