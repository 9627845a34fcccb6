// Batches are the same bits for any number of threads, for any size of the parts, and wherever a loader begins.
#include <sylvit/data.hpp>
#include <sylvit/error.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "data/source_files.hpp"
#include "support.hpp"

using namespace sylvit;
using namespace sylvit::test;

namespace {

namespace fs = std::filesystem;

/// 23 grey images of 6 x 6, of three classes: image i is of the colour 10 i and of class i % 3.
class Set {
 public:
  static constexpr int images = 23;

  Set() {
    std::string pixels;
    std::string labels;
    for (int i = 0; i < images; ++i) {
      pixels += std::string(36, static_cast<char>(10 * i));
      labels += static_cast<char>(i % 3);
    }
    write_file(directory_.path() / "train-images-idx3-ubyte", idx_of({images, 6, 6}, pixels));
    write_file(directory_.path() / "train-labels-idx1-ubyte", idx_of({images}, labels));
  }
  ImageSet open() const { return ImageSet::open(directory_.path().string() + ":train"); }

 private:
  TemporaryDirectory directory_;
};

/// Pixels are image numbers times 10.
constexpr Augmentation plain{.size = 6, .crop_pct = 1, .mean{0, 0, 0}, .deviation{1 / 255.0F, 1 / 255.0F, 1 / 255.0F}};

std::int64_t number_of(float pixel) { return std::lround(pixel / 10); }

struct Read {
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;
  std::vector<float> targets;
  std::vector<std::int64_t> positions;

  friend bool operator==(const Read&, const Read&) = default;
};

/// All parts until so many examples.
Read read(const ImageSet& set, const Augmentation& augmentation, const Mixing& mixing, LoaderOptions options,
          std::int64_t examples) {
  options.end = examples;
  Loader loader(set, augmentation, mixing, options);
  Read all;
  while (const LabelledBatch* batch = loader.next()) {
    CHECK(batch->labels.size() == static_cast<std::size_t>(batch->images));
    for (std::int64_t i = 0; i < batch->images; ++i) all.positions.push_back(batch->position + i);
    all.pixels.insert(all.pixels.end(), batch->pixels.begin(), batch->pixels.end());
    all.labels.insert(all.labels.end(), batch->labels.begin(), batch->labels.end());
    all.targets.insert(all.targets.end(), batch->targets.begin(), batch->targets.end());
  }
  CHECK(loader.next() == nullptr);
  return all;
}

/// The last of them.
template <class T>
std::vector<T> tail(const std::vector<T>& all, std::size_t count) {
  return {all.end() - static_cast<std::ptrdiff_t>(count), all.end()};
}

}  // namespace

TEST_SUITE("data/loader") {
  TEST_CASE("every epoch has every image once, in an order of its own") {
    const Set set;
    const ImageSet images = set.open();
    const Read read_all = read(images, plain, {}, {.batch = 5, .seed = 3}, 3 * Set::images);
    REQUIRE(read_all.labels.size() == 3 * Set::images);
    CHECK(read_all.targets.empty());
    std::set<std::vector<std::int64_t>> orders;
    for (std::size_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<std::int64_t> order;
      for (std::size_t i = epoch * Set::images; i < (epoch + 1) * Set::images; ++i) {
        const std::int64_t number = number_of(read_all.pixels[36 * i]);
        CHECK(read_all.labels[i] == number % 3);
        CHECK(read_all.positions[i] == static_cast<std::int64_t>(i));
        order.push_back(number);
      }
      const auto wanted = epoch_order(Set::images, 3, static_cast<std::int64_t>(epoch));
      CHECK(std::ranges::equal(order, wanted));
      orders.insert(order);
      std::ranges::sort(order);
      for (std::size_t i = 0; i < order.size(); ++i) CHECK(order[i] == static_cast<std::int64_t>(i));
    }
    CHECK(orders.size() == 3);
    CHECK(epoch_order(Set::images, 3, 0) != epoch_order(Set::images, 4, 0));
    const Read in_order = read(images, plain, {}, {.batch = 5, .shuffled = false}, Set::images);
    for (std::size_t i = 0; i < Set::images; ++i)
      CHECK(number_of(in_order.pixels[36 * i]) == static_cast<std::int64_t>(i));
  }

  TEST_CASE("every order is as likely as another") {
    std::map<std::vector<std::int32_t>, int> counts;
    for (int epoch = 0; epoch < 24'000; ++epoch) ++counts[epoch_order(4, 9, epoch)];
    CHECK(counts.size() == 24);
    double square = 0;
    for (const auto& [order, count] : counts) square += (count - 1000.0) * (count - 1000.0) / 1000.0;
    CHECK(square < 49.7);  // chi-square of 23 degrees, one in a thousand
  }

  TEST_CASE("the same bits for any number of threads, any parts, and after any beginning") {
    const Set set;
    const ImageSet images = set.open();
    Augmentation augmentation{.size = 6, .crop = Crop::padded, .padding = 2, .flip = 0.5};
    augmentation.rand_augment = parse_rand_augment("rand-m9-mstd0.5-inc1");
    augmentation.erasing.probability = 0.5;
    constexpr std::int64_t examples = 61;  // in the third epoch, and no whole number of batches
    for (const Mixing& mixing :
         {Mixing{}, Mixing{.mixup = 0.8, .cutmix = 1, .smoothing = 0.1F}, Mixing{.mixup = 0.2, .larger_share = true}}) {
      const Read wanted = read(images, augmentation, mixing, {.batch = 8, .seed = 5, .threads = 0}, examples);
      REQUIRE(wanted.labels.size() == examples);
      CHECK(wanted.targets.empty() == (mixing.mixup == 0));
      for (const std::int64_t threads : {0, 1, 4})
        for (const std::int64_t part : {0, 1, 3, 8})
          CHECK(read(images, augmentation, mixing,
                     {.batch = 8, .part = part, .seed = 5, .threads = threads, .ahead = 3}, examples) == wanted);
      // In the middle of an epoch, of a batch, and where nothing is left.
      for (const std::int64_t begin : {3, 8, 27, 48, 57, 60, 61}) {
        const Read rest = read(images, augmentation, mixing,
                               {.batch = 8, .part = 3, .begin = begin, .seed = 5, .threads = 2}, examples);
        const auto left = static_cast<std::size_t>(examples - begin);
        CHECK(rest.pixels == tail(wanted.pixels, 36 * left));
        CHECK(rest.labels == tail(wanted.labels, left));
        CHECK(rest.positions == tail(wanted.positions, left));
        CHECK(rest.targets == tail(wanted.targets, wanted.targets.empty() ? 0 : 3 * left));
      }
      CHECK(read(images, augmentation, mixing, {.batch = 8, .seed = 6}, examples).pixels != wanted.pixels);
    }
    // An image looks different in every epoch.
    std::set<std::vector<float>> seen;
    for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
      std::vector<float> pixels(36);
      augment_image(images, 7, augmentation, 5, epoch, pixels);
      std::vector<float> again(36);
      augment_image(images, 7, augmentation, 5, epoch, again);
      CHECK(pixels == again);
      seen.insert(pixels);
    }
    CHECK(seen.size() > 10);
  }

  TEST_CASE("images are mixed with the one before, targets likewise") {
    const Set set;
    const ImageSet images = set.open();
    const LoaderOptions options{.batch = 4, .shuffled = false, .seed = 2};
    const Read mixed = read(images, plain, {.mixup = 1, .smoothing = 0.3F}, options, 10);
    REQUIRE(mixed.targets.size() == 30);
    for (std::size_t i = 0; i < 10; ++i) {
      const std::size_t batch = i / 4 * 4;
      const std::size_t before = i > batch ? i - 1 : std::min<std::size_t>(batch + 3, 9);
      // The share follows from the pixels: 10 (a i + (1 - a) before).
      const double share = (static_cast<double>(mixed.pixels[36 * i]) / 10 - static_cast<double>(before)) /
                           (static_cast<double>(i) - static_cast<double>(before));
      CAPTURE(i);
      CHECK(share > 0);
      CHECK(share < 1);
      double sum = 0;
      for (std::size_t c = 0; c < 3; ++c) {
        const double one = (i % 3 == c ? share : 0) + (before % 3 == c ? 1 - share : 0);
        CHECK(static_cast<double>(mixed.targets[3 * i + c]) == doctest::Approx(0.7 * one + 0.1).epsilon(1e-4));
        sum += static_cast<double>(mixed.targets[3 * i + c]);
      }
      CHECK(sum == doctest::Approx(1).epsilon(1e-5));
      CHECK(mixed.labels[i] == static_cast<std::int64_t>(i % 3));
    }
    const Read cut = read(images, plain, {.cutmix = 1}, options, 20);
    int changed = 0;
    for (std::size_t i = 0; i < 20; ++i) {
      const std::size_t batch = i / 4 * 4;
      const std::size_t before = i > batch ? i - 1 : batch + 3;
      const auto pixels = std::span<const float>(cut.pixels).subspan(36 * i, 36);
      const auto own =
          std::ranges::count_if(pixels, [&](float pixel) { return number_of(pixel) == static_cast<std::int64_t>(i); });
      const auto other = std::ranges::count_if(
          pixels, [&](float pixel) { return number_of(pixel) == static_cast<std::int64_t>(before); });
      CHECK(own + other == 36);
      changed += other > 0;
      if (i % 3 != before % 3)
        CHECK(cut.targets[3 * i + i % 3] == doctest::Approx(static_cast<double>(own) / 36).epsilon(1e-5));
    }
    CHECK(changed > 4);
    const Read soft = read(images, plain, {}, {.batch = 4, .shuffled = false, .soft_targets = true}, 2);
    CHECK(soft.targets == std::vector<float>{1, 0, 0, 0, 1, 0});
  }

  TEST_CASE("an image that cannot be read is fatal and named, or replaced and counted") {
    const TemporaryDirectory directory;
    for (int i = 0; i < 12; ++i)
      write_file(directory.path() / (i < 6 ? "a" : "b") / (std::to_string(100 + i) + ".png"),
                 i == 3 || i == 4
                     ? "no image"
                     : png_of(Image{6, 6, std::vector<std::uint8_t>(108, static_cast<std::uint8_t>(10 * i))}));
    const ImageSet set = ImageSet::open(directory.path().string());
    for (const std::int64_t threads : {0, 3}) {
      Loader loader(set, plain, {}, {.batch = 4, .part = 2, .shuffled = false, .threads = threads});
      CHECK(loader.next() != nullptr);
      check_error([&] { loader.next(); }, {"a/103.png", "neither a JPEG nor a PNG"});
      check_error([&] { loader.next(); }, {"a/103.png"});  // and stays so

      Loader skipping(set, plain, {},
                      {.batch = 6, .end = 24, .shuffled = false, .threads = threads, .skip_corrupt = true});
      std::vector<std::int64_t> numbers;
      while (const LabelledBatch* batch = skipping.next())
        for (std::int64_t i = 0; i < batch->images; ++i)
          numbers.push_back(number_of(batch->pixels[static_cast<std::size_t>(108 * i)]));
      const std::vector<std::int64_t> once{0, 1, 2, 5, 5, 5, 6, 7, 8, 9, 10, 11};
      REQUIRE(numbers.size() == 24);
      CHECK(std::equal(once.begin(), once.end(), numbers.begin()));
      CHECK(std::equal(once.begin(), once.end(), numbers.begin() + 12));
      const std::vector<SkippedImage> skipped = skipping.skipped();
      REQUIRE(skipped.size() == 2);
      CHECK(skipped[0].name == (directory.path() / "a" / "103.png").string());
      CHECK(skipped[1].reason.find("a/104.png is neither") != std::string::npos);
    }
    for (int i = 0; i < 12; ++i)
      write_file(directory.path() / (i < 6 ? "a" : "b") / (std::to_string(100 + i) + ".png"), "no image");
    // What was read before was kept.
    Loader hopeless(ImageSet::open(directory.path().string()), plain, {}, {.batch = 4, .skip_corrupt = true});
    check_error([&] { hopeless.next(); }, {"12 images after one another cannot be used", "neither"});
  }

  TEST_CASE("options that do not fit are refused") {
    const Set set;
    const ImageSet images = set.open();
    const auto refused = [&](const Augmentation& augmentation, const Mixing& mixing, const LoaderOptions& options) {
      try {
        Loader(images, augmentation, mixing, options);
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string("accepted");
    };
    CHECK(refused(plain, {}, {}) == "accepted");
    check_contains(refused(plain, {}, {.batch = 0}), {"the batch is 0", "from 1 to"});
    check_contains(refused(plain, {}, {.batch = 4, .part = 5}), {"a part of the batch is 5", "from 1 to 4"});
    check_contains(refused(plain, {}, {.threads = -1}), {"threads is -1"});
    check_contains(refused(plain, {}, {.ahead = 0}), {"ahead is 0"});
    check_contains(refused(plain, {}, {.begin = -1}), {"begin at is -1"});
    check_contains(refused(plain, {}, {.begin = 9, .end = 8}), {"end at example 8", "begin at 9"});
    check_contains(refused(plain, {.mixup = -1}, {}), {"mixup is -1"});
    check_contains(refused(plain, {.mixup = std::nan("")}, {}), {"mixup is"});
    check_contains(refused(plain, {.smoothing = 1.5F}, {}), {"label smoothing is 1.5", "from 0 to 1"});
    check_contains(refused({.size = 0}, {}, {}), {"size is 0"});
    check_contains(refused({.size = 6, .area_min = 0.5, .area_max = 0.25}, {}, {}), {"area_min is 0.5", "to 0.25"});
    check_contains(refused({.size = 6, .flip = 2}, {}, {}), {"flip is 2"});
    check_contains(refused({.size = 6, .deviation{0, 1, 1}}, {}, {}), {"deviation is 0"});
    Loader small(images, {.size = 12, .crop = Crop::padded, .padding = 2}, {}, {});
    check_error([&] { small.next(); }, {"image", "6 x 6", "12 x 12"});
    std::vector<float> room(35);
    check_error([&] { augment_image(images, 0, plain, 0, 0, room); }, {"36 values", "room for 35"});
  }

  TEST_CASE("a loader that nobody reads to the end stops, and its times are told") {
    const Set set;
    const ImageSet images = set.open();
    for (int i = 0; i < 20; ++i) {
      Loader loader(images, plain, {}, {.batch = 7, .threads = 3, .ahead = 2});
      for (int taken = 0; taken < i % 4; ++taken) CHECK(loader.next()->images == 7);
      Loader moved = std::move(loader);
      CHECK(moved.next() != nullptr);
    }
    Loader loader(images, plain, {}, {.batch = 7});
    CHECK(loader.times().total == 0);
    loader.next();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    loader.next();
    const LoaderTimes times = loader.times();
    CHECK(times.total >= 0.02);
    CHECK(times.waited > 0);
    CHECK(times.waited <= times.total - 0.02);
  }
}
