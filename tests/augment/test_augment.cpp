// Random changes of images against what Pillow, timm, torchvision and TensorFlow make of the same pixels and the same
// random numbers (make_golden.py).
#include <sylvit/data.hpp>
#include <sylvit/error.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "augment/affine.hpp"
#include "augment/boxes.hpp"
#include "augment/colours.hpp"
#include "augment/erase.hpp"
#include "augment/rand_augment.hpp"
#include "augment/random.hpp"
#include "data/mix.hpp"
#include "io/safetensors.hpp"
#include "support.hpp"

using namespace sylvit;
using namespace sylvit::augment;
using sylvit::test::check_error;

namespace {

const io::SafetensorsFile& golden(const std::string& library) {
  const auto open = [](const std::string& name) {
    return io::SafetensorsFile::open(test::test_directory() / "augment" / "golden" / (name + ".safetensors"));
  };
  static const io::SafetensorsFile pillow = open("pillow");
  static const io::SafetensorsFile tensorflow = open("tensorflow");
  return library == "pillow" ? pillow : tensorflow;
}

std::vector<double> numbers(const io::SafetensorsFile& file, const std::string& name) {
  const auto bytes = file.read_bytes(file.at(name));
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// As in make_golden.py.
Image synthetic(std::int64_t width, std::int64_t height) {
  Image image{height, width, {}};
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < 3; ++c)
        image.pixels.push_back(static_cast<std::uint8_t>((x * x * 31 + y * y * 17 + x * y * 7 + c * 85) / 3));
  return image;
}

const Image picture = synthetic(14, 11);

Image dull() {
  Image image = picture;
  for (std::uint8_t& value : image.pixels) value = static_cast<std::uint8_t>(value / 3 + 40);
  return image;
}

void check_pixels(const Image& image, const std::string& library, const std::string& name) {
  CAPTURE(name);
  const io::TensorInfo& tensor = golden(library).at(name);
  REQUIRE(tensor.shape[0] == image.height);
  REQUIRE(tensor.shape[1] == image.width);
  const auto wanted = golden(library).read_bytes(tensor);
  REQUIRE(wanted.size() == image.pixels.size());
  int differing = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) differing += std::to_integer<int>(wanted[i]) != image.pixels[i];
  CHECK(differing == 0);
}

/// Recorded draws.
class Recorded {
 public:
  explicit Recorded(std::span<const double> numbers) : numbers_(numbers) {}
  double uniform() { return take(); }
  std::uint64_t below(std::uint64_t count) { return static_cast<std::uint64_t>(take() * static_cast<double>(count)); }

 protected:
  double take() {
    REQUIRE_MESSAGE(!numbers_.empty(), "more random numbers are drawn than in the other library");
    const double number = numbers_.front();
    numbers_ = numbers_.subspan(1);
    return number;
  }

 private:
  std::span<const double> numbers_;
};

/// 32 bits of TensorFlow's generator.
class RecordedBits : public Recorded {
 public:
  using Recorded::Recorded;
  double uniform() { return static_cast<double>(bits() & 0x7FFFFFU) * 0x1p-23; }
  std::uint64_t below(std::uint64_t count) { return bits() % count; }  // of powers of two the lower bits, which is it

 private:
  std::uint64_t bits() { return static_cast<std::uint64_t>(take()); }
};

/// Runs every recorded case: the given numbers and the draws, and the box that is to come out.
template <class Draws>
void check_boxes(const std::string& library, const std::string& name,
                 const std::function<std::optional<ImageBox>(std::span<const double>, Draws&)>& draw) {
  const io::SafetensorsFile& file = golden(library);
  const std::vector<double> given = numbers(file, name + ".given");
  const std::vector<double> drawn = numbers(file, name + ".draws");
  const std::vector<std::int64_t> boxes = file.read_i64(name + ".boxes");
  const std::size_t cases = boxes.size() / 4;
  REQUIRE(cases >= 16);
  const std::size_t columns = given.size() / cases;
  for (std::size_t i = 0; i < cases; ++i) {
    const std::size_t each = drawn.size() / cases;
    Draws draws{std::span<const double>(drawn).subspan(i * each, each)};
    const auto box = draw(std::span<const double>(given).subspan(i * columns, columns), draws);
    CAPTURE(i);
    REQUIRE(box);
    CHECK(std::array{box->x, box->y, box->width, box->height} ==
          std::array{boxes[4 * i], boxes[4 * i + 1], boxes[4 * i + 2], boxes[4 * i + 3]});
  }
}

std::int64_t whole(double value) { return static_cast<std::int64_t>(value); }

}  // namespace

TEST_SUITE("augment/augment") {
  TEST_CASE("colours are changed to Pillow's bytes") {
    const auto check = [](const std::string& name, const Image& from, const std::function<void(Image&)>& change) {
      Image image = from;
      change(image);
      check_pixels(image, "pillow", name);
    };
    const Image grey = with_channels(picture, 1);
    check_pixels(grey, "pillow", "grey");
    check("autocontrast", dull(), [](Image& image) { autocontrast(image, Library::pillow); });
    check("equalize", dull(), [](Image& image) { equalize(image); });
    Image large = synthetic(40, 30);
    for (std::uint8_t& value : large.pixels) value /= 2;
    check("equalize_40x30", large, [](Image& image) { equalize(image); });
    check("invert", picture, [](Image& image) { invert(image); });
    for (const int bits : {1, 4})
      check("posterize " + std::to_string(bits), picture, [&](Image& image) { posterize(image, bits); });
    for (const int threshold : {26, 256})
      check("solarize " + std::to_string(threshold), picture, [&](Image& image) { solarize(image, threshold); });
    check("solarize_add 99", picture, [](Image& image) { solarize_add(image, 99); });
    for (const std::string factor : {"0.1", "0.73", "1.81"}) {
      const float value = std::stof(factor);
      check("color " + factor, picture, [&](Image& image) { color(image, value, Library::pillow); });
      check("contrast " + factor, picture, [&](Image& image) { contrast(image, value, Library::pillow); });
      check("brightness " + factor, picture, [&](Image& image) { brightness(image, value); });
      check("sharpness " + factor, picture, [&](Image& image) { sharpness(image, value, Library::pillow); });
      if (factor == "0.73") continue;
      check("grey contrast " + factor, grey, [&](Image& image) { contrast(image, value, Library::pillow); });
      check("grey sharpness " + factor, grey, [&](Image& image) { sharpness(image, value, Library::pillow); });
    }
    // Of one colour only: nothing to stretch.
    Image flat = picture;
    std::ranges::fill(flat.pixels, std::uint8_t{77});
    Image changed = flat;
    autocontrast(changed, Library::pillow);
    equalize(changed);
    autocontrast(changed, Library::tensorflow);
    CHECK(changed.pixels == flat.pixels);
  }

  TEST_CASE("images are turned and resized to Pillow's bytes") {
    const Fill fill{124, 116, 104};
    for (const Resampling method : {Resampling::bilinear, Resampling::bicubic}) {
      const std::string name = method == Resampling::bilinear ? "bilinear " : "bicubic ";
      const auto check = [&](const std::string& what, const Affine& affine) {
        check_pixels(transformed(picture, affine, method, fill), "pillow", name + what);
      };
      check("rotate 27", pillow_rotation(11, 14, 27));
      check("rotate -8.1", pillow_rotation(11, 14, -8.1));
      check("shear_x 0.27", {.b = 0.27});
      check("shear_y -0.2", {.d = -0.2});
      check("translate_x 0.405", {.c = 0.405 * 14});
      check("translate_y -0.18", {.f = -0.18 * 11});
      for (const auto& [part, size] : std::vector<std::pair<ImageBox, std::int64_t>>{
               {{2, 1, 11, 9}, 6}, {{0, 0, 14, 11}, 16}, {{3, 4, 5, 3}, 8}, {{0, 0, 14, 11}, 3}})
        check_pixels(resized(picture, part, size, size, method), "pillow",
                     name + "resized " + std::to_string(part.x) + " " + std::to_string(part.y) + " " +
                         std::to_string(part.width) + " " + std::to_string(part.height) + " " + std::to_string(size));
      check_pixels(resized(synthetic(9, 60), {1, 2, 7, 55}, 8, 8, method), "pillow", name + "tall");
    }
    Image flipped = picture;
    flip(flipped);
    check_pixels(flipped, "pillow", "flip");
    check_pixels(cut_out(picture, {2, -2, 12, 12}, false), "pillow", "padded constant");
    check_pixels(cut_out(picture, {2, -2, 12, 12}, true), "pillow", "padded reflect");
    check_error([] { resized(picture, {10, 0, 5, 5}, 4, 4, Resampling::bilinear); }, {"14 x 11", "5 x 5 at 10, 0"});
    check_error([] { resized(picture, {0, 0, 5, 5}, 0, 4, Resampling::bilinear); }, {"resized to 4 x 0"});
  }

  TEST_CASE("each operation of timm's RandAugment is as strong as there") {
    const std::vector<double> levels = numbers(golden("pillow"), "levels");
    std::size_t next = 0;
    for (const bool increasing : {false, true})
      for (const Operation operation :
           {Operation::rotate, Operation::posterize, Operation::solarize, Operation::solarize_add, Operation::color,
            Operation::contrast, Operation::brightness, Operation::sharpness, Operation::shear_x, Operation::shear_y,
            Operation::translate_x, Operation::translate_y})
        for (const double level : {0.0, 3.7, 9.0, 10.0})
          for (const bool negative : {false, true}) {
            CAPTURE(static_cast<int>(operation));
            CAPTURE(level);
            const RandAugment options{.form = RandAugmentForm::timm, .increasing = increasing};
            const double argument = argument_of(options, {operation, level, negative}, 1);
            CHECK(argument == doctest::Approx(levels.at(next++)).epsilon(1e-12));
          }
    CHECK(next == levels.size());
    // And applied: what was checked above, chosen by level and sign.
    Image image = picture;
    apply(image, {.form = RandAugmentForm::timm}, {Operation::rotate, 2.7, true, Resampling::bicubic}, {124, 116, 104});
    check_pixels(image, "pillow", "bicubic rotate -8.1");
    image = picture;
    apply(image, {.form = RandAugmentForm::timm}, {Operation::translate_x, 9, false, Resampling::bilinear},
          {124, 116, 104});
    check_pixels(image, "pillow", "bilinear translate_x 0.405");
    image = picture;
    apply(image, {.form = RandAugmentForm::timm, .increasing = true}, {Operation::solarize, 9}, {});
    check_pixels(image, "pillow", "solarize 26");
    image = picture;
    apply(image, {.form = RandAugmentForm::timm, .increasing = true}, {Operation::color, 9, false}, {});
    check_pixels(image, "pillow", "color 1.81");
  }

  TEST_CASE("big_vision's RandAugment has TensorFlow's bytes") {
    RandAugment options{.form = RandAugmentForm::big_vision, .translate = 5, .cutout = 4};
    const auto check = [&](const std::string& name, Operation operation, double level, const Image& from = picture) {
      Image image = from;
      Step step{operation, std::abs(level), level < 0};
      step.y = 3;
      step.x = 12;
      apply(image, options, step, {1, 2, 3});
      check_pixels(image, "tensorflow", name + " " + std::to_string(static_cast<int>(level)));
    };
    for (const double level : {0.0, 10.0, 15.0}) {
      check("Posterize", Operation::posterize, level);
      check("Solarize", Operation::solarize, level);
      check("SolarizeAdd", Operation::solarize_add, level);
      check("Color", Operation::color, level);
      check("Contrast", Operation::contrast, level);
      check("Brightness", Operation::brightness, level);
      check("Sharpness", Operation::sharpness, level);
    }
    check("AutoContrast", Operation::autocontrast, 10, dull());
    check("Equalize", Operation::equalize, 10, dull());
    check("Invert", Operation::invert, 10);
    check("Cutout", Operation::cutout, 10);
    for (const double level : {10.0, -15.0}) {
      check("Rotate", Operation::rotate, level);
      check("ShearX", Operation::shear_x, level);
      check("ShearY", Operation::shear_y, level);
      check("TranslateX", Operation::translate_x, level);
      check("TranslateY", Operation::translate_y, level);
    }
  }

  TEST_CASE("big_vision's resize has TensorFlow's bytes") {
    for (const auto& [part, size] : std::vector<std::pair<ImageBox, std::int64_t>>{
             {{2, 1, 11, 9}, 6}, {{0, 0, 14, 11}, 16}, {{3, 4, 5, 3}, 8}, {{0, 0, 14, 11}, 3}, {{0, 0, 11, 11}, 11}})
      check_pixels(resized(picture, part, size, size, Resampling::plain_bilinear), "tensorflow",
                   "resized " + std::to_string(part.x) + " " + std::to_string(part.y) + " " +
                       std::to_string(part.width) + " " + std::to_string(part.height) + " " + std::to_string(size));
  }

  TEST_CASE("boxes of crops, of erasing and of cutmix from the same random numbers") {
    check_boxes<Recorded>("pillow", "resized_crop", [](std::span<const double> given, Recorded& draws) {
      return std::optional(
          resized_crop_box(whole(given[0]), whole(given[1]), {given[2], given[3], 3.0 / 4, 4.0 / 3}, draws));
    });
    check_boxes<RecordedBits>("tensorflow", "inception", [](std::span<const double> given, RecordedBits& draws) {
      return std::optional(inception_box(whole(given[0]), whole(given[1]), {given[2], given[3], 0.75, 4.0 / 3}, draws));
    });
    check_boxes<Recorded>("pillow", "erased", [](std::span<const double> given, Recorded& draws) {
      return erased_box(whole(given[0]), whole(given[1]), {0.02, 1.0 / 3, 0.3, 1 / 0.3}, 1, draws);
    });
    check_boxes<Recorded>("pillow", "cutmix", [](std::span<const double> given, Recorded& draws) {
      const ImageBox box = cutmix_box(whole(given[0]), whole(given[1]), given[2], draws);
      const double stays = 1 - static_cast<double>(box.width * box.height) / (given[0] * given[1]);
      CHECK(stays == doctest::Approx(given[3]).epsilon(1e-12));
      return std::optional(box);
    });
  }

  TEST_CASE("crops are what their ranges allow, of images of any shape") {
    Random random{1, 2, 3};
    for (const auto& [width, height] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {500, 375}, {1, 1}, {2, 1}, {1000, 3}, {3, 1000}, {28, 28}, {16384, 10000}})
      for (int i = 0; i < 300; ++i) {
        const BoxRange range{0.05, 1, 3.0 / 4, 4.0 / 3};
        for (const ImageBox& box :
             {inception_box(width, height, range, random), resized_crop_box(width, height, range, random)}) {
          REQUIRE(box.width > 0);
          REQUIRE(box.height > 0);
          REQUIRE(box.x >= 0);
          REQUIRE(box.y >= 0);
          REQUIRE(box.x + box.width <= width);
          REQUIRE(box.y + box.height <= height);
          if (width < 28 || width > 2 * height) continue;
          const double aspect = static_cast<double>(box.width) / static_cast<double>(box.height);
          REQUIRE(aspect > 0.75 * 0.8);
          REQUIRE(aspect < 1.25 * 4 / 3);
          REQUIRE(static_cast<double>(box.width * box.height) > 0.04 * static_cast<double>(width * height));
        }
      }
  }

  TEST_CASE("random numbers: a function of their key, uniform, normal, beta") {
    CHECK(Random{1, 2}.bits() == Random{1, 2}.bits());
    std::vector<std::uint64_t> seen;
    for (std::uint64_t a = 0; a < 30; ++a)
      for (std::uint64_t b = 0; b < 30; ++b) seen.push_back(Random{a, b}.bits());
    std::ranges::sort(seen);
    CHECK(std::ranges::adjacent_find(seen) == seen.end());
    CHECK(Random{1, 2}.bits() != Random{2, 1}.bits());
    CHECK(Random{1}.bits() != Random{1, 0}.bits());

    Random random{7};
    constexpr int count = 200'000;
    std::array<int, 7> counts{};
    for (int i = 0; i < count; ++i) ++counts[random.below(7)];
    double square = 0;
    for (const int found : counts) square += (found - count / 7.0) * (found - count / 7.0) / (count / 7.0);
    CHECK(square < 22.5);  // chi-square of 6 degrees, one in a thousand
    // Neighbouring keys, first number of each: as an augmentation draws.
    std::array<int, 64> pairs{};
    for (std::uint64_t i = 0; i < 64'000; ++i) {
      const auto eighth = [](std::uint64_t key) { return static_cast<std::size_t>(Random{3, key}.uniform() * 8); };
      ++pairs[eighth(i) * 8 + eighth(i + 1)];
    }
    square = 0;
    for (const int found : pairs) square += (found - 1000.0) * (found - 1000.0) / 1000.0;
    CHECK(square < 103.4);  // of 63 degrees

    double sum = 0;
    double squares = 0;
    for (int i = 0; i < count; ++i) {
      const double x = normal(random);
      sum += x;
      squares += x * x;
    }
    CHECK(std::abs(sum / count) < 0.01);
    CHECK(std::abs(squares / count - 1) < 0.02);

    // The share below 0.1 of Beta(p, p), from tables: for p = 1, 0.1; for p = 0.5, 2/π asin √0.1; for p = 2, 0.028; and
    // of Beta(0.2, 0.2), numerically integrated.
    for (const auto& [p, below] : std::vector<std::pair<double, double>>{
             {1, 0.1}, {0.5, 0.20483276}, {2, 0.028}, {0.2, 0.33669}, {0.01, 0.48920}}) {
      int found = 0;
      double mean = 0;
      for (int i = 0; i < count; ++i) {
        const double x = beta(random, p);
        REQUIRE(x >= 0);
        REQUIRE(x <= 1);
        found += x < 0.1;
        mean += x;
      }
      CAPTURE(p);
      CHECK(std::abs(static_cast<double>(found) / count - below) < 0.005);
      CHECK(std::abs(mean / count - 0.5) < 0.005);
    }
  }

  TEST_CASE("erasing overwrites boxes, as often as its probability says") {
    const auto erased = [](const Erasing& erasing, std::uint64_t key) {
      std::vector<float> pixels(3 * 28 * 28, 5.0F);
      Random random{key};
      erase(pixels, 3, 28, erasing, random);
      return pixels;
    };
    int changed = 0;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const auto pixels = erased({.probability = 0.25, .with = EraseWith::zero}, i);
      const auto zeros = std::ranges::count(pixels, 0.0F);
      REQUIRE(zeros % 3 == 0);
      REQUIRE(zeros <= 3 * 28 * 28 / 2);
      if (zeros > 0) ++changed;
    }
    CHECK(std::abs(changed - 500) < 70);
    const auto color = erased({.probability = 1, .with = EraseWith::color}, 3);
    for (std::size_t c = 0; c < 3; ++c) {
      std::vector<float> plane(color.begin() + static_cast<std::ptrdiff_t>(c * 784),
                               color.begin() + static_cast<std::ptrdiff_t>((c + 1) * 784));
      std::ranges::sort(plane);
      const auto end = std::ranges::unique(plane).begin();
      CHECK(end - plane.begin() == 2);
    }
    auto noise = erased({.probability = 1, .count = 2, .with = EraseWith::noise}, 3);
    const auto others = noise.size() - static_cast<std::size_t>(std::ranges::count(noise, 5.0F));
    std::ranges::sort(noise);
    const auto different = static_cast<std::size_t>(std::ranges::unique(noise).begin() - noise.begin());
    CHECK(others > 40);
    CHECK(different == others + 1);
  }

  TEST_CASE("mixup and cutmix of a batch are timm's") {
    std::vector<float> pixels;
    for (const auto& [x, y] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {6, 3}}) {
      const Image part = cut_out(picture, {x, y, 8, 8}, false);
      for (std::size_t c = 0; c < 3; ++c)
        for (std::size_t i = 0; i < 64; ++i)
          pixels.push_back((static_cast<float>(part.pixels[3 * i + c]) / 255.0F - 0.5F) / 0.5F);
    }
    const std::size_t values = 3 * 64;
    std::vector<float> first(pixels.begin(), pixels.begin() + static_cast<std::ptrdiff_t>(values));
    std::vector<float> second(pixels.begin() + static_cast<std::ptrdiff_t>(values), pixels.end());
    const std::vector<float> untouched = first;
    data::mix_pixels(first, second, 8, {0.3F, std::nullopt});
    data::mix_pixels(second, untouched, 8, {0.3F, std::nullopt});
    const std::vector<float> wanted = golden("pillow").read_f32("mixup.pixels");
    for (std::size_t i = 0; i < values; ++i) {
      CHECK(std::abs(first[i] - wanted[i]) < 1e-6F);
      CHECK(std::abs(second[i] - wanted[values + i]) < 1e-6F);
    }
    // Label smoothing of 0.1 for three classes, then mixed.
    const float off = 0.1F / 3;
    const float on = 0.9F + off;
    std::vector<float> targets{off, off, on};
    data::mix_targets(targets, std::vector<float>{on, off, off}, {0.3F, std::nullopt});
    const std::vector<float> wanted_targets = golden("pillow").read_f32("mixup.targets");
    for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(targets[i] - wanted_targets[i]) < 1e-6F);

    std::vector<float> cut(2 * 16, 1.0F);
    data::mix_pixels(cut, std::vector<float>(2 * 16, 7.0F), 4, {0.75F, ImageBox{1, 2, 2, 2}});
    for (std::size_t i = 0; i < cut.size(); ++i) {
      const std::size_t x = i % 4;
      const std::size_t y = i / 4 % 4;
      CHECK(cut[i] == ((x == 1 || x == 2) && y >= 2 ? 7.0F : 1.0F));
    }

    int cuts = 0;
    int none = 0;
    double stays = 0;
    constexpr int count = 4000;
    for (int i = 0; i < count; ++i) {
      const Mixing mixing{.mixup = 0.8, .cutmix = 1, .cutmix_instead = 0.25, .probability = 0.5};
      const data::Mix mix = data::draw_mix(mixing, 5, i, 28);
      none += mix.does_nothing();
      cuts += mix.box.has_value();
      if (mix.box) CHECK(mix.share == doctest::Approx(1 - static_cast<double>(mix.box->width * mix.box->height) / 784));
      const data::Mix larger = data::draw_mix({.mixup = 0.2, .larger_share = true}, 5, i, 28);
      CHECK(larger.share >= 0.5F);
      CHECK(!larger.box);
      stays += static_cast<double>(larger.share);
    }
    CHECK(std::abs(none - count / 2) < 130);
    CHECK(std::abs(cuts - count / 8) < 90);
    CHECK(std::abs(stays / count - 0.8988) < 0.01);  // the mean of max(a, 1 - a), numerically integrated
    CHECK(data::draw_mix({}, 5, 0, 28).does_nothing());
  }

  TEST_CASE("RandAugment's two spellings") {
    const RandAugment big_vision = parse_rand_augment("randaug(2,15)");
    CHECK(big_vision.form == RandAugmentForm::big_vision);
    CHECK(big_vision.operations == 2);
    CHECK(big_vision.level == 15);
    const RandAugment timm = parse_rand_augment("rand-m9-n3-mstd0.5-inc1-p0.7-mmax20");
    CHECK(timm.form == RandAugmentForm::timm);
    CHECK(timm.operations == 3);
    CHECK(timm.level == 9);
    CHECK(timm.level_deviation == 0.5);
    CHECK(timm.increasing);
    CHECK(timm.probability == 0.7);
    CHECK(timm.level_limit == 20);
    CHECK(std::isinf(parse_rand_augment("rand-m9-mstd101").level_deviation));
    CHECK(!parse_rand_augment("rand-m9").increasing);
    CHECK(parse_rand_augment("none").form == RandAugmentForm::none);
    for (const char* text :
         {"", "rand-", "rand-x3", "rand-m", "rand-n1.5", "rand-p2", "randaug(2)", "randaug(2,10", "randaug(2.5,10)",
          "randaug(2,-1)", "randaug(2,10) ", "augmix-m3", "rand-n1e9", "rand-mnan"})
      check_error([&] { parse_rand_augment(text); }, {std::string("\"") + text + "\" is no RandAugment"});
  }

  TEST_CASE("steps: every operation as often as the others, levels within their limits") {
    Random random{11};
    std::array<int, 16> counts{};
    int negative = 0;
    const RandAugment big_vision = parse_rand_augment("randaug(2,10)");
    for (int i = 0; i < 8000; ++i) {
      const std::vector<Step> steps = draw_steps(big_vision, 20, 30, random, &normal);
      REQUIRE(steps.size() == 2);
      for (const Step& step : steps) {
        ++counts[static_cast<std::size_t>(step.operation)];
        negative += step.negative;
        CHECK(step.level == 10);
        if (step.operation == Operation::cutout) CHECK((step.x < 30 && step.y < 20));
      }
    }
    for (const int count : counts) CHECK(std::abs(count - 1000) < 130);
    CHECK(std::abs(negative - 8000) < 300);

    const RandAugment timm = parse_rand_augment("rand-m9-mstd0.5-inc1");
    std::size_t steps_all = 0;
    double sum = 0;
    int at_limit = 0;
    for (int i = 0; i < 8000; ++i)
      for (const Step& step : draw_steps(timm, 20, 30, random, &normal)) {
        ++steps_all;
        CHECK(step.operation != Operation::cutout);
        CHECK(step.level <= 10);
        sum += step.level;
        at_limit += step.level == 10;
      }
    CHECK(std::abs(static_cast<double>(steps_all) - 8000) < 250);
    CHECK(std::abs(sum / static_cast<double>(steps_all) - 9) < 0.05);
    CHECK(std::abs(static_cast<double>(at_limit) / static_cast<double>(steps_all) - 0.0228) < 0.006);
  }
}
