// .npz and safetensors files with arrays of images and labels.
#include <sylvit/error.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "data/array_images.hpp"
#include "io/elements.hpp"
#include "io/messages.hpp"
#include "io/npz.hpp"
#include "io/safetensors.hpp"

namespace sylvit::data {

namespace {

/// An array of a file, its elements little-endian and not necessarily aligned.
struct Array {
  std::string name;  // with the file's
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// A file: the names in it, and an array by its name.
struct File {
  std::string name;
  std::vector<std::string> names;
  std::function<Array(const std::string&)> read;
};

struct Names {
  std::string images;
  std::string labels;
};

/// The pair of arrays that is there.
Names find_arrays(const File& file, const std::string& split) {
  constexpr std::array<std::array<std::string_view, 2>, 5> known{
      {{"images", "labels"}, {"x", "y"}, {"X", "y"}, {"data", "labels"}, {"image", "label"}}};
  const auto has = [&](const std::string& name) { return std::ranges::find(file.names, name) != file.names.end(); };
  const auto pair_of = [&](const std::string& before, const std::string& behind) -> std::optional<Names> {
    for (const auto& [images, labels] : known) {
      Names names{before + std::string(images) + behind, before + std::string(labels) + behind};
      if (has(names.images) && has(names.labels)) return names;
    }
    return std::nullopt;
  };
  if (split.empty()) {
    if (const auto found = pair_of("", "")) return *found;
  } else {
    if (const auto found = pair_of("", "_" + split)) return *found;
    if (const auto found = pair_of(split + "_", "")) return *found;
  }
  std::string hint;
  for (const std::string other : {"train", "test", "val", "validation"})
    if (other != split && (pair_of("", "_" + other) || pair_of(other + "_", "")))
      io::add_to_list(hint, file.name + ":" + other, " or ");
  if (hint.empty()) {
    for (const std::string& name : file.names) io::add_to_list(hint, io::in_quotes(name));
    throw Error(file.name + " has no arrays of images and labels" + (split.empty() ? "" : " for " + split) +
                    ": they are called images and labels, or x and y" +
                    (split.empty() ? "" : ", _" + split + " behind"),
                "it has " + (hint.empty() ? "none" : hint));
  }
  throw Error(file.name + (split.empty() ? " comes split" : " has no " + split), "say " + hint);
}

ImageLayout layout_of(const Array& images) {
  const Shape& shape = images.shape;
  const auto is_channels = [&](std::size_t axis) { return shape[axis] == 1 || shape[axis] == 3; };
  if (shape.rank() == 3) return {.height = shape[1], .width = shape[2]};
  if (shape.rank() == 4 && is_channels(3)) return {.height = shape[1], .width = shape[2], .channels = shape[3]};
  if (shape.rank() == 4 && is_channels(1))
    return {.height = shape[2], .width = shape[3], .channels = shape[1], .planes = true};
  throw Error(images.name + " is " + shape.text() + ", and images are [N, height, width], with 1 or 3 channels " +
              "[N, height, width, channels] or [N, channels, height, width]");
}

/// Numbers from 0 to 1 as bytes.
void make_bytes(Array& images) {
  if (images.dtype == DType::u8) return;
  if (!io::is_floating(images.dtype))
    throw Error(images.name + " has elements of type " + std::string(name_of(images.dtype)) +
                ", and pixels are u8 from 0 to 255 or floating-point numbers from 0 to 1");
  auto bytes = std::make_shared<std::vector<std::byte>>();
  bytes->reserve(static_cast<std::size_t>(images.shape.elements()));
  const std::size_t size = size_of(images.dtype);
  constexpr std::size_t piece = 1 << 16;
  for (std::size_t begin = 0; begin < images.bytes.size(); begin += piece * size) {
    const auto some = images.bytes.subspan(begin, std::min(piece * size, images.bytes.size() - begin));
    for (const float value : io::as_f32(images.dtype, some)) {
      if (!(value >= 0 && value <= 1))
        throw Error(images.name + " has the value " + std::to_string(value) +
                    ", and pixels that are floating-point numbers go from 0 to 1");
      bytes->push_back(static_cast<std::byte>(std::lround(255 * value)));
    }
  }
  images.bytes = *bytes;
  images.owner = std::move(bytes);
  images.dtype = DType::u8;
}

Labels labels_of(const Array& array, std::int64_t images) {
  const Shape& shape = array.shape;
  const bool matrix = shape.rank() == 2 && shape[1] > 1;
  if (shape.rank() < 1 || shape.rank() > 2 || shape[0] != images)
    throw Error(array.name + " is " + shape.text() + ", and there are " + std::to_string(images) + " images",
                "labels are [N], or [N, classes] with a weight for each class");
  Labels labels;
  if (!matrix) {
    if (!io::is_integer(array.dtype))
      throw Error(array.name + " has elements of type " + std::string(name_of(array.dtype)) +
                  ", and the labels of one class each are integers");
    for (const std::int64_t number : io::as_i64(array.dtype, array.bytes)) labels.add(number, array.name);
    return labels;
  }
  const auto classes = static_cast<std::size_t>(shape[1]);
  if (shape[1] > class_limit)
    throw Error(array.name + " is " + shape.text() + ", and there are " + std::to_string(class_limit) +
                " classes at most");
  if (io::is_floating(array.dtype)) {
    const std::vector<float> weights = io::as_f32(array.dtype, array.bytes);
    for (std::int64_t i = 0; i < images; ++i)
      labels.add_soft(std::span(weights).subspan(static_cast<std::size_t>(i) * classes, classes), array.name);
    return labels;
  }
  // Several classes: 1 where it is one of them.
  const std::vector<std::int64_t> is = io::as_i64(array.dtype, array.bytes);
  for (std::size_t i = 0; i < is.size(); i += classes) {
    std::vector<std::int64_t> numbers;
    for (std::size_t c = 0; c < classes; ++c) {
      if (is[i + c] != 0 && is[i + c] != 1)
        throw Error(array.name + " has the number " + std::to_string(is[i + c]) +
                    ", and in [N, classes] an integer is 1 for a class of the image and otherwise 0");
      if (is[i + c] == 1) numbers.push_back(static_cast<std::int64_t>(c));
    }
    labels.add(std::move(numbers), array.name);
  }
  return labels;
}

Source open_arrays(const File& file, const std::string& split, std::string_view kind) {
  const Names names = find_arrays(file, split);
  Array images = file.read(names.images);
  const ImageLayout layout = layout_of(images);
  if (images.shape.elements() == 0) throw Error(images.name + " is " + images.shape.text() + ": there are no pixels");
  make_bytes(images);
  Source source{.kind = kind};
  source.labels = labels_of(file.read(names.labels), images.shape[0]);
  const auto stride = static_cast<std::size_t>(layout.height * layout.width * layout.channels);
  source.images = std::make_unique<ArrayImages>(
      layout, std::vector<ImageRun>{{file.name, images.bytes.data(), images.shape[0], stride}},
      std::vector{images.owner});
  return source;
}

}  // namespace

Source open_npz(const std::filesystem::path& path, const std::string& split) {
  const io::NpzFile npz = io::NpzFile::parse(io::ByteSource::open(path, "an .npz file"));
  const auto read = [&](const std::string& name) {
    const io::NpzArray array = npz.array(name);
    auto bytes = std::make_shared<const std::vector<std::byte>>(npz.read(array, 0, array.header.shape.elements()));
    return Array{npz.name() + ": member " + io::in_quotes(name), array.header.dtype, array.header.shape, *bytes, bytes};
  };
  return open_arrays({npz.name(), npz.names(), read}, split, "an .npz file");
}

Source open_safetensors(const std::filesystem::path& path, const std::string& split) {
  const io::SafetensorsFile file = io::SafetensorsFile::open(path);
  const auto read = [&](const std::string& name) {
    const io::TensorInfo& tensor = file.at(name);
    const std::string what = file.name() + ": tensor " + io::in_quotes(name);
    if (!tensor.foreign.empty()) throw Error(what + " has elements of type " + tensor.foreign + ", which is not read");
    auto bytes = std::make_shared<const std::vector<std::byte>>(file.read_bytes(tensor));
    return Array{what, tensor.dtype, tensor.shape, *bytes, bytes};
  };
  std::vector<std::string> names;
  for (const io::TensorInfo& tensor : file.tensors()) names.push_back(tensor.name);
  Source source = open_arrays({file.name(), std::move(names), read}, split, "a safetensors file");
  // Names, a line each.
  if (const auto found = file.metadata().find("classes"); found != file.metadata().end()) {
    const std::string& text = found->second;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      source.classes.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return source;
}

}  // namespace sylvit::data
