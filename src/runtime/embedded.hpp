// Files of the source tree that are part of the library, so that an installed program needs no source tree. CMake
// writes the definitions (cmake/embed.cmake).
#pragma once

#include <span>
#include <string_view>

namespace sylvit {

struct EmbeddedFile {
  std::string_view name;
  std::string_view content;
};

/// The kernel headers, by the names under which they include each other: "kernels/loss.hpp", "sylvit/float16.hpp".
std::span<const EmbeddedFile> embedded_kernels();
/// The tuning tables: "dpcpp-cpu/default.json".
std::span<const EmbeddedFile> embedded_tables();

}  // namespace sylvit
