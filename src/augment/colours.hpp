// Changes of an image's colours, of one channel or three. Pillow's and TensorFlow's code for the same word differ in
// places; `Library` says whose bits are meant.
#pragma once

#include <sylvit/images.hpp>

#include <cstdint>

namespace sylvit::augment {

enum class Library : std::uint8_t {
  pillow,     ///< as timm calls it
  tensorflow  ///< big_vision's autoaugment.py
};

void autocontrast(Image& image, Library library);
void equalize(Image& image);
void invert(Image& image);
/// Keeps so many of the upper bits.
void posterize(Image& image, int bits);
/// Inverts what is not below the threshold.
void solarize(Image& image, int threshold);
/// Adds to what is below 128.
void solarize_add(Image& image, int addition);

// From a changed image (factor 0) over the given one (1) to what lies beyond it.
/// From grey.
void color(Image& image, float factor, Library library);
/// From one grey value: the mean, with Pillow.
void contrast(Image& image, float factor, Library library);
/// From black.
void brightness(Image& image, float factor);
/// From a smoothed image.
void sharpness(Image& image, float factor, Library library);

}  // namespace sylvit::augment
