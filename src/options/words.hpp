// Words on the command line that name something, and command lines that are wrong as a whole. main() answers both with
// exit code 2.
#pragma once

#include <sylvit/error.hpp>

#include <string>

namespace sylvit::options {

/// Each is for CLI::Option::check: it returns what is wrong with the word, or nothing.
std::string score_word(const std::string& text);
std::string storage_type_word(const std::string& text);
std::string model_word(const std::string& text);
std::string provider_word(const std::string& text);

/// For options that are right by themselves and not together.
[[noreturn]] void wrong_command_line(const std::string& sentence);

/// The result of work that nothing but the command line can make fail.
template <class Work>
auto by_command_line(const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    wrong_command_line(error.what());
  }
}

}  // namespace sylvit::options
