// What one wants to know of a set before training with it.
#pragma once

#include <sylvit/data.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sylvit::data {

/// An image that cannot be read, and why.
using Unreadable = std::pair<std::int64_t, std::string>;

struct Sizes {
  std::array<std::int64_t, 2> height{};  ///< least and most
  std::array<std::int64_t, 2> width{};
  std::int64_t looked_at = 0;
  std::vector<Unreadable> unreadable;
};

/// Of so many images, evenly spread; of all with `decoded`, which are then read to their ends.
Sizes sizes_of(const ImageSet& set, std::int64_t most, bool decoded);

/// An image of the first set that the second one has, too, by its pixels.
struct SameImage {
  std::int64_t first = 0;
  std::int64_t second = 0;
};

/// Both sets have the same channels. Reads all images; those that cannot be read are passed over.
std::vector<SameImage> same_images(const ImageSet& first, const ImageSet& second);

/// A picture with a row of images for each class, of so many classes and images at most.
Image contact_sheet(const ImageSet& set, std::int64_t classes, std::int64_t images);

}  // namespace sylvit::data
