#include "augment/affine.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

namespace sylvit::augment {

namespace {

/// Python's round(value, 15) to the bits that matter: numbers below 1 in size.
double to_15_digits(double value) { return std::nearbyint(value * 1e15) / 1e15; }

/// Pillow's interpolation between four neighbours, `d` behind the second.
double cubic(double v1, double v2, double v3, double v4, double d) {
  const double p1 = v2;
  const double p2 = -v1 + v3;
  const double p3 = 2 * (v1 - v2) + v3 - v4;
  const double p4 = -v1 + v2 - v3 + v4;
  return p1 + d * (p2 + d * (p3 + d * p4));
}

double linear(double a, double b, double d) { return a + (b - a) * d; }

std::uint8_t clipped(double value) {
  return value <= 0 ? std::uint8_t{0} : value >= 255 ? std::uint8_t{255} : static_cast<std::uint8_t>(value);
}

/// `count` neighbours along one axis, the first `before` ahead of the position, and how far behind the last of those
/// the position is.
template <std::size_t count>
struct Axis {
  std::array<std::int64_t, count> at;
  double share;

  Axis(double position, std::int64_t before, std::int64_t size) {
    const double low = std::floor(position - 0.5);
    share = position - 0.5 - low;
    for (std::size_t i = 0; i < count; ++i)
      at[i] =
          std::clamp<std::int64_t>(static_cast<std::int64_t>(low) - before + static_cast<std::int64_t>(i), 0, size - 1);
  }
};

/// One output pixel between its neighbours.
template <std::size_t count, class Interpolate>
void write_pixel(const Image& image, double x, double y, std::uint8_t* to, const Interpolate& interpolate) {
  const Axis<count> across(x, count / 2 - 1, image.width);
  const Axis<count> down(y, count / 2 - 1, image.height);
  for (std::int64_t c = 0; c < image.channels; ++c) {
    std::array<double, count> rows;
    for (std::size_t j = 0; j < count; ++j) {
      const std::uint8_t* row = &image.pixels[static_cast<std::size_t>(down.at[j] * image.width * image.channels + c)];
      std::array<double, count> values;
      for (std::size_t i = 0; i < count; ++i) values[i] = row[across.at[i] * image.channels];
      rows[j] = interpolate(values, across.share);
    }
    to[c] = clipped(interpolate(rows, down.share));
  }
}

Image filled(const Image& like, const Fill& fill) {
  Image image{like.height, like.width, std::vector<std::uint8_t>(like.pixels.size()), like.channels};
  const auto channels = static_cast<std::size_t>(image.channels);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = fill[i % channels];
  return image;
}

}  // namespace

Affine pillow_rotation(std::int64_t height, std::int64_t width, double degrees) {
  double turn = std::fmod(degrees, 360);
  if (turn < 0) turn += 360;
  const double angle = -(turn * (std::numbers::pi / 180));
  Affine affine{to_15_digits(std::cos(angle)),  to_15_digits(std::sin(angle)), 0,
                to_15_digits(-std::sin(angle)), to_15_digits(std::cos(angle)), 0};
  const double x = static_cast<double>(width) / 2;
  const double y = static_cast<double>(height) / 2;
  affine.c = affine.a * -x + affine.b * -y + x;
  affine.f = affine.d * -x + affine.e * -y + y;
  return affine;
}

Affine tensorflow_rotation(std::int64_t height, std::int64_t width, double degrees) {
  const auto angle = static_cast<float>(degrees * (std::numbers::pi / 180));
  const float cosine = std::cos(angle);
  const float sine = std::sin(angle);
  const auto right = static_cast<float>(width - 1);
  const auto bottom = static_cast<float>(height - 1);
  const float x = (right - (cosine * right - sine * bottom)) / 2;
  const float y = (bottom - (sine * right + cosine * bottom)) / 2;
  return {cosine, -sine, x, sine, cosine, y};
}

Image transformed(const Image& image, const Affine& affine, Resampling resampling, const Fill& fill) {
  Image result = filled(image, fill);
  std::uint8_t* to = result.pixels.data();
  for (std::int64_t row = 0; row < image.height; ++row)
    for (std::int64_t column = 0; column < image.width; ++column, to += image.channels) {
      const double in_x = static_cast<double>(column) + 0.5;
      const double in_y = static_cast<double>(row) + 0.5;
      const double x = affine.a * in_x + affine.b * in_y + affine.c;
      const double y = affine.d * in_x + affine.e * in_y + affine.f;
      if (!(x >= 0 && x < static_cast<double>(image.width) && y >= 0 && y < static_cast<double>(image.height)))
        continue;
      if (resampling == Resampling::bicubic)
        write_pixel<4>(image, x, y, to, [](const std::array<double, 4>& v, double share) {
          return cubic(v[0], v[1], v[2], v[3], share);
        });
      else
        write_pixel<2>(image, x, y, to,
                       [](const std::array<double, 2>& v, double share) { return linear(v[0], v[1], share); });
    }
  return result;
}

Image nearest(const Image& image, const Affine& affine, const Fill& fill) {
  const auto a = static_cast<float>(affine.a), b = static_cast<float>(affine.b), c = static_cast<float>(affine.c);
  const auto d = static_cast<float>(affine.d), e = static_cast<float>(affine.e), f = static_cast<float>(affine.f);
  Image result = filled(image, fill);
  std::uint8_t* to = result.pixels.data();
  for (std::int64_t row = 0; row < image.height; ++row)
    for (std::int64_t column = 0; column < image.width; ++column, to += image.channels) {
      const auto x = std::lround(a * static_cast<float>(column) + b * static_cast<float>(row) + c);
      const auto y = std::lround(d * static_cast<float>(column) + e * static_cast<float>(row) + f);
      if (x < 0 || x >= image.width || y < 0 || y >= image.height) continue;
      std::copy_n(&image.pixels[static_cast<std::size_t>((y * image.width + x) * image.channels)], image.channels, to);
    }
  return result;
}

void flip(Image& image) {
  const auto row = static_cast<std::size_t>(image.width * image.channels);
  for (std::size_t begin = 0; begin < image.pixels.size(); begin += row) {
    const auto pixels = std::span(image.pixels).subspan(begin, row);
    std::ranges::reverse(pixels);  // which also reverses the channels of each pixel
    if (image.channels == 3)
      for (std::size_t i = 0; i < row; i += 3) std::swap(pixels[i], pixels[i + 2]);
  }
}

void fill(Image& image, ImageBox box, const Fill& fill) {
  const std::int64_t right = std::min(image.width, box.x + box.width);
  const std::int64_t bottom = std::min(image.height, box.y + box.height);
  for (std::int64_t y = std::max<std::int64_t>(0, box.y); y < bottom; ++y)
    for (std::int64_t x = std::max<std::int64_t>(0, box.x); x < right; ++x)
      std::copy_n(fill.begin(), image.channels,
                  &image.pixels[static_cast<std::size_t>((y * image.width + x) * image.channels)]);
}

Image cut_out(const Image& image, const ImageBox& part, bool mirrored) {
  Image result{part.height, part.width, {}, image.channels};
  result.pixels.resize(static_cast<std::size_t>(part.height * part.width * image.channels));
  // Mirrored at the middle of the first and the last pixel; a picture may be mirrored several times.
  const auto inside = [&](std::int64_t at, std::int64_t size) -> std::int64_t {
    if (at >= 0 && at < size) return at;
    if (!mirrored) return -1;
    if (size == 1) return 0;
    const std::int64_t period = 2 * (size - 1);
    const std::int64_t there = (at % period + period) % period;
    return std::min(there, period - there);
  };
  std::uint8_t* to = result.pixels.data();
  for (std::int64_t y = 0; y < part.height; ++y) {
    const std::int64_t from_y = inside(part.y + y, image.height);
    for (std::int64_t x = 0; x < part.width; ++x, to += image.channels) {
      const std::int64_t from_x = inside(part.x + x, image.width);
      if (from_x < 0 || from_y < 0) continue;
      std::copy_n(&image.pixels[static_cast<std::size_t>((from_y * image.width + from_x) * image.channels)],
                  image.channels, to);
    }
  }
  return result;
}

}  // namespace sylvit::augment
