// Images that are files of their own.
#pragma once

#include <filesystem>

#include "data/source.hpp"

namespace sylvit::data {

class FileImages final : public Images {
 public:
  /// Paths below a folder.
  FileImages(std::filesystem::path folder, std::vector<std::string> paths)
      : folder_(std::move(folder)), paths_(std::move(paths)) {}

  std::int64_t channels() const override { return 3; }
  std::array<std::int64_t, 2> extents() const override { return {0, 0}; }
  std::array<std::int64_t, 2> extents(std::int64_t index) const override;
  std::string name(std::int64_t index) const override { return path(index).string(); }
  Image image(std::int64_t index) const override { return read_image(path(index)); }
  bool worth_keeping() const override { return true; }
  void add_to(Fingerprint& fingerprint) const override;

 private:
  std::filesystem::path path(std::int64_t index) const { return folder_ / paths_[static_cast<std::size_t>(index)]; }

  std::filesystem::path folder_;
  std::vector<std::string> paths_;
};

}  // namespace sylvit::data
