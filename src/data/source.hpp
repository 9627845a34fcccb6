// What the kinds of sources have in common, and the kinds.
#pragma once

#include <sylvit/data.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/fingerprint.hpp"
#include "data/labels.hpp"

namespace sylvit::data {

/// The pixels of a source. Any number of threads may ask at once.
class Images {
 public:
  Images() = default;
  Images(const Images&) = delete;
  Images& operator=(const Images&) = delete;
  virtual ~Images() = default;

  virtual std::int64_t channels() const = 0;
  /// Zeros where each image has its own.
  virtual std::array<std::int64_t, 2> extents() const = 0;
  virtual std::array<std::int64_t, 2> extents(std::int64_t index) const = 0;
  virtual std::string name(std::int64_t index) const = 0;
  virtual Image image(std::int64_t index) const = 0;
  /// Would it take time to make the image again?
  virtual bool worth_keeping() const = 0;
  /// Names and sizes, and of arrays the pixels.
  virtual void add_to(Fingerprint& fingerprint) const = 0;
};

struct Source {
  std::string_view kind = {};
  std::unique_ptr<Images> images = {};
  Labels labels = {};
  std::vector<std::string> classes = {};  ///< names; empty where classes are numbers
};

/// Finds out what the source is, and opens it.
Source open_source(const std::string& source);

// The kinds. `split` is what stood behind the path, such as "train", or empty; a kind that has no splits is given the
// path of one instead.
Source open_folder(const std::filesystem::path& folder);
Source open_list(const std::filesystem::path& file);
Source open_shards(const std::vector<std::filesystem::path>& shards);
/// `images` may end in .gz.
Source open_idx(const std::filesystem::path& images, const std::filesystem::path& labels);
struct CifarFiles {
  std::vector<std::filesystem::path> batches;
  std::filesystem::path names;
  std::size_t label_bytes = 1;  ///< before the pixels; the last one counts
};
Source open_cifar(const CifarFiles& files);
Source open_npz(const std::filesystem::path& file, const std::string& split);
Source open_safetensors(const std::filesystem::path& file, const std::string& split);

/// The lines of a text file.
std::vector<std::string> read_lines(const std::filesystem::path& file);
/// The lines of classes.txt in a folder; nothing if there is none.
std::vector<std::string> class_names_in(const std::filesystem::path& folder);

}  // namespace sylvit::data
