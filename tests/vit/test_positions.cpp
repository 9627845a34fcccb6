#include <cmath>

#include "support.hpp"
#include "vit/positions.hpp"

using namespace sylvit;

namespace {

/// [4, 4, 2], the same numbers that PyTorch was given.
std::vector<float> grid() {
  std::vector<float> values;
  for (int i = 0; i < 32; ++i) values.push_back(static_cast<float>(i * 37 % 23) / 8.0F - 1.0F);
  return values;
}

void check_close(float got, double expected) { CHECK(std::abs(static_cast<double>(got) - expected) < 2e-6); }

}  // namespace

// Expected: timm's resample_abs_pos_embed, which is PyTorch's interpolate(mode="bicubic", antialias=True).
TEST_SUITE("vit/positions") {
  TEST_CASE("a smaller grid is what timm makes of it") {
    const std::vector<double> expected{-0.4540266, 0.8930537, 0.390906,  -0.1244539, 0.8287027,  0.6770484,
                                       0.0073416,  0.3770661, 1.0257969, 0.0893844,  -0.2881983, 0.8785862};
    const std::vector<float> got = vit::resized_positions(grid(), 4, 4, 3, 2, 2);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) check_close(got[i], expected[i]);
  }

  TEST_CASE("a larger grid, not square, is what timm makes of it") {
    const std::vector<float> got = vit::resized_positions(grid(), 4, 4, 5, 7, 2);
    REQUIRE(got.size() == 5 * 7 * 2);
    const std::vector<double> first_channel{-1.1676207, -0.9056774, -0.4118962, -0.0384991, 0.3137175,  0.7263057,
                                            0.9408053,  0.955801,   0.2956149,  -0.7737918, -0.5500219, 0.0607532};
    for (std::size_t i = 0; i < first_channel.size(); ++i) check_close(got[2 * i], first_channel[i]);
    check_close(got[2 * (2 * 7 + 3)], -0.00732421875);
    check_close(got[2 * (2 * 7 + 3) + 1], 1.4169921875);
    check_close(got[2 * (4 * 7 + 6)], -0.2166466);
    check_close(got[2 * (4 * 7 + 6) + 1], 1.6676208);
  }

  TEST_CASE("the same grid stays as it is") { CHECK(vit::resized_positions(grid(), 4, 4, 4, 4, 2) == grid()); }
}
