// Any bytes under any of the names that a set of labelled images has are either such a set, every image of which has
// its labels and can be read or says why not, or are refused with a sentence. An input is a byte that chooses the name,
// and the file. Before it is tried, the checksums of a tar file's headers are made right.
#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "data/source.hpp"
#include "fuzz/fuzz.hpp"
#include "io/npz_writer.hpp"
#include "io/safetensors.hpp"

namespace {

namespace fs = std::filesystem;
using sylvit::fuzz::require;

constexpr std::size_t block = 512;

/// A folder in memory where there is one, so that a file takes no time.
const fs::path& folder() {
  static const fs::path path = [] {
    const fs::path top = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    fs::path own = top / ("fuzz-" + std::to_string(::getpid()));
    fs::create_directories(own);
    std::atexit([] { fs::remove_all(folder()); });
    return own;
  }();
  return path;
}

fs::path write(const std::string& name, std::string_view content) {
  const fs::path path = folder() / name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string octal(std::size_t number, int digits) {
  std::string text;
  for (int i = digits - 1; i >= 0; --i) text += static_cast<char>('0' + (number >> (3 * i) & 7U));
  return text;
}

void set_checksum(std::string& file, std::size_t at) {
  std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(at) + 148, 8, ' ');
  std::size_t sum = 0;
  for (std::size_t i = 0; i < block; ++i) sum += static_cast<unsigned char>(file[at + i]);
  file.replace(at + 148, 8, octal(sum, 6) + '\0' + ' ');
}

void repair_tar(std::string& file) {
  for (std::size_t at = 0; at + block <= file.size();) {
    if (file[at] == '\0') {
      at += block;
      continue;
    }
    set_checksum(file, at);
    const std::size_t size = std::strtoull(file.substr(at + 124, 11).c_str(), nullptr, 8);
    at += block + (std::min(size, file.size()) + block - 1) / block * block;
  }
}

sylvit::data::Source open(unsigned kind, std::string file) {
  using namespace sylvit::data;
  const std::string_view ten_labels("\0\0\x08\x01\0\0\0\x02\x03\x01", 10);
  switch (kind) {
    case 0:
      repair_tar(file);
      return open_shards({write("shard.tar", file)});
    case 1:
      return open_idx(write("images", file), write("labels", ten_labels));
    case 2:
      return open_idx(write("images.gz", file), write("labels", ten_labels));
    case 3:
      return open_cifar({{write("batch.bin", file)}, folder() / "none", 1});
    case 4:
      return open_list(write("list.txt", file));
    case 5:
      return open_npz(write("arrays.npz", file), "");
    default:
      return open_safetensors(write("arrays.safetensors", file), "");
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    const sylvit::data::Source source = open(data[0] % 7, {reinterpret_cast<const char*>(data) + 1, size - 1});
    require(source.images != nullptr && source.labels.largest() < sylvit::data::class_limit);
    const std::int64_t images = source.labels.images();
    for (std::int64_t i = 0; i < std::min<std::int64_t>(images, 4); ++i) {
      for (const std::int32_t number : source.labels.of(i)) require(number >= 0);
      for (const float weight : source.labels.weights_of(i)) require(weight > 0 && weight <= 1);
      require(!source.images->name(i).empty());
      try {
        const auto [height, width] = source.images->extents(i);
        if (height * width > 1'000'000) continue;
        const sylvit::Image image = source.images->image(i);
        require(image.height == height && image.width == width);
        require(image.pixels.size() == static_cast<std::size_t>(height * width * image.channels));
      } catch (const sylvit::Error& error) {
        // A path stands in it as it is: who prints it spells it out.
        require(!std::string_view(error.what()).empty());
      }
    }
    sylvit::data::Fingerprint fingerprint;
    source.images->add_to(fingerprint);
  } catch (const sylvit::Error& error) {
    require(!std::string_view(error.what()).empty());
  }
  return 0;
}

namespace sylvit::fuzz {

std::vector<std::string> seeds() {
  const auto read = [](const char* name) {
    std::ifstream file(fs::path(SYLVIT_IMAGES) / name, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  };
  const auto tar = [](const std::vector<std::pair<std::string, std::string>>& members) {
    std::string file;
    for (const auto& [name, content] : members) {
      std::string header(block, '\0');
      header.replace(0, name.size(), name);
      header.replace(100, 24, "0000644\0000000000\0000000000", 24);
      header.replace(124, 12, octal(content.size(), 11) + '\0');
      header.replace(136, 12, octal(0, 11) + '\0');
      header.replace(156, 1, "0");
      header.replace(257, 8, "ustar\00000", 8);
      set_checksum(header, 0);
      file += header + content + std::string((block - content.size() % block) % block, '\0');
    }
    return file + std::string(2 * block, '\0');
  };
  const std::string png = read("grey2.png");
  const std::string jpeg = read("grey.jpg");
  require(!png.empty() && !jpeg.empty());
  const std::string images("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03", 16);
  // What gzip makes of these 16 bytes and of 12 zeros, stored.
  const auto gzip = [](const std::string& content) {
    std::uint32_t crc = 0xFFFFFFFF;
    for (const char c : content) {
      crc ^= static_cast<unsigned char>(c);
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
    }
    const auto little = [](std::uint32_t value, int bytes) {
      std::string text;
      for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
      return text;
    };
    const auto size = static_cast<std::uint32_t>(content.size());
    return std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff\x01", 11) + little(size, 2) + little(~size, 2) + content +
           little(~crc, 4) + little(size, 4);
  };
  const std::vector<float> pixels(2 * 2 * 3 * 3, 0.5F);
  const std::vector<std::int64_t> numbers{1, 0};
  const std::vector<io::OutputTensor> tensors{{"images", DType::f32, {2, 2, 3, 3}, std::as_bytes(std::span(pixels))},
                                              {"labels", DType::i64, {2}, std::as_bytes(std::span(numbers))}};
  std::string arrays = io::safetensors_header(tensors, {{"classes", "cat\ndog"}});
  for (const io::OutputTensor& tensor : tensors)
    arrays.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  const std::string soft = test::npz_of({{"x", test::npy_of(test::npy_dict("|u1", {2, 2, 3}), std::string(12, '\7'))},
                                         {"y", test::npy_of(test::npy_dict("<f4", {2, 2}), std::string(16, '\0'))}});
  std::vector<std::string> result{
      tar({{"a.png", png}, {"a.cls", "3"}, {"b.jpg", jpeg}, {"b.json", R"({"label": [1, 2]})"}}),
      images + std::string(12, '\5'),
      gzip(images + std::string(12, '\5')),
      std::string(2 * 3073, '\1'),
      "list.txt\t3\nother.png 4,5\n",
      soft,
      arrays};
  for (std::size_t kind = 0; kind < result.size(); ++kind) result[kind].insert(0, 1, static_cast<char>(kind));
  return result;
}

std::vector<std::string_view> words() {
  return {
      ".png", ".cls", ".json", ".jpg",        "{\"label\": 3}", "{\"cls\": [", "\t",     " 1,2",   "list.txt",
      "a.",   "/",    "ustar", "00000000000", "77777777777",    "x_train",     "images", "labels", "\xff\xff\xff\xff"};
}

}  // namespace sylvit::fuzz
