#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

#include "images/images.hpp"
#include "images/transform.hpp"
#include "support.hpp"

using namespace sylvit;
using sylvit::Image;
using sylvit::test::check_error;
using sylvit::test::image_directory;
using sylvit::test::read_file;
using sylvit::test::TemporaryDirectory;

namespace {

namespace fs = std::filesystem;

Image decode(const std::string& content, const std::string& name = "the file") {
  return sylvit::decode_image(std::as_bytes(std::span(content)), name);
}

/// What make_images.py had from Pillow.
Image expected_pixels(const std::string& name) {
  const std::string content = read_file(image_directory() / (name + ".rgb"));
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  REQUIRE(content.size() > 8);
  std::memcpy(&height, content.data(), 4);
  std::memcpy(&width, content.data() + 4, 4);
  return {height, width, {content.begin() + 8, content.end()}};
}

std::vector<fs::path> image_files() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(image_directory()))
    if (entry.path().extension() != ".rgb") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

int largest_difference(const Image& a, const Image& b) {
  REQUIRE(a.width == b.width);
  REQUIRE(a.height == b.height);
  REQUIRE(a.pixels.size() == b.pixels.size());
  int largest = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  return largest;
}

/// As in make_images.py.
Image synthetic(std::int64_t width, std::int64_t height) {
  Image image{height, width, {}};
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < 3; ++c)
        image.pixels.push_back(static_cast<std::uint8_t>((x * x * 31 + y * y * 17 + x * y * 7 + c * 85) / 3));
  return image;
}

std::uint32_t number_at(const std::string& content, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(content.at(at + i));
  return value;
}

void put_number(std::string& content, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) content.at(at + i) = static_cast<char>(value >> (24 - 8 * i));
}

/// Makes the checksums of a PNG's chunks right again, so that what is wrong gets past them.
void repair_checksums(std::string& png) {
  std::size_t at = 8;
  while (at + 12 <= png.size() && number_at(png, at) <= png.size() - at - 12) {
    const std::size_t length = number_at(png, at);
    std::uint32_t sum = ~0U;
    for (std::size_t i = at + 4; i < at + 8 + length; ++i) {
      sum ^= static_cast<unsigned char>(png[i]);
      for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320U : 0U);
    }
    put_number(png, at + 8 + length, ~sum);
    at += 12 + length;
  }
}

}  // namespace

TEST_SUITE("images/images") {
  TEST_CASE("pixels are Pillow's") {
    const std::vector<fs::path> files = image_files();
    REQUIRE(files.size() == 21);
    for (const fs::path& file : files) {
      CAPTURE(file);
      const Image image = sylvit::read_image(file);
      // JPEG decoders may differ in a transform's last bit.
      CHECK(largest_difference(image, expected_pixels(file.filename())) <= (file.extension() == ".jpg" ? 1 : 0));
    }
  }

  TEST_CASE("a file's content says what it is, not its name") {
    const TemporaryDirectory directory;
    const fs::path path = directory.path() / "wrong.jpg";
    fs::copy_file(image_directory() / "rgb8.png", path);
    CHECK(largest_difference(sylvit::read_image(path), expected_pixels("rgb8.png")) == 0);
    std::ofstream(directory.path() / "text.png") << "no image";
    check_error([&] { sylvit::read_image(directory.path() / "text.png"); }, {"text.png", "neither a JPEG nor a PNG"});
    std::ofstream(directory.path() / "empty.png").flush();
    check_error([&] { sylvit::read_image(directory.path() / "empty.png"); }, {"empty.png is empty"});
    check_error([&] { sylvit::read_image(directory.path() / "missing.png"); }, {"missing.png", "No such file"});
    check_error([&] { sylvit::read_image(directory.path()); }, {directory.path().string()});
    check_error([&] { sylvit::read_image("/dev/zero"); }, {"/dev/zero", "neither"});
  }

  TEST_CASE("resizing and cropping gives Pillow's bytes") {
    const auto check = [](std::int64_t width, std::int64_t height, std::int64_t size, double crop_pct) {
      const std::string name = "resized_" + std::to_string(width) + "x" + std::to_string(height);
      CAPTURE(name);
      CHECK(largest_difference(sylvit::resized_and_cropped(synthetic(width, height), size, crop_pct),
                               expected_pixels(name)) == 0);
    };
    check(53, 37, 16, 0.9);
    check(5, 61, 32, 0.875);
    check(1, 1, 8, 1.0);
    check(31, 90, 24, 0.95);
    check(16, 16, 16, 1.0);
    // Only what is cut out is computed: the whole would be 8 million times 224 pixels.
    CHECK(sylvit::resized_and_cropped(synthetic(1, 40'000), 224, 1.0).height == 224);
    for (const double crop_pct : {0.0, -1.0, 1.1, 1e-9, std::nan("")})
      check_error([&] { sylvit::resized_and_cropped(synthetic(2, 2), 8, crop_pct); }, {"8 pixels"});
  }

  TEST_CASE("the tensor is planar and normalised") {
    const Image image = synthetic(8, 8);
    std::vector<float> tensor(3 * 64);
    sylvit::transform_image(
        image, {.size = 8, .crop_pct = 1, .mean = {0.1F, 0.2F, 0.3F}, .deviation = {0.5F, 0.25F, 2.0F}}, tensor);
    for (std::size_t i = 0; i < 64; ++i) {
      CHECK(tensor[i] == (static_cast<float>(image.pixels[3 * i]) / 255.0F - 0.1F) / 0.5F);
      CHECK(tensor[64 + i] == (static_cast<float>(image.pixels[3 * i + 1]) / 255.0F - 0.2F) / 0.25F);
      CHECK(tensor[128 + i] == (static_cast<float>(image.pixels[3 * i + 2]) / 255.0F - 0.3F) / 2.0F);
    }
  }

  TEST_CASE("a file cut off anywhere is an error that names it") {
    for (const fs::path& file : image_files()) {
      CAPTURE(file);
      const std::string content = read_file(file);
      for (std::size_t length = 0; length < content.size(); ++length) {
        CAPTURE(length);
        CHECK_THROWS_AS(decode(content.substr(0, length)), Error);
      }
    }
    const std::string jpeg = read_file(image_directory() / "baseline.jpg");
    check_error([&] { decode(jpeg.substr(0, jpeg.size() - 9), "cut.jpg"); }, {"cut.jpg is corrupt: Premature end"});
    const std::string png = read_file(image_directory() / "rgb8.png");
    check_error([&] { decode(png.substr(0, png.size() - 9), "cut.png"); }, {"cut.png is corrupt: the file ends too"});
  }

  TEST_CASE("what stands around a JPEG's pixels does not matter") {
    std::string jpeg = read_file(image_directory() / "baseline.jpg");
    const Image expected = decode(jpeg);
    CHECK(largest_difference(decode(jpeg + "more"), expected) == 0);
    jpeg.insert(jpeg.size() - 2, "extra");
    CHECK(largest_difference(decode(jpeg), expected) == 0);
    // Some encoders write zeros for the parameters of a baseline scan, after its components.
    const std::size_t scan = jpeg.find("\xff\xda");
    REQUIRE(scan != std::string::npos);
    for (std::size_t i = 0; i < 3; ++i) jpeg[scan + 5 + 2 * static_cast<std::size_t>(jpeg[scan + 4]) + i] = '\0';
    CHECK(largest_difference(decode(jpeg), expected) == 0);
  }

  TEST_CASE("too many pixels are refused before they are allocated") {
    std::string png = read_file(image_directory() / "rgb8.png");
    put_number(png, 16, 20'000);
    put_number(png, 20, 10'000);
    repair_checksums(png);
    check_error([&] { decode(png, "bomb.png"); }, {"bomb.png", "20000 x 10000", "178956970"});
    put_number(png, 20, 1'000);
    repair_checksums(png);
    check_error([&] { decode(png, "short.png"); }, {"short.png is corrupt", "cannot hold 20000 x 1000"});
    put_number(png, 16, 0);
    repair_checksums(png);
    check_error([&] { decode(png, "flat.png"); }, {"flat.png is corrupt", "IHDR"});
    std::string jpeg = read_file(image_directory() / "baseline.jpg");
    const std::size_t frame = jpeg.find("\xFF\xC0");
    REQUIRE(frame != std::string::npos);
    put_number(jpeg, frame + 5, 0xEA60EA60U);
    check_error([&] { decode(jpeg, "bomb.jpg"); }, {"bomb.jpg", "60000 x 60000", "178956970"});
  }

  TEST_CASE("a progressive JPEG may not ask for scans without end") {
    const std::string jpeg = read_file(image_directory() / "progressive.jpg");
    const std::size_t first = jpeg.find("\xFF\xDA");
    std::string scan = jpeg.substr(first, jpeg.find("\xFF\xC4", first) - first);
    scan.at(13) = 0;  // all bits of the first coefficients at once, which may be said again
    const auto repeated = [&](int times) {
      std::string file = jpeg.substr(0, first);
      for (int i = 0; i < times; ++i) file += scan;
      return file + "\xFF\xD9";
    };
    CHECK(decode(repeated(500)).width == 13);
    check_error([&] { decode(repeated(502), "scans.jpg"); }, {"scans.jpg is corrupt", "500 scans"});
  }

  TEST_CASE("extents are read from the beginning of a file") {
    for (const fs::path& path : image_files()) {
      const std::string content = read_file(path);
      const auto bytes = std::as_bytes(std::span(content));
      CAPTURE(path);
      CHECK(sylvit::image_extents(bytes, "x") == std::array<std::int64_t, 2>{9, 13});
      CHECK(sylvit::image_extents(bytes.first(bytes.size() - 20), "x") == std::array<std::int64_t, 2>{9, 13});
      check_error([&] { sylvit::image_extents(bytes.first(8), "x"); }, {"x is corrupt"});
    }
    check_error([&] { sylvit::image_extents({}, "x"); }, {"x is empty"});
    check_error([&] { sylvit::image_extents(std::as_bytes(std::span("text")), "x"); }, {"neither a JPEG nor a PNG"});
  }

  TEST_CASE("what is written as PNG is read again") {
    const Image image = synthetic(19, 7);
    const std::vector<std::byte> file = sylvit::encode_png(image);
    CHECK(sylvit::decode_image(file, "x").pixels == image.pixels);
    const Image grey = sylvit::with_channels(image, 1);
    CHECK(grey.pixels.size() == 19 * 7);
    const Image again = sylvit::decode_image(sylvit::encode_png(grey), "x");
    CHECK(again.pixels == sylvit::with_channels(grey, 3).pixels);
    CHECK(sylvit::with_channels(again, 1).pixels == grey.pixels);
    CHECK(sylvit::encode_png(grey).size() < file.size());
  }

  TEST_CASE("a grey image is resized as each of its three channels would be") {
    const Image grey = sylvit::with_channels(synthetic(31, 23), 1);
    const Image colours = sylvit::with_channels(grey, 3);
    const Image small = sylvit::resized_and_cropped(grey, 8, 0.9);
    CHECK(small.channels == 1);
    CHECK(sylvit::with_channels(small, 3).pixels == sylvit::resized_and_cropped(colours, 8, 0.9).pixels);
    std::vector<float> values(64);
    sylvit::transform_image(grey, {.size = 8}, values);
    std::vector<float> three(192);
    sylvit::transform_image(colours, {.size = 8}, three);
    CHECK(std::equal(values.begin(), values.end(), three.begin() + 64));
  }

  TEST_CASE("changed bytes give an error or an image, nothing else") {
    std::mt19937 generator(5);
    int images = 0;
    int errors = 0;
    for (const fs::path& file : image_files()) {
      const std::string content = read_file(file);
      for (int round = 0; round < 400; ++round) {
        std::string changed = content;
        const std::size_t changes = 1 + generator() % 4;
        for (std::size_t i = 0; i < changes; ++i)
          changed[generator() % changed.size()] = static_cast<char>(generator() % 256);
        if (generator() % 2 == 0) repair_checksums(changed);
        try {
          const Image image = decode(changed);
          REQUIRE(image.width * image.height * 3 == static_cast<std::int64_t>(image.pixels.size()));
          ++images;
        } catch (const Error& error) {
          REQUIRE(std::string(error.what()).find("the file") == 0);
          ++errors;
        }
      }
    }
    CHECK(images > 500);
    CHECK(errors > 500);
  }
}
