#include "data/inspect.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <thread>
#include <unordered_map>

#include "data/fingerprint.hpp"

namespace sylvit::data {

namespace {

/// Does it for 0 to count - 1, with several threads.
void for_each(std::int64_t count, const std::function<void(std::int64_t)>& work) {
  std::atomic<std::int64_t> next = 0;
  const auto run = [&] {
    for (std::int64_t i = next++; i < count; i = next++) work(i);
  };
  constexpr std::int64_t most_threads = 8;
  const std::int64_t threads =
      std::min({count, most_threads, static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()))});
  std::vector<std::future<void>> others;
  for (std::int64_t i = 1; i < threads; ++i) others.push_back(std::async(std::launch::async, run));
  run();
  for (std::future<void>& other : others) other.get();
}

/// A hash of each image's size and pixels; none of those that cannot be read.
std::vector<std::optional<std::uint64_t>> hashes_of(const ImageSet& set) {
  std::vector<std::optional<std::uint64_t>> hashes(static_cast<std::size_t>(set.size()));
  for_each(set.size(), [&](std::int64_t i) {
    try {
      const Image image = set.image(i);
      Fingerprint hash;
      hash.add(static_cast<std::uint64_t>(image.width));
      hash.add(std::as_bytes(std::span(image.pixels)));
      hashes[static_cast<std::size_t>(i)] = hash.value();
    } catch (const Error&) {  // which whoever reads the set is told of
    }
  });
  return hashes;
}

/// An image of the sheet: at most so large, in the middle of its cell.
void put(const Image& image, std::int64_t side, std::int64_t x, std::int64_t y, Image& sheet) {
  const std::int64_t longer = std::max(image.width, image.height);
  const auto fit = [&](std::int64_t length) {
    return longer <= side ? length : std::max<std::int64_t>(1, length * side / longer);
  };
  const Image small =
      resized(image, {0, 0, image.width, image.height}, fit(image.height), fit(image.width), Resampling::bicubic);
  x += (side - small.width) / 2;
  y += (side - small.height) / 2;
  for (std::int64_t row = 0; row < small.height; ++row)
    std::copy_n(small.pixels.begin() + row * small.width * small.channels, small.width * small.channels,
                sheet.pixels.begin() + ((y + row) * sheet.width + x) * sheet.channels);
}

}  // namespace

Sizes sizes_of(const ImageSet& set, std::int64_t most, bool decoded) {
  if (const auto [height, width] = set.extents(); height > 0 && !decoded)
    return {{height, height}, {width, width}, set.size(), {}};
  const std::int64_t count = decoded ? set.size() : std::min(most, set.size());
  std::vector<std::array<std::int64_t, 2>> extents(static_cast<std::size_t>(count));
  std::vector<std::string> errors(extents.size());
  const auto index_of = [&](std::int64_t i) { return i * set.size() / count; };
  for_each(count, [&](std::int64_t i) {
    try {
      if (decoded) {
        const Image image = set.image(index_of(i));
        extents[static_cast<std::size_t>(i)] = {image.height, image.width};
      } else {
        extents[static_cast<std::size_t>(i)] = set.extents(index_of(i));
      }
    } catch (const Error& error) {
      errors[static_cast<std::size_t>(i)] = error.what();
    }
  });
  Sizes sizes;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const auto [height, width] = extents[i];
    if (!errors[i].empty()) {
      sizes.unreadable.emplace_back(index_of(static_cast<std::int64_t>(i)), errors[i]);
      continue;
    }
    const bool first = sizes.looked_at++ == 0;
    sizes.height = {first ? height : std::min(sizes.height[0], height), std::max(sizes.height[1], height)};
    sizes.width = {first ? width : std::min(sizes.width[0], width), std::max(sizes.width[1], width)};
  }
  return sizes;
}

std::vector<SameImage> same_images(const ImageSet& first, const ImageSet& second) {
  if (first.channels() != second.channels())
    throw Error(first.source() + " has " + std::to_string(first.channels()) + " channels, and " + second.source() +
                " has " + std::to_string(second.channels()) + ": their images cannot be compared");
  std::unordered_multimap<std::uint64_t, std::int64_t> known;
  const auto theirs = hashes_of(second);
  for (std::size_t i = 0; i < theirs.size(); ++i)
    if (theirs[i]) known.emplace(*theirs[i], static_cast<std::int64_t>(i));
  std::vector<SameImage> same;
  const auto ours = hashes_of(first);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (!ours[i]) continue;
    const auto [begin, end] = known.equal_range(*ours[i]);
    for (auto found = begin; found != end; ++found) {
      const auto index = static_cast<std::int64_t>(i);
      if (first.image(index).pixels != second.image(found->second).pixels) continue;
      same.push_back({index, found->second});
      break;
    }
  }
  return same;
}

Image contact_sheet(const ImageSet& set, std::int64_t classes, std::int64_t images) {
  constexpr std::int64_t largest = 96;
  constexpr std::int64_t gap = 2;
  std::vector<std::vector<std::int64_t>> rows(static_cast<std::size_t>(std::min(classes, set.classes())));
  for (std::int64_t i = 0; i < set.size(); ++i) {
    const std::int64_t label = set.label(i);
    if (label < 0 || label >= static_cast<std::int64_t>(rows.size())) continue;
    auto& row = rows[static_cast<std::size_t>(label)];
    if (static_cast<std::int64_t>(row.size()) < images) row.push_back(i);
  }
  const std::array<std::int64_t, 2> extents = set.extents();
  const std::int64_t own = std::max(extents[0], extents[1]);
  const std::int64_t side = own > 0 ? std::min(own, largest) : largest;
  Image sheet{
      static_cast<std::int64_t>(rows.size()) * (side + gap) + gap, images * (side + gap) + gap, {}, set.channels()};
  sheet.pixels.resize(static_cast<std::size_t>(sheet.height * sheet.width * sheet.channels), 160);
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::size_t column = 0; column < rows[row].size(); ++column) try {
        put(set.image(rows[row][column]), side, gap + static_cast<std::int64_t>(column) * (side + gap),
            gap + static_cast<std::int64_t>(row) * (side + gap), sheet);
      } catch (const Error&) {  // its place stays empty
      }
  return sheet;
}

}  // namespace sylvit::data
