// What a fuzz target gives to its driver: libFuzzer, or the loop of driver.cpp where the compiler has no libFuzzer.
// tests/CMakeLists.txt builds targets with sylvit_fuzz().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

/// Tries one input and crashes on what must not be.
// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace sylvit::fuzz {

/// Good inputs to begin with, one of each kind, so that changes to them reach deep.
std::vector<std::string> seeds();

/// Pieces of the format, which single changed bytes would hardly make.
std::vector<std::string_view> words();

inline void require(bool holds) {
  if (!holds) std::abort();
}

/// What says why an input, called "fuzz", is refused: one line with its name, of a length that a person reads, and
/// nothing in it that steers a terminal.
inline void require_sentence(std::string_view text) {
  require(text.find("fuzz") != std::string_view::npos && text.size() < 2000);
  for (const char c : text) require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
}

}  // namespace sylvit::fuzz
