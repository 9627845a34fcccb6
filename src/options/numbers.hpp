// Numbers on the command line, checked as the text they are: CLI11 clamps what is out of range, lets an unsigned number
// wrap around, and reads 010 as 8. Each check is for CLI::Option::check: it returns what is wrong, or nothing.
#pragma once

#include <string>

namespace sylvit::options {

/// A std::int64_t.
std::string whole_number(const std::string& text);
/// A std::int64_t from 1.
std::string positive_whole_number(const std::string& text);
/// A std::uint64_t.
std::string unsigned_number(const std::string& text);

/// Finite, and positive, when it is rounded to f32.
std::string finite_number(const std::string& text);
std::string positive_number(const std::string& text);
/// A finite number from 0, as of seconds.
std::string number_from_zero(const std::string& text);
/// An alpha: 0 to 2.
std::string alpha_number(const std::string& text);

}  // namespace sylvit::options
