// Rotated, sheared and moved images, with the bits of Pillow and of TensorFlow, and flips and crops.
#pragma once

#include <sylvit/images.hpp>

#include <array>
#include <cstdint>

namespace sylvit::augment {

/// Where an output pixel (x, y) is taken from: (a x + b y + c, d x + e y + f).
struct Affine {
  double a = 1, b = 0, c = 0;
  double d = 0, e = 1, f = 0;
};

/// What is put where there was no image: of each channel.
using Fill = std::array<std::uint8_t, 3>;

/// Pillow's rotation about the middle, counter-clockwise.
Affine pillow_rotation(std::int64_t height, std::int64_t width, double degrees);
/// TensorFlow Addons' rotation about the middle, counter-clockwise.
Affine tensorflow_rotation(std::int64_t height, std::int64_t width, double degrees);

/// Pillow's Image.transform: between pixels, whose middles are at halves. `resampling` is bilinear or bicubic.
Image transformed(const Image& image, const Affine& affine, Resampling resampling, const Fill& fill);
/// TensorFlow's ImageProjectiveTransform: the nearest pixel, whose middles are at whole numbers.
Image nearest(const Image& image, const Affine& affine, const Fill& fill);

/// Left and right exchanged.
void flip(Image& image);
/// Fills a rectangle, of which a part may lie outside.
void fill(Image& image, ImageBox box, const Fill& fill);
/// A part of the image, of which some may lie outside: black, or as if the image were mirrored at its border.
Image cut_out(const Image& image, const ImageBox& part, bool mirrored);

}  // namespace sylvit::augment
