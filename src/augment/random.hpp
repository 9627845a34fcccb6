// Random numbers that are a pure function of what they are for: of seed, epoch and image, and of how many were drawn
// before. So nothing has to be kept or skipped, and the number of threads changes nothing.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace sylvit::augment {

/// A one-to-one function of 64 bits each of whose output bits depends on every input bit (the end of SplitMix64, by
/// Steele, Lea and Flood, with Stafford's constants).
constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

/// SplitMix64 that starts at a hash of its key: {seed, purpose, epoch, image}, say.
class Random {
 public:
  explicit constexpr Random(std::initializer_list<std::uint64_t> key) noexcept {
    for (const std::uint64_t part : key) state_ = mixed(state_ ^ mixed(part + step));
  }

  constexpr std::uint64_t bits() noexcept { return mixed(state_ += step); }
  /// In [0, 1), a multiple of 2^-53.
  constexpr double uniform() noexcept { return static_cast<double>(bits() >> 11U) * 0x1p-53; }
  /// In [begin, end).
  constexpr double uniform(double begin, double end) noexcept { return begin + (end - begin) * uniform(); }
  /// 0 to count - 1, each as likely as the others (Lemire's method). count > 0.
  constexpr std::uint64_t below(std::uint64_t count) noexcept {
    __extension__ using Wide = unsigned __int128;
    Wide product = static_cast<Wide>(bits()) * count;
    if (static_cast<std::uint64_t>(product) < count) {
      const std::uint64_t least = (0 - count) % count;
      while (static_cast<std::uint64_t>(product) < least) product = static_cast<Wide>(bits()) * count;
    }
    return static_cast<std::uint64_t>(product >> 64U);
  }

 private:
  static constexpr std::uint64_t step = 0x9E3779B97F4A7C15U;
  std::uint64_t state_ = 0;
};

/// Of mean 0 and deviation 1 (Box and Muller's method, of which one of two numbers is used).
double normal(Random& random);

/// Beta(p, p): two Gamma(p) by Marsaglia and Tsang's method. p > 0.
double beta(Random& random, double p);

}  // namespace sylvit::augment
