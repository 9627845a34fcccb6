#include "base/printable.hpp"

#include <array>
#include <cstddef>
#include <cstdio>

namespace sylvit::base {

namespace {

/// A character as it lies in the text: how many bytes it takes, and its number, which is `none` where there is none.
struct Character {
  static constexpr char32_t none = ~char32_t{0};
  std::size_t bytes = 1;
  char32_t number = none;
};

/// The first character of a text that is not empty. What is not UTF-8 (a stray or missing byte, a number written longer
/// than it need be, a surrogate, a number that Unicode has not) is one byte without a number.
Character first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {1, lead};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  char32_t number = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0U) != 0x80U) return {};
    number = number << 6 | (next & 0x3FU);
  }
  constexpr std::array<char32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  if (number < least[bytes] || number > 0x10FFFF || (number >= 0xD800 && number < 0xE000)) return {};
  return {bytes, number};
}

bool harmless(char32_t number) {
  const bool control = number < 0x20 || (number >= 0x7F && number < 0xA0);
  const bool separates_or_turns = (number >= 0x2028 && number <= 0x202E) || (number >= 0x2066 && number <= 0x2069);
  return number != Character::none && !control && !separates_or_turns;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_of(text);
    const std::string_view bytes = text.substr(0, character.bytes);
    if (harmless(character.number)) {
      result += bytes;
    } else {
      for (const char byte : bytes) {
        std::array<char, 5> spelled{};
        std::snprintf(spelled.data(), spelled.size(), "\\x%02x",
                      static_cast<unsigned>(static_cast<unsigned char>(byte)));
        result += spelled.data();
      }
    }
    text.remove_prefix(character.bytes);
  }
  return result;
}

}  // namespace sylvit::base
