// How much of a training step a pass over a batch does.
#pragma once

#include <sylvit/export.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace sylvit {

/// Each does what the one before does, and more.
enum class Pass : std::uint8_t {
  forward,           ///< logits
  forward_backward,  ///< loss and every gradient too: a training step without its optimiser
  train              ///< the optimiser's step too: a whole training step
};

/// From the least to the most.
inline constexpr std::array all_passes{Pass::forward, Pass::forward_backward, Pass::train};

/// "forward", "forward_backward", "train": the name of the enumerator.
SYLVIT_API std::string_view name_of(Pass pass) noexcept;
/// The pass of that name; "backward" is another word for forward_backward. Throws Error that lists the known names.
SYLVIT_API Pass parse_pass(std::string_view name);

}  // namespace sylvit
