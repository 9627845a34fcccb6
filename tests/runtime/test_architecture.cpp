// What kind of device it is, from what the runtimes say of it.
#include "runtime/architecture.hpp"
#include "runtime/host_cpu.hpp"
#include "support.hpp"

using namespace sylvit::runtime;
using sylvit::Backend;

TEST_SUITE("runtime/architecture") {
  TEST_CASE("DPC++'s numbers") {
    CHECK(architecture_of_id(0x0100000000008000) == "sm_80");
    CHECK(architecture_of_id(0x01000000000090a0) == "sm_90");
    CHECK(architecture_of_id(0x0200000000090a00) == "gfx90a");
    CHECK(architecture_of_id(0x0200000000094200) == "gfx942");
    CHECK(architecture_of_id(0x0200000000110000) == "gfx1100");
    CHECK(architecture_of_id(0x0000000300000000) == "xe-lp");   // Tiger Lake
    CHECK(architecture_of_id(0x0000000302800000) == "xe-lp");   // DG1
    CHECK(architecture_of_id(0x000000030dc00800) == "xe-hpg");  // Alchemist
    CHECK(architecture_of_id(0x000000030f000700) == "xe-hpc");  // Ponte Vecchio
    CHECK(architecture_of_id(0x0000000311800400) == "xe-lpg");  // Meteor Lake
    CHECK(architecture_of_id(0x0000000500400400) == "xe2");     // Battlemage
    CHECK(architecture_of_id(0x0000000240000900) == "gen9");    // Skylake
    CHECK(architecture_of_id(0x0300000000000000).empty());      // a CPU
    CHECK(architecture_of_id(0x9900000000000000).empty());      // unknown
  }

  TEST_CASE("versions as the runtimes write them") {
    CHECK(architecture_of_version(Backend::cuda, "8.6") == "sm_86");
    CHECK(architecture_of_version(Backend::cuda, "12.0") == "sm_120");
    CHECK(architecture_of_version(Backend::cuda, "sm_90") == "sm_90");
    CHECK(architecture_of_version(Backend::hip, "gfx90a:sramecc+:xnack-") == "gfx90a");
    CHECK(architecture_of_version(Backend::hip, "AMD Radeon gfx1030 device") == "gfx1030");
    CHECK(architecture_of_version(Backend::cuda, "12.4.1").empty());
    CHECK(architecture_of_version(Backend::cuda, "CUDA 12.4").empty());
    CHECK(architecture_of_version(Backend::cuda, "sm_").empty());
    CHECK(architecture_of_version(Backend::opencl, "3.0").empty());
    CHECK(architecture_of_version(Backend::cuda, "").empty());
  }

  TEST_CASE("names of Intel's GPUs") {
    CHECK(architecture_of_intel_name("Intel(R) Arc(TM) A770 Graphics") == "xe-hpg");
    CHECK(architecture_of_intel_name("Intel(R) Data Center GPU Max 1550") == "xe-hpc");
    CHECK(architecture_of_intel_name("Intel(R) Iris(R) Xe Graphics") == "xe-lp");
    CHECK(architecture_of_intel_name("Intel(R) UHD Graphics 770") == "xe-lp");
    CHECK(architecture_of_intel_name("Intel(R) UHD Graphics 620").empty());
    CHECK(architecture_of_intel_name("A device").empty());
  }

  TEST_CASE("the CPU's vectors") {
    if (sylvit::test::device().info().type == sylvit::DeviceType::cpu)
      CHECK(sylvit::test::device().info().architecture == host_vector_class());
#if defined(__x86_64__)
    CHECK(!host_vector_class().empty());
#endif
  }
}
