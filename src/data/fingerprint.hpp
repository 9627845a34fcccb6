// A hash that tells a changed data set from the one that a checkpoint was trained with. Not for keeping forgers out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sylvit::data {

class Fingerprint {
 public:
  void add(std::uint64_t value) noexcept;
  /// With its length, so that two texts do not pass for two others.
  void add(std::string_view text) noexcept;
  /// Of more than 64 MiB only a part: 4096 bytes at 4096 places.
  void add(std::span<const std::byte> bytes) noexcept;

  std::uint64_t value() const noexcept { return state_; }
  /// 16 hexadecimal digits.
  std::string text() const;

 private:
  void add_all(std::span<const std::byte> bytes) noexcept;

  std::uint64_t state_ = 0x9E3779B97F4A7C15U;
};

}  // namespace sylvit::data
