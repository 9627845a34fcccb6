#include "io/messages.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <system_error>

namespace sylvit::io {

std::string escaped(std::string_view text) {
  std::string result;
  const auto spell = [&](unsigned char code) {
    std::array<char, 5> escape{};
    std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned>(code));
    result += escape.data();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto code = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
    if (code < 0x20 || code == 0x7F) {
      spell(code);
    } else if (code == 0xC2 && next >= 0x80 && next < 0xA0) {  // U+0080 to U+009F steer terminals too
      spell(code);
      spell(next);
      ++i;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::size_t shown = std::min(text.size(), longest);
  // Do not cut a UTF-8 sequence in two: step back over its continuation bytes.
  while (shown < text.size() && shown > 0 && (static_cast<unsigned char>(text[shown]) & 0xC0U) == 0x80U) --shown;
  return '"' + escaped(text.substr(0, shown)) + (shown < text.size() ? "…\"" : "\"");
}

void add_to_list(std::string& list, std::string_view item, std::string_view separator) {
  if (!list.empty()) list += separator;
  list += item;
}

std::string system_message(int code) { return std::generic_category().message(code); }

}  // namespace sylvit::io
