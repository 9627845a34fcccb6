#include <algorithm>
#include <array>

#include "kernels/elementwise.hpp"
#include "nn/variants.hpp"
#include "runtime/grid_check.hpp"
#include "runtime/kernel.hpp"
#include "runtime/translate.hpp"
#include "support.hpp"

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
      launch(device(), fill_named("NoSuchKernel<float>"), {}, {.out = memory.data(), .count = 1, .value = 0});
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
    const auto config = nn::elementwise_config(table.find({.kernel = "elementwise"}));
    launch(device(), nn::fill_kernel(DType::f32, config), {.work_items = static_cast<std::size_t>(config.work_items)},
           {.out = memory.data(), .count = 16, .value = 4});
    float value = 0;
    device().queue().memcpy(&value, memory.as<float>() + 15, sizeof(float)).wait();
    CHECK(value == 4);
  }

  TEST_CASE("what the device would get silently wrong is refused") {
    const auto& table = tuning::table_for(device().info());
    const auto fill = nn::fill_kernel(DType::f32, nn::elementwise_config(table.find({.kernel = "elementwise"})));
    const auto reduce =
        nn::reduce_rows_kernel(DType::f32, nn::reduce_rows_config(table.find({.kernel = "reduce_rows"})));
    const std::size_t too_many = device().info().max_work_group + 1;
    check_error([&] { launch(device(), fill, {.work_items = too_many}, {}); },
                {"work-groups of " + std::to_string(too_many), "takes 1 to"});
    check_error([&] { launch(device(), fill, {.work_items = 0}, {}); }, {"work-groups of 0"});
    const std::size_t too_much = device().info().local_memory_bytes / 4 + 1;
    check_error([&] { launch(device(), reduce, {.work_items = 1, .local_floats = too_much}, {}); },
                {"local memory", std::to_string(device().info().local_memory_bytes)});
    check_error([&] { launch(device(), fill, {.work_items = 1, .local_floats = 4}, {}); }, {"local memory"});
  }

  TEST_CASE("f16 on a device without it is refused, and no other type") {
    DeviceInfo without = device().info();
    without.fp16 = false;
    for (const char* type :
         {"Fill<f16, ElementwiseConfig{64, 16}>", "Convert<float, f16, ElementwiseConfig{64, 16}>"}) {
      const runtime::KernelName kernel = fill_named(type);
      check_error([&] { runtime::check_type(without, kernel); }, {"has no f16", device().name()});
      CHECK_NOTHROW(runtime::check_type(device().info(), kernel));
    }
    for (const char* type :
         {"Fill<bf16, ElementwiseConfig{64, 16}>", "Convert<float, bf16, ElementwiseConfig{64, 16}>"})
      CHECK_NOTHROW(runtime::check_type(without, fill_named(type)));
  }

#if defined(SYLVIT_TOOLCHAIN_RTC)
  TEST_CASE("a sub-group size that the device lacks is named before anything is built") {
    auto kernel = fill_named("Fill<float, ElementwiseConfig{16, 1}>");
    kernel.sub_group_size = 7;
    check_error([&] { launch(device(), kernel, {.work_items = 16}, {}); }, {"sub-groups of 7", "the device has"});
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
    const auto variants = nn::basic_variants(tuning::table_for(device().info()));
    CHECK(variants.size() > 10);
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
