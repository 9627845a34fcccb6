#include "augment/colours.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

namespace sylvit::augment {

namespace {

using Table = std::array<std::uint8_t, 256>;

void look_up(Image& image, const Table& table) {
  for (std::uint8_t& value : image.pixels) value = table[value];
}

/// A table for each value by a rule.
template <class Rule>
void change(Image& image, const Rule& rule) {
  Table table{};
  for (int value = 0; value < 256; ++value)
    table[static_cast<std::size_t>(value)] = static_cast<std::uint8_t>(rule(value));
  look_up(image, table);
}

using Histogram = std::array<std::int64_t, 256>;

Histogram histogram_of(const Image& image, std::size_t channel) {
  Histogram counts{};
  const auto step = static_cast<std::size_t>(image.channels);
  for (std::size_t i = channel; i < image.pixels.size(); i += step) ++counts[image.pixels[i]];
  return counts;
}

/// Each channel by a rule that makes a table of its histogram.
template <class Rule>
void change_channels(Image& image, const Rule& rule) {
  const auto channels = static_cast<std::size_t>(image.channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const Table table = rule(histogram_of(image, c));
    for (std::size_t i = c; i < image.pixels.size(); i += channels) image.pixels[i] = table[image.pixels[i]];
  }
}

Table same() {
  Table table;
  std::iota(table.begin(), table.end(), std::uint8_t{0});
  return table;
}

/// Both libraries truncate, and clip where something may leave the range.
std::uint8_t blended(std::uint8_t from, std::uint8_t to, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return value <= 0 ? std::uint8_t{0} : value >= 255 ? std::uint8_t{255} : static_cast<std::uint8_t>(value);
}

/// The grey of a pixel.
std::uint8_t grey(const std::uint8_t* pixel, Library library) {
  if (library == Library::pillow)
    return static_cast<std::uint8_t>((pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16);
  // To floats from 0 to 1, weighted, and back.
  constexpr float scale = 1.0F / 255;
  const float sum = static_cast<float>(pixel[0]) * scale * 0.2989F + static_cast<float>(pixel[1]) * scale * 0.5870F +
                    static_cast<float>(pixel[2]) * scale * 0.1140F;
  return static_cast<std::uint8_t>(std::min(255.0F, sum * 255.5F));
}

}  // namespace

void autocontrast(Image& image, Library library) {
  change_channels(image, [&](const Histogram& counts) {
    const auto is_used = [](std::int64_t count) { return count > 0; };
    const auto low = static_cast<int>(std::ranges::find_if(counts, is_used) - counts.begin());
    int high = 255;
    while (high > low && counts[static_cast<std::size_t>(high)] == 0) --high;
    Table table = same();
    if (high <= low) return table;
    for (int value = 0; value < 256; ++value) {
      int changed = 0;
      if (library == Library::pillow) {
        const double scale = 255.0 / (high - low);
        changed = static_cast<int>(value * scale + -low * scale);
      } else {
        const float scale = 255.0F / static_cast<float>(high - low);
        changed = static_cast<int>(static_cast<float>(value) * scale + -static_cast<float>(low) * scale);
      }
      table[static_cast<std::size_t>(value)] = static_cast<std::uint8_t>(std::clamp(changed, 0, 255));
    }
    return table;
  });
}

void equalize(Image& image) {
  change_channels(image, [](const Histogram& counts) {
    const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    std::size_t last = 255;
    while (last > 0 && counts[last] == 0) --last;
    const std::int64_t step = (all - counts[last]) / 255;
    Table table = same();
    if (step == 0) return table;
    std::int64_t below = step / 2;
    for (std::size_t value = 0; value < 256; ++value) {
      table[value] = static_cast<std::uint8_t>(std::min<std::int64_t>(255, below / step));
      below += counts[value];
    }
    return table;
  });
}

void invert(Image& image) {
  change(image, [](int value) { return 255 - value; });
}

void posterize(Image& image, int bits) {
  change(image, [&](int value) { return value >> (8 - bits) << (8 - bits); });
}

void solarize(Image& image, int threshold) {
  change(image, [&](int value) { return value < threshold ? value : 255 - value; });
}

void solarize_add(Image& image, int addition) {
  change(image, [&](int value) { return value < 128 ? std::clamp(value + addition, 0, 255) : value; });
}

void color(Image& image, float factor, Library library) {
  if (image.channels != 3) return;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    const std::uint8_t from = grey(&image.pixels[i], library);
    for (std::size_t c = 0; c < 3; ++c) image.pixels[i + c] = blended(from, image.pixels[i + c], factor);
  }
}

void contrast(Image& image, float factor, Library library) {
  const std::int64_t pixels = image.height * image.width;
  std::uint8_t from = 0;
  if (library == Library::tensorflow) {
    // Not the mean, but the number of pixels over 256: what is summed up there is the histogram itself.
    from = static_cast<std::uint8_t>(std::min<std::int64_t>(255, pixels / 256));
  } else {
    std::int64_t sum = 0;
    if (image.channels == 1)
      sum = std::accumulate(image.pixels.begin(), image.pixels.end(), std::int64_t{0});
    else
      for (std::size_t i = 0; i < image.pixels.size(); i += 3) sum += grey(&image.pixels[i], library);
    from = static_cast<std::uint8_t>(static_cast<double>(sum) / static_cast<double>(pixels) + 0.5);
  }
  change(image, [&](int value) { return blended(from, static_cast<std::uint8_t>(value), factor); });
}

void brightness(Image& image, float factor) {
  change(image, [&](int value) { return blended(0, static_cast<std::uint8_t>(value), factor); });
}

void sharpness(Image& image, float factor, Library library) {
  if (image.height < 3 || image.width < 3) return;  // all of it is border, which is left as it is
  const std::vector<std::uint8_t> old = image.pixels;
  const auto step = static_cast<std::size_t>(image.channels);
  const std::size_t row = static_cast<std::size_t>(image.width) * step;
  for (std::size_t y = 1; y + 1 < static_cast<std::size_t>(image.height); ++y)
    for (std::size_t x = step; x < row - step; ++x) {
      const std::uint8_t* middle = &old[y * row + x];
      // In floats, of which the one rounds and the other cuts off; a whole number may come out just below itself.
      float sum = 0;
      for (const std::uint8_t* at : {middle - row, middle, middle + row})
        for (const std::uint8_t* pixel : {at - step, at, at + step})
          sum += static_cast<float>(*pixel) * (pixel == middle ? 5.0F / 13 : 1.0F / 13);
      const auto smooth = static_cast<std::uint8_t>(sum + (library == Library::pillow ? 0.5F : 0.0F));
      image.pixels[y * row + x] = blended(smooth, *middle, factor);
    }
}

}  // namespace sylvit::augment
