#include <algorithm>
#include <array>

#include "catalogue/kernel.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/layer_norm.hpp"
#include "runtime/grid_check.hpp"
#include "runtime/kernel.hpp"
#include "runtime/translate.hpp"
#include "support.hpp"
#include "tuning/choice.hpp"
#include "tuning/variants.hpp"

using namespace sylvit;
using sylvit::test::check_error;
using sylvit::test::device;

namespace {

runtime::Kernel<kernels::FillArguments> fill_named(const std::string& type) {
  return {{.header = "elementwise.hpp", .arguments = "FillArguments", .type = type}};
}

}  // namespace

TEST_SUITE("runtime/launch") {
  TEST_CASE("a kernel that does not exist is one sentence with the compiler's own lines, not a wall") {
    const Memory memory(device(), 64, "a test");
    std::string sentence;
    try {
      launch(device(), fill_named("NoSuchKernel<float>"), {1, 1, 1}, {.out = memory.data(), .count = 1, .value = 0});
    } catch (const Error& error) {
      sentence = error.what();
    }
    CAPTURE(sentence);
    CHECK(sentence.find("NoSuchKernel") != std::string::npos);
    CHECK(sentence.find(device().name()) != std::string::npos);
    CHECK(std::ranges::count(sentence, '\n') <= 14);
    CHECK(sentence.size() < 2500);
    // The device goes on working.
    const auto& table = tuning::table_for(device().info());
    const auto config = tuning::config_for<kernels::ElementwiseConfig>(table);
    launch(device(), catalogue::kernel<kernels::FillKernel>(config, DType::f32), {1, 1, 1},
           {.out = memory.data(), .count = 16, .value = 4});
    float value = 0;
    device().queue().memcpy(&value, memory.as<float>() + 15, sizeof(float)).wait();
    CHECK(value == 4);
  }

  TEST_CASE("what the device would get silently wrong is refused") {
    const auto& table = tuning::table_for(device().info());
    auto fill =
        catalogue::kernel<kernels::FillKernel>(tuning::config_for<kernels::ElementwiseConfig>(table), DType::f32);
    auto norm = catalogue::kernel<kernels::LayerNormForwardKernel>(tuning::config_for<kernels::LayerNormConfig>(table),
                                                                   DType::f32);
    fill.work_items = static_cast<int>(device().info().max_work_group) + 1;
    check_error(
        [&] {
          launch(device(), fill, {1, 1, 1}, {});
        },
        {"work-groups of " + std::to_string(fill.work_items), "takes 1 to"});
    fill.work_items = 0;
    check_error([&] { launch(device(), fill, {1, 1, 1}, {}); }, {"work-groups of 0"});
    norm.local_floats = static_cast<int>(device().info().local_memory_bytes / 4) + 1;
    check_error(
        [&] {
          launch(device(), norm, {1, 1, 1}, {});
        },
        {"local memory", std::to_string(device().info().local_memory_bytes)});
  }

  TEST_CASE("f16 on a device without it is refused, and no other type") {
    DeviceInfo without = device().info();
    without.fp16 = false;
    constexpr kernels::ElementwiseConfig config{64, 16};
    for (const auto& [from, to] : {std::pair{DType::f16, DType::f32}, {DType::f32, DType::f16}}) {
      const auto kernel = catalogue::kernel<kernels::ConvertKernel>(config, from, to);
      check_error([&] { runtime::check_type(without, kernel); }, {"has no f16", device().name()});
      CHECK_NOTHROW(runtime::check_type(device().info(), kernel));
    }
    CHECK_NOTHROW(runtime::check_type(without, catalogue::kernel<kernels::FillKernel>(config, DType::bf16)));
    CHECK_NOTHROW(
        runtime::check_type(without, catalogue::kernel<kernels::ConvertKernel>(config, DType::f32, DType::bf16)));
  }

#if defined(SYLVIT_TOOLCHAIN_RTC)
  TEST_CASE("a sub-group size that the device lacks is named before anything is built") {
    auto kernel = fill_named("Fill<float, ElementwiseConfig{16, 1}>");
    kernel.sub_group_size = 7;
    kernel.work_items = 16;
    check_error([&] { launch(device(), kernel, {1, 1, 1}, {}); }, {"sub-groups of 7", "the device has"});
  }
#endif

  TEST_CASE("tiles narrower than the only sub-group size share one") {
    constexpr std::array nvidia{32};
    constexpr std::array intel{8, 16, 32};
    for (const int lanes : {0, 4, 8, 16, 32}) CHECK(runtime::runs_sub_groups_of(nvidia, lanes));
    for (const int lanes : {12, 64}) CHECK_FALSE(runtime::runs_sub_groups_of(nvidia, lanes));
    for (const int lanes : {0, 8, 16, 32}) CHECK(runtime::runs_sub_groups_of(intel, lanes));
    for (const int lanes : {4, 7, 64}) CHECK_FALSE(runtime::runs_sub_groups_of(intel, lanes));
  }

  TEST_CASE("every variant of this toolchain's CPU table can be prepared in one batch, twice") {
    const auto variants = tuning::variants_of(tuning::table_for(device().info()), "elementwise");
    CHECK(variants.size() >= 9);
    runtime::prepare(device(), variants);
    runtime::prepare(device(), variants);
  }

  TEST_CASE("foreign exceptions become sentences with advice") {
    const auto translated = [](auto exception) {
      return runtime::translate(std::make_exception_ptr(exception), "multiplying", "the device");
    };
    const Error memory = translated(std::runtime_error("backend failed: UR_RESULT_ERROR_OUT_OF_RESOURCES\nmore"));
    CHECK(std::string(memory.what()) ==
          "multiplying failed: backend failed: UR_RESULT_ERROR_OUT_OF_RESOURCES (on the device); use a smaller batch "
          "or a "
          "device with more memory");
    CHECK(translated(std::bad_alloc()).failure() == "multiplying failed: the host is out of memory");
    CHECK(translated(42).failure() == "multiplying failed for an unknown reason");
    CHECK(translated(Error("as it was")).failure() == "as it was");
    const Error sycl = translated(sycl::exception(sycl::make_error_code(sycl::errc::invalid), "bad range"));
    CHECK(sycl.failure().find("bad range") != std::string::npos);
    CHECK(sycl.device() == "the device");
  }
}
