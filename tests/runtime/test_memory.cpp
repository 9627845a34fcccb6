#include "support.hpp"

using namespace sylvit;
using sylvit::test::check_error;
using sylvit::test::device;

TEST_SUITE("runtime/memory") {
  TEST_CASE("an allocation larger than the device is refused with both numbers") {
    const std::size_t huge = device().info().memory_bytes * 4;
    check_error([&] { Memory(device(), huge, "the weights"); },
                {std::to_string(huge), "for the weights", "the device has", device().name(), "smaller batch"});
    check_error([&] { Memory(device(), ~std::size_t{0}, "nothing sensible"); }, {"for nothing sensible"});
  }

  TEST_CASE("memory moves and can be empty") {
    Memory first(device(), 1024, "a test");
    void* data = first.data();
    Memory second = std::move(first);
    CHECK(second.data() == data);
    CHECK(second.bytes() == 1024);
    Memory third;
    CHECK(third.data() == nullptr);
    third = std::move(second);
    CHECK(third.data() == data);
    const Memory nothing(device(), 0, "nothing");
    CHECK(nothing.bytes() == 0);
  }

  TEST_CASE("sizes for people") {
    CHECK(readable_bytes(0) == "0 bytes");
    CHECK(readable_bytes(1536) == "1.5 KB");
    CHECK(readable_bytes(std::size_t{24} << 30) == "24.0 GB");
  }
}
