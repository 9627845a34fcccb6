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

  TEST_CASE("an arena hands out aligned parts, takes them back, and never gives more than it has") {
    Arena arena(device(), 4096, "a test");
    auto* first = static_cast<std::byte*>(arena.take(100));
    const std::size_t mark = arena.mark();
    const TensorView second = arena.take(DType::f32, Shape{10, 10});
    CHECK(second.as<std::byte>() == first + Arena::alignment);
    CHECK(reinterpret_cast<std::uintptr_t>(second.data()) % 64 == 0);
    CHECK(arena.used() == 256 + 512);
    arena.release(mark);
    CHECK(arena.take(1) == second.data());
    CHECK(arena.peak() == 256 + 512);
    check_error([&] { arena.take(4096); }, {"for a test", "4096 bytes", "3584 are left", "4096 more"});
    check_error([&] { arena.take(~std::size_t{0} - 10); }, {"for a test"});
    check_error([&] { arena.release(100000); }, {"release"});
    CHECK(arena.take(3584) != nullptr);
    check_error([&] { arena.take(1); }, {"0 are left"});
  }

  TEST_CASE("sizes for people") {
    CHECK(readable_bytes(0) == "0 bytes");
    CHECK(readable_bytes(1536) == "1.5 KB");
    CHECK(readable_bytes(std::size_t{24} << 30) == "24.0 GB");
  }
}
