// Words for the sentences that errors are made of.
#pragma once

#include <string>
#include <string_view>

namespace sylvit::io {

/// A text from a file in quotes, fit for a message of one line: shortened, and base::printable().
std::string in_quotes(std::string_view text);

void add_to_list(std::string& list, std::string_view item, std::string_view separator = ", ");

/// What the system says of an errno.
std::string system_message(int code);

}  // namespace sylvit::io
