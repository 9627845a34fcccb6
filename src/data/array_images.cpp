#include "data/array_images.hpp"

namespace sylvit::data {

ArrayImages::Place ArrayImages::place(std::int64_t index) const {
  std::size_t i = 0;
  while (index >= runs_[i].count) index -= runs_[i++].count;
  return {runs_[i], index};
}

std::string ArrayImages::name(std::int64_t index) const {
  const auto [run, number] = place(index);
  return "image " + std::to_string(number) + " of " + run.file;
}

Image ArrayImages::image(std::int64_t index) const {
  const auto [run, number] = place(index);
  const auto* from = reinterpret_cast<const std::uint8_t*>(run.first + static_cast<std::size_t>(number) * run.stride);
  const auto plane = static_cast<std::size_t>(layout_.height * layout_.width);
  const auto channels = static_cast<std::size_t>(layout_.channels);
  Image image{layout_.height, layout_.width, {}, layout_.channels};
  if (!layout_.planes || channels == 1) {
    image.pixels.assign(from, from + plane * channels);
  } else {
    image.pixels.resize(plane * channels);
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t i = 0; i < plane; ++i) image.pixels[i * channels + c] = from[c * plane + i];
  }
  return image;
}

void ArrayImages::add_to(Fingerprint& fingerprint) const {
  for (const std::int64_t number : {layout_.height, layout_.width, layout_.channels, std::int64_t{layout_.planes}})
    fingerprint.add(static_cast<std::uint64_t>(number));
  const auto bytes = static_cast<std::size_t>(layout_.height * layout_.width * layout_.channels);
  for (const ImageRun& run : runs_)
    fingerprint.add(std::span(run.first, static_cast<std::size_t>(run.count - 1) * run.stride + bytes));
}

}  // namespace sylvit::data
