#include "io/messages.hpp"

#include <algorithm>
#include <system_error>

#include "base/printable.hpp"

namespace sylvit::io {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::size_t shown = std::min(text.size(), longest);
  // Do not cut a UTF-8 sequence in two: step back over its continuation bytes.
  while (shown < text.size() && shown > 0 && (static_cast<unsigned char>(text[shown]) & 0xC0U) == 0x80U) --shown;
  return '"' + base::printable(text.substr(0, shown)) + (shown < text.size() ? "…\"" : "\"");
}

void add_to_list(std::string& list, std::string_view item, std::string_view separator) {
  if (!list.empty()) list += separator;
  list += item;
}

std::string system_message(int code) { return std::generic_category().message(code); }

}  // namespace sylvit::io
