// The decoders behind images.hpp.
//
// libjpeg and libpng leave a failed call with longjmp, which skips destructors. So each call stands in a step: a lambda
// that owns nothing, run by guarded(), which turns the jump into an Error. Everything with a destructor lives outside
// of the steps.
#pragma once

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <string_view>

#include "images/images.hpp"

namespace sylvit::images {

/// Where a library's error handler jumps to, and why.
struct DecoderFailure {
  std::jmp_buf jump{};
  std::array<char, 256> reason{};

  [[noreturn]] void raise(std::string_view why) {
    *std::copy_n(why.begin(), std::min(why.size(), reason.size() - 1), reason.begin()) = '\0';
    std::longjmp(jump, 1);
  }
};

/// Runs a step; throws Error when the library jumped out of it.
template <class Step>
void guarded(DecoderFailure& failure, const std::string& name, const Step& step) {
  // NOLINTNEXTLINE(modernize-avoid-setjmp-longjmp,cert-err52-cpp): the libraries' only way out
  if (setjmp(failure.jump) != 0) throw Error(name + " is corrupt: " + failure.reason.data());
  step();
}

/// Throws Error when an image has no pixels or too many.
void check_size(const std::string& name, std::uint64_t width, std::uint64_t height);

Image decode_jpeg(std::span<const std::byte> file, const std::string& name);
Image decode_png(std::span<const std::byte> file, const std::string& name);

/// Height and width.
std::array<std::int64_t, 2> jpeg_extents(std::span<const std::byte> file, const std::string& name);
std::array<std::int64_t, 2> png_extents(std::span<const std::byte> file, const std::string& name);

}  // namespace sylvit::images
