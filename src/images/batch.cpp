#include "images/batch.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

namespace sylvit::images {

namespace {

namespace fs = std::filesystem;

/// An image may take half a gigabyte while it is decoded, so not as many as there are cores.
constexpr std::size_t most_readers = 8;

std::vector<ImageSource> images_in(const std::string& directory) {
  std::vector<ImageSource> found;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
      std::error_code ignored;  // what cannot be looked at is named when it cannot be opened
      if (!named_as_image(entry.path()) || entry.is_directory(ignored)) continue;
      ImageSource source{entry.path().string(), {}};
      // A pipe would wait for a writer. Who names one alone knows that there is one.
      if (entry.is_fifo(ignored) || entry.is_socket(ignored) || entry.is_character_file(ignored) ||
          entry.is_block_file(ignored))
        source.error = source.path + " is not a regular file";
      found.push_back(std::move(source));
    }
  } catch (const fs::filesystem_error& error) {
    return {{directory, "cannot list " + directory + ": " + error.code().message()}};
  }
  if (found.empty()) return {{directory, directory + " has no file that ends in .jpg, .jpeg or .png"}};
  std::ranges::sort(found, {}, &ImageSource::path);
  return found;
}

}  // namespace

std::vector<ImageSource> image_sources(std::span<const std::string> arguments) {
  std::vector<ImageSource> all;
  for (const std::string& argument : arguments) {
    std::error_code ignored;  // what cannot be looked at cannot be opened either
    if (fs::is_directory(argument, ignored))
      std::ranges::move(images_in(argument), std::back_inserter(all));
    else
      all.push_back({argument, {}});
  }
  return all;
}

ImageBatch read_batch(std::span<const ImageSource> sources, const images::ImageTransform& transform) {
  ImageBatch batch;
  batch.errors.resize(sources.size());
  const auto image_values = static_cast<std::size_t>(3 * transform.size * transform.size);
  batch.pixels.resize(sources.size() * image_values);
  std::atomic<std::size_t> next = 0;
  const auto read = [&] {
    for (std::size_t i = next++; i < sources.size(); i = next++) try {
        if (sources[i].error) throw Error(*sources[i].error);
        images::transform_image(images::read_image(sources[i].path), transform,
                                std::span(batch.pixels).subspan(i * image_values, image_values));
      } catch (const Error& error) {
        batch.errors[i] = error.what();
      } catch (const std::exception& error) {
        batch.errors[i] = "cannot read " + sources[i].path + ": " + error.what();
      }
  };
  const std::size_t readers =
      std::min({sources.size(), most_readers, std::size_t{std::max(1U, std::thread::hardware_concurrency())}});
  std::vector<std::future<void>> others;
  for (std::size_t i = 1; i < readers; ++i) others.push_back(std::async(std::launch::async, read));
  read();
  for (std::future<void>& other : others) other.get();

  std::size_t usable = 0;
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (!batch.errors[i]) {
      if (i != usable)
        std::copy_n(batch.pixels.begin() + static_cast<std::ptrdiff_t>(i * image_values), image_values,
                    batch.pixels.begin() + static_cast<std::ptrdiff_t>(usable * image_values));
      ++usable;
    }
  batch.pixels.resize(usable * image_values);
  return batch;
}

}  // namespace sylvit::images
