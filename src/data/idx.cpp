// The files of MNIST and of its relatives: a magic number, extents (big-endian), bytes.
#include <sylvit/error.hpp>

#include "data/archive.hpp"
#include "data/array_images.hpp"
#include "data/mapped_file.hpp"

namespace sylvit::data {

namespace {

/// A file's extents and elements.
struct Idx {
  std::string name;
  std::vector<std::uint32_t> extents = {};
  std::span<const std::byte> elements = {};
  std::shared_ptr<const void> owner = {};
};

std::uint32_t big_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (const std::byte byte : bytes.first(4)) value = value << 8U | std::to_integer<std::uint32_t>(byte);
  return value;
}

/// What the header says: how many bytes the whole file should have. Bytes of so many axes are wanted.
std::uint64_t read_header(std::span<const std::byte> bytes, std::size_t rank, Idx& idx) {
  const std::size_t header = 4 + 4 * rank;
  if (bytes.size() < header)
    throw Error(idx.name + " has " + std::to_string(bytes.size()) + " bytes, too few for an IDX file");
  if (big_endian(bytes) != (8U << 8U | static_cast<std::uint32_t>(rank)))
    throw Error(idx.name + " is no IDX file of bytes with " + std::to_string(rank) + (rank == 1 ? " axis" : " axes") +
                ": its magic number is " + std::to_string(big_endian(bytes)));
  idx.extents.clear();
  double elements = 1;
  std::string shape;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    idx.extents.push_back(big_endian(bytes.subspan(4 + 4 * axis)));
    elements *= idx.extents.back();
    shape += (axis == 0 ? "" : " x ") + std::to_string(idx.extents.back());
  }
  if (elements > 0x1p50) throw Error(idx.name + " claims to hold " + shape + " bytes");
  return header + static_cast<std::uint64_t>(elements);
}

Idx read_idx(const std::filesystem::path& path, std::size_t rank) {
  Idx idx{.name = path.string()};
  const MappedFile mapped = map_file(path, "an IDX file");
  std::span<const std::byte> bytes = mapped.bytes;
  idx.owner = mapped.owner;
  if (path.extension() == ".gz") {
    auto unpacked = std::make_shared<const std::vector<std::byte>>(
        unpack_gzip(bytes, idx.name, [&](auto start) { return read_header(start, rank, idx); }));
    bytes = *unpacked;
    idx.owner = std::move(unpacked);
  }
  const std::uint64_t wanted = read_header(bytes, rank, idx);
  if (bytes.size() != wanted)
    throw Error(idx.name + " has " + std::to_string(bytes.size()) + " bytes, and its header asks for " +
                std::to_string(wanted));
  idx.elements = bytes.subspan(4 + 4 * rank);
  return idx;
}

}  // namespace

Source open_idx(const std::filesystem::path& images, const std::filesystem::path& labels) {
  const Idx pixels = read_idx(images, 3);
  const Idx numbers = read_idx(labels, 1);
  if (pixels.extents[0] != numbers.extents[0])
    throw Error(pixels.name + " holds " + std::to_string(pixels.extents[0]) + " images, and " + numbers.name + " " +
                std::to_string(numbers.extents[0]) + " labels");
  if (pixels.elements.empty()) throw Error(pixels.name + " holds no pixels");
  Source source{.kind = "MNIST's files"};
  for (const std::byte number : numbers.elements)
    source.labels.add(std::to_integer<std::int64_t>(number), numbers.name);
  const ImageLayout layout{.height = pixels.extents[1], .width = pixels.extents[2]};
  const auto stride = static_cast<std::size_t>(layout.height * layout.width);
  source.classes = class_names_in(images.parent_path());
  source.images = std::make_unique<ArrayImages>(
      layout, std::vector<ImageRun>{{pixels.name, pixels.elements.data(), pixels.extents[0], stride}},
      std::vector{pixels.owner});
  return source;
}

}  // namespace sylvit::data
