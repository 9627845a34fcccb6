// Texts that came from elsewhere (files, paths, drivers), made fit for a terminal and for a message of one line.
#pragma once

#include <string>
#include <string_view>

namespace sylvit::base {

/// The text with all bytes spelled out, as in \x1b, that could steer a terminal or make a line look like another one:
/// control characters (line ends, U+0080 to U+009F and DEL among them), the characters that turn the direction of
/// writing (U+202A to U+202E, U+2066 to U+2069), separators of lines (U+2028, U+2029), and what is not UTF-8. Anything
/// else stays as it is, and what this function returned stays as it is, too.
std::string printable(std::string_view text);

}  // namespace sylvit::base
