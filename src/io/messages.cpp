#include "io/messages.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <system_error>

namespace sylvit::io {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::size_t shown = std::min(text.size(), longest);
  // Do not cut a UTF-8 sequence in two: step back over its continuation bytes.
  while (shown < text.size() && shown > 0 && (static_cast<unsigned char>(text[shown]) & 0xC0U) == 0x80U) --shown;
  std::string result = "\"";
  for (const char c : text.substr(0, shown)) {
    const auto code = static_cast<unsigned char>(c);
    if (code >= 0x20 && code != 0x7F) {
      result += c;
    } else {
      std::array<char, 5> escape{};
      std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned>(code));
      result += escape.data();
    }
  }
  return result + (shown < text.size() ? "…\"" : "\"");
}

void add_to_list(std::string& list, std::string_view item, std::string_view separator) {
  if (!list.empty()) list += separator;
  list += item;
}

std::string system_message(int code) { return std::generic_category().message(code); }

}  // namespace sylvit::io
