#include <algorithm>
#include <cstdlib>
#include <thread>

#include "support.hpp"

using namespace sylvit;
using sylvit::test::check_error;
using sylvit::test::Setting;

TEST_SUITE("runtime/device") {
  TEST_CASE("devices are listed with what is known of them, and at least one works") {
    const std::vector<DeviceInfo> devices = list_devices();
    REQUIRE(!devices.empty());
    CHECK(std::ranges::any_of(devices, &DeviceInfo::usable));
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const DeviceInfo& device = devices[i];
      CHECK(device.index == static_cast<int>(i));
      CHECK(device.usable == device.why.empty());
      CHECK(!device.name.empty());
      if (!device.usable) continue;
      CHECK(device.memory_bytes > 0);
      CHECK(device.compute_units > 0);
      CHECK(device.max_work_group > 0);
      CHECK(device.bf16);
      CHECK(device.fp16);
    }
  }

  TEST_CASE("a device is chosen by index, name part in any case, backend, type or both") {
    const DeviceInfo first = test::device().info();
    const std::string index = std::to_string(first.index);
    std::string part = first.name.substr(0, 4);
    std::ranges::transform(part, part.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    const std::string backend(name_of(first.backend));
    const std::string type(name_of(first.type));
    for (const std::string& selector : {index, first.name, part, backend, type, backend + ":" + type}) {
      CAPTURE(selector);
      const Device device = Device::open(selector);
      CHECK(device.info().usable);
    }
    CHECK(Device::open(index).info().index == first.index);
  }

  TEST_CASE("an unknown device is an error that lists the real ones") {
    const std::string name = test::device().name();
    check_error([] { Device::open("no such device"); }, {"'no such device'", "the devices are: 0 = "});
    check_error([&] { Device::open("99"); }, {"'99'", name});
    check_error([&] { Device::open("-1"); }, {"'-1'", name});
    check_error([&] { Device::open("0x"); }, {"'0x'", name});
  }

  TEST_CASE("SYLVIT_DEVICE chooses when the caller does not") {
    const Setting setting("SYLVIT_DEVICE", "no such device");
    check_error([] { Device::open(); }, {"SYLVIT_DEVICE='no such device'"});
    CHECK(Device::open(test::device().name()).info().usable);
  }

  TEST_CASE("a queue of the caller's own is used as it is") {
    const sycl::queue queue(test::device().queue().get_device());
    const Device device(queue);
    CHECK(device.queue() == queue);
    CHECK(device.info().index == -1);
    CHECK(device.info().usable);
  }

  TEST_CASE("a warning is said once") {
    std::vector<std::string> said;
    DeviceOptions options;
    options.warn = [&](std::string_view sentence) { said.emplace_back(sentence); };
    const Device device = Device::open({}, options);
    said.clear();
    device.warn("one");
    device.warn("two");
    device.warn("one");
    CHECK(said == std::vector<std::string>{"one", "two"});
  }

#if !defined(SYLVIT_TOOLCHAIN_ACPP)
  TEST_CASE("what fails asynchronously reaches the caller, once") {
    const Device device = Device::open();
    device.queue().submit(
        [](sycl::handler& handler) { handler.host_task([] { throw std::runtime_error("the host task broke"); }); });
    check_error([&] { device.wait(); }, {"the host task broke", device.name()});
    device.wait();
  }
#endif

  TEST_CASE("two threads may use one device") {
    const Device device = Device::open();
    std::vector<std::thread> threads;
    std::atomic<int> good = 0;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) {
          const Memory memory(device, 4096, "a test", MemoryKind::shared);
          device.queue().fill(memory.as<float>(), 2.0F, 1024).wait();
          if (memory.as<float>()[1023] == 2.0F) ++good;
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(good == 40);
  }
}
