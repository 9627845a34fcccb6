// Elements as they lie in a file (little-endian, not necessarily aligned), converted.
#pragma once

#include <sylvit/tensor.hpp>

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace sylvit::io {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian and are read as they lie");

template <class Stored, class Result>
std::vector<Result> converted(std::span<const std::byte> bytes) {
  std::vector<Result> result(bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < result.size(); ++i) {
    Stored value{};
    std::memcpy(&value, bytes.data() + i * sizeof(Stored), sizeof(Stored));  // the bytes may be unaligned
    result[i] = static_cast<Result>(value);  // NOLINT(bugprone-signed-char-misuse): I8 is a number, not a character
  }
  return result;
}

inline bool is_floating(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

/// The elements of a floating type; f64 is rounded.
inline std::vector<float> as_f32(DType dtype, std::span<const std::byte> bytes) {
  if (dtype == DType::f64) return converted<double, float>(bytes);
  if (dtype == DType::f16) return converted<f16, float>(bytes);
  if (dtype == DType::bf16) return converted<bf16, float>(bytes);
  return converted<float, float>(bytes);
}

inline bool is_integer(DType dtype) { return !is_floating(dtype) && dtype != DType::boolean; }

/// The elements of an integer type.
inline std::vector<std::int64_t> as_i64(DType dtype, std::span<const std::byte> bytes) {
  if (dtype == DType::i64) return converted<std::int64_t, std::int64_t>(bytes);
  if (dtype == DType::i32) return converted<std::int32_t, std::int64_t>(bytes);
  if (dtype == DType::i16) return converted<std::int16_t, std::int64_t>(bytes);
  if (dtype == DType::i8) return converted<std::int8_t, std::int64_t>(bytes);
  return converted<std::uint8_t, std::int64_t>(bytes);
}

}  // namespace sylvit::io
