#include "data/fingerprint.hpp"

#include <array>
#include <cstdio>
#include <cstring>

#include "augment/random.hpp"

namespace sylvit::data {

namespace {
constexpr std::size_t looked_at_whole = std::size_t{64} << 20U;
constexpr std::size_t places = 4096;
constexpr std::size_t place_bytes = 4096;
}  // namespace

void Fingerprint::add(std::uint64_t value) noexcept { state_ = augment::mixed(state_ ^ value) + value; }

void Fingerprint::add_all(std::span<const std::byte> bytes) noexcept {
  std::uint64_t word = 0;
  for (; bytes.size() >= sizeof word; bytes = bytes.subspan(sizeof word)) {
    std::memcpy(&word, bytes.data(), sizeof word);
    add(word);
  }
  word = 0;
  if (!bytes.empty()) std::memcpy(&word, bytes.data(), bytes.size());
  add(word);
}

void Fingerprint::add(std::string_view text) noexcept { add(std::as_bytes(std::span(text))); }

void Fingerprint::add(std::span<const std::byte> bytes) noexcept {
  add(std::uint64_t{bytes.size()});
  if (bytes.size() <= looked_at_whole) return add_all(bytes);
  const std::size_t step = (bytes.size() - place_bytes) / (places - 1);
  for (std::size_t i = 0; i < places; ++i) add_all(bytes.subspan(i * step, place_bytes));
}

std::string Fingerprint::text() const {
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(state_));
  return digits.data();
}

}  // namespace sylvit::data
