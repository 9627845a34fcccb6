// 16-bit storage types. They hold bits and convert; arithmetic happens in f32. Host, run-time compiled and
// ahead-of-time compiled code give the same bits everywhere: round to nearest, ties to even; infinities, signed zeros
// and subnormals exact; a NaN stays a NaN of the same sign. On a host the conversions are plain integer and f32
// operations.
#pragma once

#include <bit>
#include <cstdint>

namespace sylvit {

/// bfloat16: the upper half of an f32.
struct bf16 {
  std::uint16_t bits = 0;  ///< as it is stored

  bf16() = default;
  /// The nearest bf16.
  explicit constexpr bf16(float value) : bits(round(std::bit_cast<std::uint32_t>(value))) {}
  /// Exactly that number.
  constexpr operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  /// The number that is stored as these bits.
  static constexpr bf16 from_bits(std::uint16_t raw) {
    bf16 result;
    result.bits = raw;
    return result;
  }

 private:
  static constexpr std::uint16_t round(std::uint32_t f32) {
    // A NaN whose payload sits only in the lower half would round to infinity: keep it a (quiet) NaN.
    const std::uint32_t quiet_nan = (f32 >> 16) | 0x0040U;
    const std::uint32_t nearest_even = (f32 + 0x7fffU + ((f32 >> 16) & 1U)) >> 16;
    const bool is_nan = (f32 & 0x7fffffffU) > 0x7f800000U;
    return static_cast<std::uint16_t>(is_nan ? quiet_nan : nearest_even);
  }
};

/// IEEE 754 binary16.
struct f16 {
  std::uint16_t bits = 0;  ///< as it is stored

  f16() = default;
  /// The nearest f16.
  explicit constexpr f16(float value) : bits(round(value)) {}
  /// Exactly that number.
  constexpr operator float() const { return widen(bits); }
  /// The number that is stored as these bits.
  static constexpr f16 from_bits(std::uint16_t raw) {
    f16 result;
    result.bits = raw;
    return result;
  }

 private:
#if defined(SYLVIT_RUN_TIME_COMPILED) || defined(__SYCL_DEVICE_ONLY__) || defined(__ACPP__)
  // Devices have instructions for both directions; the integer operations below cost a backward pass half its speed.
  static constexpr std::uint16_t round(float value) {
    return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
  }
  static constexpr float widen(std::uint16_t f16_bits) { return static_cast<float>(std::bit_cast<_Float16>(f16_bits)); }
#else
  // Both directions are written as selects rather than branches, so that a loop over them vectorises.
  static constexpr std::uint16_t round(float value) {
    const auto f32 = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (f32 >> 16) & 0x8000U;
    const std::uint32_t magnitude = f32 & 0x7fffffffU;
    // Normal result: shift the exponent bias from 127 to 15 and round the 13 bits that fall off. A carry out of the
    // mantissa runs into the exponent, up to infinity, which is what rounding asks for.
    const std::uint32_t normal = (magnitude - 0x38000000U + 0x0fffU + ((magnitude >> 13) & 1U)) >> 13;
    // Subnormal result: adding 0.5 puts the unit of the f16 subnormals at the last bit of the f32 mantissa, and the
    // addition itself rounds to nearest even.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
    const std::uint32_t nan = 0x7e00U | ((magnitude >> 13) & 0x01ffU);
    std::uint32_t result = magnitude < 0x38800000U ? subnormal : normal;
    result = magnitude >= 0x477ff000U ? 0x7c00U : result;  // 65520 and above round to infinity
    result = magnitude > 0x7f800000U ? nan : result;
    return static_cast<std::uint16_t>(sign | result);
  }

  static constexpr float widen(std::uint16_t f16_bits) {
    const std::uint32_t sign = (static_cast<std::uint32_t>(f16_bits) & 0x8000U) << 16;
    const std::uint32_t magnitude = f16_bits & 0x7fffU;
    const std::uint32_t normal = (magnitude << 13) + 0x38000000U;
    // Subnormal: the mantissa as the fraction of 2^-14, less that 2^-14. No f32 subnormal appears on the way, so a
    // device that flushes those to zero gets this right too.
    const auto subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>((magnitude << 13) + 0x38800000U) -
                                                        std::bit_cast<float>(0x38800000U));
    const std::uint32_t infinite_or_nan = (magnitude << 13) + 0x70000000U;
    std::uint32_t result = magnitude < 0x0400U ? subnormal : normal;
    result = magnitude >= 0x7c00U ? infinite_or_nan : result;
    return std::bit_cast<float>(sign | result);
  }
#endif
};

}  // namespace sylvit
