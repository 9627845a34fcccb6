// The 16-bit types, over all their bit patterns, against definitions that share nothing with the implementation.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "nn/basic.hpp"
#include "support.hpp"

using namespace sylvit;

namespace {

/// What the bits mean, by the definition of the format: sign, exponent, mantissa.
double meaning(std::uint16_t bits, int mantissa_bits, int bias) {
  const int exponent_bits = 15 - mantissa_bits;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}
double meaning(bf16 value) { return meaning(value.bits, 7, 127); }
double meaning(f16 value) { return meaning(value.bits, 10, 15); }

template <class T>
std::vector<T> all_patterns() {
  std::vector<T> values(65536);
  for (unsigned i = 0; i < values.size(); ++i) values[i] = T::from_bits(static_cast<std::uint16_t>(i));
  return values;
}

/// f32 numbers that are hard to round: every value of T, the midpoints between neighbours, and the f32 just beside
/// them.
template <class T>
std::vector<float> hard_to_round() {
  std::vector<float> numbers;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const T value : all_patterns<T>()) {
    const auto exact = static_cast<float>(meaning(value));
    numbers.push_back(exact);
    const auto above = static_cast<float>(meaning(T::from_bits(static_cast<std::uint16_t>(value.bits + 1))));
    if (!std::isfinite(exact) || !std::isfinite(above)) continue;
    const auto middle = static_cast<float>((static_cast<double>(exact) + above) / 2);
    for (const float number : {middle, std::nextafter(middle, infinity), std::nextafter(middle, -infinity),
                               std::nextafter(exact, infinity), std::nextafter(exact, -infinity)})
      numbers.push_back(number);
  }
  std::mt19937 random(7);
  for (int i = 0; i < 200000; ++i) numbers.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  for (const float number : {65504.0F, 65519.99F, 65520.0F, 65536.0F, infinity, -infinity, 0.0F, -0.0F,
                             std::numeric_limits<float>::max(), std::numeric_limits<float>::denorm_min()})
    numbers.push_back(number);
  for (const std::uint32_t nan : {0x7f800001U, 0x7fc00000U, 0xff800001U, 0x7f80ffffU, 0x7fffffffU})
    numbers.push_back(std::bit_cast<float>(nan));
  return numbers;
}

/// Is this the nearest value of T, ties to the even one? Checked against both neighbours. `step_to_infinity` is where
/// the value after the largest finite one would lie, which decides when to round to infinity.
template <class T>
bool is_nearest(float number, T rounded, double step_to_infinity) {
  if (std::isnan(number)) return std::isnan(meaning(rounded)) && std::signbit(number) == ((rounded.bits & 0x8000) != 0);
  if (std::signbit(number) != ((rounded.bits & 0x8000) != 0)) return false;
  const auto value_of = [&](int magnitude) {
    const double value = meaning(T::from_bits(static_cast<std::uint16_t>(magnitude)));
    return std::isinf(value) ? step_to_infinity : value;
  };
  const double magnitude = std::abs(static_cast<double>(number));
  const int bits = rounded.bits & 0x7fff;
  if (std::isnan(meaning(rounded))) return false;
  const bool is_infinite = std::isinf(meaning(rounded));
  const double distance =
      is_infinite ? std::max(0.0, value_of(bits) - magnitude) : std::abs(magnitude - value_of(bits));
  const auto beats = [&](double other) { return distance < other || (distance == other && bits % 2 == 0); };
  const bool lower = bits == 0 || beats(magnitude - value_of(bits - 1));
  const bool upper = is_infinite || beats(value_of(bits + 1) - magnitude);
  return lower && upper;
}

template <class T>
void check_widening(const std::vector<float>& widened) {
  int wrong = 0;
  for (unsigned i = 0; i < 65536; ++i) {
    const double expected = meaning(T::from_bits(static_cast<std::uint16_t>(i)));
    const double got = widened[i];
    const bool right =
        std::isnan(expected) ? std::isnan(got) : got == expected && std::signbit(got) == std::signbit(expected);
    if (!right) ++wrong;
  }
  CHECK(wrong == 0);
}

template <class T>
void check_rounding(const std::vector<float>& numbers, const std::vector<T>& rounded, double step_to_infinity) {
  int wrong = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!is_nearest(numbers[i], rounded[i], step_to_infinity)) {
      if (wrong++ == 0) MESSAGE("first wrong: " << numbers[i] << " became " << meaning(rounded[i]));
    }
  CHECK(wrong == 0);
}

template <class T>
void check_host_and_device(double step_to_infinity) {
  const std::vector<T> patterns = all_patterns<T>();
  const std::vector<float> numbers = hard_to_round<T>();
  const auto count = static_cast<std::int64_t>(numbers.size());

  const std::vector<float> widened(patterns.begin(), patterns.end());
  check_widening<T>(widened);
  std::vector<T> rounded;
  for (const float number : numbers) rounded.push_back(T(number));
  check_rounding(numbers, rounded, step_to_infinity);

  const test::OnDevice<T> device_patterns(std::span<const T>(patterns), Shape{65536});
  const test::OnDevice<float> device_widened(std::size_t{65536}, Shape{65536});
  nn::convert(test::device(), device_patterns.view(), device_widened.view());
  check_widening<T>(device_widened.read());
  const test::OnDevice<float> device_numbers(std::span<const float>(numbers), Shape{count});
  const test::OnDevice<T> device_rounded(numbers.size(), Shape{count});
  nn::convert(test::device(), device_numbers.view(), device_rounded.view());
  check_rounding(numbers, device_rounded.read(), step_to_infinity);
}

}  // namespace

TEST_SUITE("runtime/float16") {
  TEST_CASE("bf16 converts exactly on host and device") { check_host_and_device<bf16>(std::ldexp(1.0, 128)); }
  TEST_CASE("f16 converts exactly on host and device") { check_host_and_device<f16>(65536.0); }

  TEST_CASE("a value of the type survives the way to f32 and back, with all its bits") {
    int wrong = 0;
    for (const bf16 value : all_patterns<bf16>())
      if (!std::isnan(meaning(value)) && bf16(static_cast<float>(value)).bits != value.bits) ++wrong;
    for (const f16 value : all_patterns<f16>())
      if (!std::isnan(meaning(value)) && f16(static_cast<float>(value)).bits != value.bits) ++wrong;
    CHECK(wrong == 0);
  }
}
