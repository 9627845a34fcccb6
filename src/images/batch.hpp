// Image files on their way to a model: which they are, and a batch of them as the model takes it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "images/transform.hpp"

namespace sylvit::images {

/// A file, or why there is none to read.
struct ImageSource {
  std::string path;
  std::optional<std::string> error;
};

/// A directory stands for the files in it that end in .jpg, .jpeg or .png, sorted; one without any is a source with an
/// error.
std::vector<ImageSource> image_sources(std::span<const std::string> arguments);

/// Some sources, read and transformed. The images that could be read lie one after the other.
struct ImageBatch {
  std::vector<float> pixels;                       ///< [usable images, 3, size, size]
  std::vector<std::optional<std::string>> errors;  ///< one a source; empty for a usable one
};

/// Reads with several threads.
ImageBatch read_batch(std::span<const ImageSource> sources, const images::ImageTransform& transform);

}  // namespace sylvit::images
