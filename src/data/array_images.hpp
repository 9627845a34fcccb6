// Images that are bytes in memory, or in a mapped file, all of one size.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "data/source.hpp"

namespace sylvit::data {

/// Images of one file, one every `stride` bytes.
struct ImageRun {
  std::string file;
  const std::byte* first = nullptr;
  std::int64_t count = 0;
  std::size_t stride = 0;
};

struct ImageLayout {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;
  bool planes = false;  ///< the channels one after the other
};

class ArrayImages final : public Images {
 public:
  /// `owners` keep the bytes.
  ArrayImages(const ImageLayout& layout, std::vector<ImageRun> runs, std::vector<std::shared_ptr<const void>> owners)
      : layout_(layout), runs_(std::move(runs)), owners_(std::move(owners)) {}

  std::int64_t channels() const override { return layout_.channels; }
  std::array<std::int64_t, 2> extents() const override { return {layout_.height, layout_.width}; }
  std::array<std::int64_t, 2> extents(std::int64_t) const override { return extents(); }
  std::string name(std::int64_t index) const override;
  Image image(std::int64_t index) const override;
  bool worth_keeping() const override { return false; }
  void add_to(Fingerprint& fingerprint) const override;

 private:
  struct Place {
    const ImageRun& run;
    std::int64_t index;  // in the run
  };
  Place place(std::int64_t index) const;

  ImageLayout layout_;
  std::vector<ImageRun> runs_;
  std::vector<std::shared_ptr<const void>> owners_;
};

}  // namespace sylvit::data
