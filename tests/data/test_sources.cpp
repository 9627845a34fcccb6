// Every kind of source gives its images and labels; what is wrong with one is said in a sentence.
#include <sylvit/data.hpp>
#include <sylvit/error.hpp>

#include <cstdio>
#include <numeric>
#include <set>
#include <thread>

#include "data/source_files.hpp"
#include "io/npz_writer.hpp"
#include "io/safetensors.hpp"
#include "support.hpp"

using namespace sylvit;
using namespace sylvit::test;

namespace {

namespace fs = std::filesystem;

using Targets = std::vector<ClassWeight>;

/// What opening the source says.
std::string refusal(const fs::path& source, const ImageSetOptions& options = {}) {
  try {
    ImageSet::open(source.string(), options);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::vector<std::int64_t> labels_of(const ImageSet& set) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < set.size(); ++i) labels.push_back(set.label(i));
  return labels;
}

/// Images are numbered_image()s of these numbers.
void check_images(const ImageSet& set, const std::vector<int>& numbers) {
  REQUIRE(set.size() == static_cast<std::int64_t>(numbers.size()));
  for (std::int64_t i = 0; i < set.size(); ++i) {
    const Image image = set.image(i);
    const Image wanted =
        numbered_image(numbers[static_cast<std::size_t>(i)], image.height, image.width, image.channels);
    CAPTURE(set.name(i));
    CHECK(image.pixels == wanted.pixels);
    CHECK(set.extents(i) == std::array{image.height, image.width});
    CHECK(set.image(i).pixels == wanted.pixels);  // from what was kept
  }
}

/// Two classes of two images each.
void write_folder(const fs::path& folder) {
  write_file(folder / "dog" / "b.png", png_of(numbered_image(3)));
  write_file(folder / "dog" / "a.png", png_of(numbered_image(2, 9, 4)));
  write_file(folder / "cat" / "z.PNG", png_of(numbered_image(1)));
  write_file(folder / "cat" / "10.png", png_of(numbered_image(0)));
}

/// A sample of a shard.
Files sample(const std::string& key, int number, const std::string& label) {
  return {{key + ".png", png_of(numbered_image(number))}, {key + ".cls", label}};
}

std::string shard_of(int first, const std::vector<std::string>& labels) {
  Files members;
  for (const std::string& label : labels) {
    for (auto& member : sample("set/" + std::to_string(first), first, label)) members.push_back(std::move(member));
    ++first;
  }
  return tar_of(members);
}

/// Images of 2 x 3 with these numbers, and their labels.
std::string idx_images(const std::vector<int>& numbers) {
  std::string pixels;
  for (const int number : numbers) {
    const Image image = numbered_image(number, 2, 3, 1);
    pixels.append(image.pixels.begin(), image.pixels.end());
  }
  return idx_of({static_cast<std::uint32_t>(numbers.size()), 2, 3}, pixels);
}

std::string npy_bytes(const std::vector<std::int64_t>& shape, const std::string& elements) {
  return npy_of(npy_dict("|u1", shape), elements);
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string npy_labels(const std::vector<std::int64_t>& values) {
  return npy_of(npy_dict("<i8", {static_cast<std::int64_t>(values.size())}), raw(values));
}

std::string pixels_of(const Image& image) { return {image.pixels.begin(), image.pixels.end()}; }

}  // namespace

TEST_SUITE("data/sources") {
  TEST_CASE("a folder of classes, sorted by name") {
    const TemporaryDirectory directory;
    write_folder(directory.path());
    write_file(directory.path() / ".hidden" / "x.png", "no image");
    write_file(directory.path() / "dog" / ".DS_Store", "");
    write_file(directory.path() / "dog" / "notes.txt", "no image");
    write_file(directory.path() / "README", "about it");
    const ImageSet set = ImageSet::open(directory.path().string());
    CHECK(set.kind() == "a folder of classes");
    CHECK(set.class_names() == std::vector<std::string>{"cat", "dog"});
    CHECK(labels_of(set) == std::vector<std::int64_t>{0, 0, 1, 1});
    CHECK(set.histogram() == std::vector<std::int64_t>{2, 2});
    CHECK(set.target_kind() == TargetKind::one);
    CHECK(set.target(2) == Targets{{1, 1}});
    CHECK(set.channels() == 3);
    CHECK(set.extents() == std::array<std::int64_t, 2>{0, 0});
    CHECK(set.extents(2) == std::array<std::int64_t, 2>{9, 4});
    CHECK(set.name(0) == (directory.path() / "cat" / "10.png").string());
    check_images(set, {0, 1, 2, 3});
    check_error([&] { set.image(4); }, {"no image 4", "there are 4"});
    check_error([&] { set.label(-1); }, {"no image -1"});
  }

  TEST_CASE("grey is made of colours, and colours of grey") {
    const TemporaryDirectory directory;
    write_folder(directory.path());
    const ImageSet set = ImageSet::open(directory.path().string(), {.channels = 1});
    const Image grey = set.image(0);
    CHECK(set.channels() == 1);
    CHECK(grey.channels == 1);
    const Image colours = numbered_image(0);
    REQUIRE(grey.pixels.size() == 35);
    for (std::size_t i = 0; i < 35; ++i) {
      const double exact =
          0.299 * colours.pixels[3 * i] + 0.587 * colours.pixels[3 * i + 1] + 0.114 * colours.pixels[3 * i + 2];
      CHECK(std::abs(grey.pixels[i] - exact) < 0.51);
    }
    write_file(directory.path() / "mnist" / "train-images-idx3-ubyte", idx_images({0, 1}));
    write_file(directory.path() / "mnist" / "train-labels-idx1-ubyte", idx_of({2}, bytes_of(0, 1)));
    const ImageSet mnist = ImageSet::open((directory.path() / "mnist:train").string(), {.channels = 3});
    CHECK(mnist.image(1).pixels == with_channels(numbered_image(1, 2, 3, 1), 3).pixels);
    check_error([&] { ImageSet::open(directory.path().string(), {.channels = 2}); }, {"1 or 3 channels, not 2"});
  }

  TEST_CASE("a folder off by a level, and classes that are none, are refused with what was meant") {
    const TemporaryDirectory directory;
    const fs::path root = directory.path();
    write_folder(root / "set" / "train");
    write_folder(root / "set" / "test");
    check_contains(refusal(root / "set"), {"one level further down", "train/cat", "did you mean", "set:train?"});
    CHECK(refusal(root / "set:train") == "accepted");
    CHECK(refusal(root / "set" / "train") == "accepted");
    check_contains(refusal(root / "set:val"), {"set has no val"});
    check_contains(refusal(root), {"hold no files that end in"});
    fs::create_directories(root / "none");
    check_contains(refusal(root / "none"), {"neither folders of images nor any other"});
    check_contains(refusal(root / "set" / "train" / "cat"),
                   {"cat holds images", "10.png", "did you mean", "set/train?"});
    check_contains(refusal(root / "nothing"), {"there is no", "nothing"});
    check_contains(refusal(root / "set" / "train" / "cat" / "10.png"), {"is one image"});

    fs::create_directories(root / "set" / "test" / "empty");
    check_contains(refusal(root / "set:test"), {"class \"empty\"", "has no images"});
    fs::remove(root / "set" / "test" / "empty");
    fs::remove_all(root / "set" / "test" / "dog");
    check_contains(refusal(root / "set:test"), {"one class only, \"cat\""});
    write_file(root / "set" / "train" / "cat" / "kittens" / "1.png", png_of(numbered_image(1)));
    check_contains(refusal(root / "set:train"), {"train/cat", "also a folder of images, kittens"});
    fs::remove_all(root / "set" / "train" / "cat" / "kittens");
    write_file(root / "set" / "train" / "stray.png", png_of(numbered_image(1)));
    check_contains(refusal(root / "set:train"), {"beside its folders of classes", "stray.png"});
    write_file(root / "other" / "a" / "text", "no image");
    check_contains(refusal(root / "other"), {"hold no files that end in"});
  }

  TEST_CASE("a set of other classes is numbered by those of the training set") {
    const TemporaryDirectory directory;
    write_folder(directory.path());
    const std::vector<std::string> classes{"bird", "dog", "cat"};
    const ImageSet set = ImageSet::open(directory.path().string(), {.classes = classes});
    CHECK(set.classes() == 3);
    CHECK(set.class_names() == classes);
    CHECK(labels_of(set) == std::vector<std::int64_t>{2, 2, 1, 1});
    CHECK(set.histogram() == std::vector<std::int64_t>{0, 2, 2});
    check_contains(refusal(directory.path(), {.classes = {"bird", "cat"}}),
                   {"a class \"dog\"", "none of the 2 classes", "\"bird\""});
    // One class is enough there, and numbers need only be in range.
    fs::remove_all(directory.path() / "dog");
    CHECK(refusal(directory.path(), {.classes = classes}) == "accepted");
    write_file(directory.path() / "list", "cat/10.png 2\n");
    CHECK(labels_of(ImageSet::open((directory.path() / "list").string(), {.classes = classes})) ==
          std::vector<std::int64_t>{2});
    write_file(directory.path() / "list", "cat/10.png 3\n");
    check_contains(refusal(directory.path() / "list", {.classes = classes}), {"10.png", "label 3", "3 classes"});
  }

  TEST_CASE("a file that is missing, corrupt or no image is named when it is read") {
    const TemporaryDirectory directory;
    write_folder(directory.path());
    const std::string good = read_file(directory.path() / "dog" / "b.png");
    write_file(directory.path() / "dog" / "b.png", good.substr(0, good.size() / 2));
    write_file(directory.path() / "dog" / "c.jpg", "no image");
    write_file(directory.path() / "dog" / "d.jpg", "");
    const ImageSet set = ImageSet::open(directory.path().string());
    check_error([&] { set.image(3); }, {"dog/b.png", "corrupt"});
    check_error([&] { set.image(4); }, {"dog/c.jpg", "neither a JPEG nor a PNG"});
    check_error([&] { set.image(5); }, {"dog/d.jpg", "empty"});
    fs::remove(directory.path() / "dog" / "a.png");
    check_error([&] { set.image(2); }, {"cannot open", "dog/a.png"});
    check_error([&] { set.fingerprint(); }, {"dog/a.png"});
    fs::create_symlink("/dev/zero", directory.path() / "dog" / "e.png");
    const ImageSet hostile = ImageSet::open(directory.path().string());
    check_error([&] { hostile.image(5); }, {"dog/e.png", "neither a JPEG nor a PNG"});
  }

  TEST_CASE("a list of paths and labels") {
    const TemporaryDirectory directory;
    write_folder(directory.path());
    const fs::path list = directory.path() / "train.tsv";
    write_file(list, "dog/b.png\t1\r\n\r\ncat/10.png\t0\r\n");
    const ImageSet set = ImageSet::open(list.string());
    CHECK(set.kind() == "a list");
    CHECK(labels_of(set) == std::vector<std::int64_t>{1, 0});
    CHECK(set.class_names() == std::vector<std::string>{"0", "1"});
    check_images(set, {3, 0});
    CHECK(labels_of(ImageSet::open((directory.path() / "x").parent_path().string() + ":train")) ==
          std::vector<std::int64_t>{1, 0});

    write_file(directory.path() / "classes.txt", "first\nsecond\n");
    CHECK(ImageSet::open(list.string()).class_names() == std::vector<std::string>{"first", "second"});
    write_file(directory.path() / "classes.txt", "first\n");
    check_contains(refusal(list), {"dog/b.png", "label 1", "1 classes"});
    fs::remove(directory.path() / "classes.txt");

    fs::rename(directory.path() / "dog" / "a.png", directory.path() / "dog" / "a dog.png");
    write_file(list, "dog/b.png wolf\ndog/a dog.png   dog\ncat/10.png cat");
    const ImageSet named = ImageSet::open(list.string());
    CHECK(named.class_names() == std::vector<std::string>{"cat", "dog", "wolf"});
    CHECK(labels_of(named) == std::vector<std::int64_t>{2, 1, 0});
    CHECK(named.extents(1) == std::array<std::int64_t, 2>{9, 4});

    write_file(list, "dog/b.png 2,0\ncat/10.png 1\ncat/z.PNG 1,1,2\n");
    const ImageSet several = ImageSet::open(list.string());
    CHECK(several.target_kind() == TargetKind::several);
    CHECK(several.target(0) == Targets{{0, 1}, {2, 1}});
    CHECK(several.target(1) == Targets{{1, 1}});
    CHECK(several.target(2) == Targets{{1, 1}, {2, 1}});
    CHECK(several.histogram() == std::vector<std::int64_t>{1, 2, 2});

    write_file(list, "dog/b.png 0\ncat/10.png\n");
    check_contains(refusal(list), {"line 2", "train.tsv", "\"cat/10.png\"", "a path, a tab or spaces, and a label"});
    write_file(list, "dog/b.png 0\ncat/none.png 2\n");
    check_contains(refusal(list), {"no images of 1 of its 3 classes", "class 1", "is empty"});
    write_file(list, "b.png 0\ncat/10.png 1\n");
    check_contains(refusal(list), {"b.png", "does not exist", "relative to the list"});
    write_file(list, "dog/b.png -1\ncat/10.png 1\n");
    check_contains(refusal(list), {"dog/b.png", "the label -1"});
    write_file(list, "dog/b.png 99999999999\ncat/10.png 1\n");
    check_contains(refusal(list), {"dog/b.png", "the label 99999999999"});
    write_file(list, "");
    check_contains(refusal(list), {"train.tsv is empty"});
    write_file(list, "\n\n");
    check_contains(refusal(list), {"train.tsv lists no images"});
    write_file(list, std::string("a\0b", 3));
    check_contains(refusal(list), {"train.tsv is no text file"});
    check_contains(refusal("/dev/zero"), {"/dev/zero is not a regular file"});
  }

  TEST_CASE("tar shards") {
    const TemporaryDirectory directory;
    const fs::path root = directory.path();
    write_file(root / "train-000.tar", shard_of(0, {"1", "0\n"}));
    write_file(root / "train-001.tar", shard_of(2, {"2"}));
    write_file(root / "val-000.tar", shard_of(3, {"0", "1", "2"}));
    check_contains(refusal(root), {"comes split", ":train or", ":val"});
    const ImageSet set = ImageSet::open(root.string() + ":train");
    CHECK(set.kind() == "tar shards");
    CHECK(labels_of(set) == std::vector<std::int64_t>{1, 0, 2});
    CHECK(set.name(2) == (root / "train-001.tar").string() + ": set/2.png");
    check_images(set, {0, 1, 2});
    CHECK(ImageSet::open(root.string() + ":validation").size() == 3);
    CHECK(ImageSet::open((root / "val-000.tar").string()).size() == 3);
    CHECK(ImageSet::open((root / "train-{000..001}.tar").string()).size() == 3);
    CHECK(ImageSet::open((root / "{train-000,val-000,train-001}.tar").string()).label(2) == 0);
    check_contains(refusal(root / "train-{000..002}.tar"), {"train-002.tar does not exist"});
    check_contains(refusal(root / "train-{0..99999999}.tar"), {"braces"});
    check_contains(refusal(root / "train-{a..b}.tar"), {"braces"});
    check_contains(refusal(root.string() + ":test"), {"no shards of test", ":train or"});
    write_file(root / "classes.txt", "a\nb\nc\n");
    CHECK(ImageSet::open(root.string() + ":train").class_names() == std::vector<std::string>{"a", "b", "c"});
    fs::remove(root / "classes.txt");

    const fs::path shard = root / "one" / "shard.tar";
    // Put together with cat, and with an entry's long name.
    write_file(shard, shard_of(0, {"0", "1"}) + shard_of(2, {"1"}) +
                          tar_of(sample(std::string(300, 'x') + "/" + std::string(120, 'y'), 3, "0")));
    check_images(ImageSet::open(shard.string()), {0, 1, 2, 3});

    const std::string png = png_of(numbered_image(7));
    const auto with = [&](const Files& more) {
      Files members = sample("0", 0, "0");
      for (const auto& member : sample("1", 1, "1")) members.push_back(member);
      members.insert(members.end(), more.begin(), more.end());
      write_file(shard, tar_of(members));
      return refusal(shard);
    };
    CHECK(with({{"2.json", R"({"label": 1, "w": 3})"}, {"2.png", png}, {"2.txt", "a dog"}}) == "accepted");
    CHECK(labels_of(ImageSet::open(shard.string())) == std::vector<std::int64_t>{0, 1, 1});
    CHECK(with({{"2.json", R"({"w": 3})"}, {"2.cls", "0"}, {"2.seg.png", "other"}, {"2.png", png}}) == "accepted");
    CHECK(with({{"2.png", png}, {"2.json", R"({"labels": [2, 0]})"}}) == "accepted");
    CHECK(ImageSet::open(shard.string()).target(2) == Targets{{0, 1}, {2, 1}});
    CHECK(with({{"2.png", png}, {"2.cls", "2 1,0"}}) == "accepted");
    CHECK(ImageSet::open(shard.string()).target(2).size() == 3);
    check_contains(with({{"2.png", png}}), {"shard.tar: the sample \"2\" has no label", "2.cls"});
    check_contains(with({{"2.png", png}, {"2.json", "no json"}}), {"\"2\" has no label"});
    check_contains(with({{"2.cls", "1"}, {"3.png", png}}), {"\"2\" has a label, and no"});
    check_contains(with({{"2.png", png}, {"2.jpg", png}, {"2.cls", "1"}}), {"two images, 2.png and 2.jpg"});
    check_contains(with({{"2.png", png}, {"2.cls", "dog"}}), {"2.cls holds \"dog\""});
    check_contains(with({{"2.png", png}, {"2.cls", "1.5"}}), {"2.cls holds"});
    check_contains(with({{"2.png", png}, {"2.json", R"({"label": 1.5})"}}), {"2.json: its label is no whole number"});
    check_contains(with({{"2.png", png}, {"2.cls", "-3"}}), {"\"2\" has the label -3"});
    write_file(shard, tar_of({{"a.txt", "b"}}));
    check_contains(refusal(shard), {"holds no JPEG or PNG files"});
    write_file(root / "packed.tar.gz", gzip_of(shard_of(0, {"0", "1"})));
    check_contains(refusal(root / "packed.tar.gz"), {"packed tar file", "unpack it"});
  }

  TEST_CASE("a shard that ends early is refused, wherever it ends") {
    const TemporaryDirectory directory;
    const fs::path shard = directory.path() / "shard.tar";
    const std::string whole = shard_of(0, {"0", "1", "1"});
    REQUIRE(whole.size() % 512 == 0);
    REQUIRE(whole.substr(whole.size() - 1024) == std::string(1024, '\0'));
    for (std::size_t size = 0; size < whole.size() - 512; size += size % 512 == 511 || size % 512 == 0 ? 1 : 510) {
      write_file(shard, whole.substr(0, size));
      const std::string sentence = refusal(shard);
      CAPTURE(size);
      CHECK(sentence.find("shard.tar") != std::string::npos);
    }
    // And one whose bytes are not those of a tar file.
    std::string changed = whole;
    changed[1024 + 156] = 'x';
    write_file(shard, changed);
    check_contains(refusal(shard), {"shard.tar"});
    write_file(shard, std::string(4096, 'x'));
    check_contains(refusal(shard), {"shard.tar is corrupt or ends early"});
  }

  TEST_CASE("MNIST's files, plain and packed") {
    const TemporaryDirectory directory;
    const fs::path root = directory.path() / "mnist";
    const std::string images = idx_images({0, 1, 2, 3});
    const std::string labels = idx_of({4}, bytes_of(2, 0, 1, 2));
    write_file(root / "train-images-idx3-ubyte", images);
    write_file(root / "train-labels-idx1-ubyte", labels);
    write_file(root / "t10k-images-idx3-ubyte.gz", gzip_of(idx_images({4, 5, 6})));
    write_file(root / "t10k-labels-idx1-ubyte.gz", gzip_of(idx_of({3}, bytes_of(0, 1, 2))));
    const ImageSet train = ImageSet::open(root.string() + ":train");
    CHECK(train.kind() == "MNIST's files");
    CHECK(train.channels() == 1);
    CHECK(train.extents() == std::array<std::int64_t, 2>{2, 3});
    CHECK(train.class_names() == std::vector<std::string>{"0", "1", "2"});
    CHECK(labels_of(train) == std::vector<std::int64_t>{2, 0, 1, 2});
    CHECK(train.name(3) == "image 3 of " + (root / "train-images-idx3-ubyte").string());
    check_images(train, {0, 1, 2, 3});
    check_images(ImageSet::open(root.string() + ":test"), {4, 5, 6});
    check_contains(refusal(root), {"comes split", ":train or", ":test"});
    check_contains(refusal(root.string() + ":val"), {"no images of val", ":train or"});
    check_contains(refusal(root / "train-images-idx3-ubyte"), {"one file of a set", "mnist"});
    write_file(root / "classes.txt", "shirt\nshoe\nbag\n");
    CHECK(ImageSet::open(root.string() + ":test").class_names() == std::vector<std::string>{"shirt", "shoe", "bag"});
    fs::remove(root / "classes.txt");

    // One packed, the other not; and both.
    write_file(root / "train-images-idx3-ubyte.gz", gzip_of(images));
    check_images(ImageSet::open(root.string() + ":train"), {0, 1, 2, 3});
    fs::remove(root / "train-images-idx3-ubyte");
    check_images(ImageSet::open(root.string() + ":train"), {0, 1, 2, 3});
    CHECK(ImageSet::open(root.string() + ":train").fingerprint() == train.fingerprint());

    const fs::path packed = root / "train-images-idx3-ubyte.gz";
    const auto with_images = [&](const std::string& content) {
      write_file(packed, content);
      return refusal(root.string() + ":train");
    };
    const std::string gz = gzip_of(images);
    for (std::size_t size = 1; size < gz.size(); ++size)
      check_contains(with_images(gz.substr(0, size)), {"train-images-idx3-ubyte.gz"});
    check_contains(with_images(images), {"no .gz file"});
    check_contains(with_images(gzip_of(images.substr(0, 39))), {"39 bytes", "asks for 40"});
    check_contains(with_images(gzip_of(images + "x")), {"more than the 40 bytes"});
    check_contains(with_images(gzip_of(idx_of({4, 6}, std::string(24, 'x')))), {"no IDX file", "3 axes"});
    check_contains(with_images(gzip_of(images.substr(0, 8))), {"too few"});
    check_contains(with_images(gzip_of(idx_of({4000000000U, 4000000000U, 4000000000U}, "x"))), {"claims to hold"});
    check_contains(with_images(gzip_of(idx_of({4000000000U, 100, 100}, "x"))), {"17 bytes", "asks for"});
    check_contains(with_images(gzip_of(idx_of({4, 0, 3}, ""))), {"holds no pixels"});
    // A megabyte that unpacks to a gigabyte is left alone after the bytes that the header asks for.
    const std::string bomb = gzip_of(idx_of({4, 2, 3}, std::string(std::size_t{1} << 28U, '\0')));
    CHECK(bomb.size() < std::size_t{1} << 20U);
    check_contains(with_images(bomb), {"more than the 40 bytes"});
    check_contains(with_images(gzip_of(idx_images({0, 1, 2}))), {"3 images", "4 labels"});
    fs::remove(root / "train-labels-idx1-ubyte");
    check_contains(with_images(gz), {"train-labels-idx1-ubyte", "does not exist"});
  }

  TEST_CASE("CIFAR's binary files") {
    const TemporaryDirectory directory;
    const auto record = [](const std::string& labels, int number) {
      const Image image = numbered_image(number, 32, 32, 3);
      std::string planes;
      for (std::size_t c = 0; c < 3; ++c)
        for (std::size_t i = 0; i < 1024; ++i) planes += static_cast<char>(image.pixels[3 * i + c]);
      return labels + planes;
    };
    const fs::path ten = directory.path() / "cifar10";
    write_file(ten / "data_batch_1.bin", record(bytes_of(1), 0) + record(bytes_of(0), 1));
    write_file(ten / "data_batch_2.bin", record(bytes_of(2), 2));
    write_file(ten / "test_batch.bin", record(bytes_of(0), 3) + record(bytes_of(1), 4) + record(bytes_of(2), 5));
    write_file(ten / "batches.meta.txt", "airplane\nautomobile\nbird\n\n");
    const ImageSet train = ImageSet::open(ten.string() + ":train");
    CHECK(train.kind() == "CIFAR's binary files");
    CHECK(train.channels() == 3);
    CHECK(train.class_names() == std::vector<std::string>{"airplane", "automobile", "bird"});
    CHECK(labels_of(train) == std::vector<std::int64_t>{1, 0, 2});
    CHECK(train.name(2) == "image 0 of " + (ten / "data_batch_2.bin").string());
    check_images(train, {0, 1, 2});
    check_images(ImageSet::open(ten.string() + ":test"), {3, 4, 5});
    check_contains(refusal(ten), {"comes split", ":train or"});
    write_file(ten / "data_batch_2.bin", record(bytes_of(3), 2));
    check_contains(refusal(ten.string() + ":train"), {"data_batch_2.bin", "label 3", "3 classes"});
    write_file(ten / "data_batch_2.bin", record(bytes_of(2), 2).substr(1));
    check_contains(refusal(ten.string() + ":train"), {"data_batch_2.bin", "3072 bytes", "3073"});

    const fs::path hundred = directory.path() / "cifar100";
    write_file(hundred / "train.bin", record(bytes_of(9, 1), 0) + record(bytes_of(9, 0), 1));
    write_file(hundred / "fine_label_names.txt", "apple\nbear\n");
    const ImageSet fine = ImageSet::open(hundred.string() + ":train");
    CHECK(fine.class_names() == std::vector<std::string>{"apple", "bear"});
    CHECK(labels_of(fine) == std::vector<std::int64_t>{1, 0});
    check_images(fine, {0, 1});
  }

  TEST_CASE("arrays in .npz and safetensors files") {
    const TemporaryDirectory directory;
    const fs::path npz = directory.path() / "set.npz";
    const Image a = numbered_image(0, 2, 4, 1);
    const Image b = numbered_image(1, 2, 4, 1);
    const std::string grey = pixels_of(a) + pixels_of(b);
    const auto open = [&](const Files& members, const std::string& split = "") {
      write_file(npz, npz_of(members, true));
      return ImageSet::open(npz.string() + split);
    };
    const std::string two = npy_labels({1, 0});
    const ImageSet set = open({{"images", npy_bytes({2, 2, 4}, grey)}, {"labels", two}});
    CHECK(set.kind() == "an .npz file");
    CHECK(set.channels() == 1);
    CHECK(labels_of(set) == std::vector<std::int64_t>{1, 0});
    check_images(set, {0, 1});
    check_images(open({{"images", npy_bytes({2, 2, 4, 1}, grey)}, {"labels", two}}), {0, 1});
    check_images(open({{"images", npy_bytes({2, 1, 2, 4}, grey)}, {"labels", two}}), {0, 1});
    // Keras's names, and MedMNIST's.
    const Files keras{{"x_train", npy_bytes({2, 2, 4}, grey)}, {"y_train", npy_bytes({2}, bytes_of(0, 1))}};
    check_images(open(keras, ":train"), {0, 1});
    check_images(open({{"test_images", npy_bytes({2, 2, 4}, grey)},
                       {"test_labels", npy_of(npy_dict("<i4", {2, 1}), raw<std::int32_t>({0, 1}))}},
                      ":test"),
                 {0, 1});
    const auto refused = [&](const Files& members, const std::string& split = "") {
      write_file(npz, npz_of(members));
      return refusal(npz.string() + split);
    };
    check_contains(refused(keras), {"comes split", "set.npz:train"});
    check_contains(refused(keras, ":test"), {"has no test", "set.npz:train"});
    check_contains(refused({{"a", two}}), {"no arrays of images and labels", "it has \"a\""});
    check_contains(refused({{"images", npy_bytes({2, 8}, grey)}, {"labels", two}}), {"[2, 8]", "[N, height, width]"});
    check_contains(refused({{"images", npy_bytes({2, 2, 2, 2}, grey)}, {"labels", two}}), {"[2, 2, 2, 2]"});
    check_contains(refused({{"images", npy_bytes({0, 2, 4}, "")}, {"labels", npy_labels({})}}), {"no pixels"});
    check_contains(refused({{"images", npy_bytes({2, 2, 4}, grey)}, {"labels", npy_labels({1, 0, 1})}}),
                   {"\"labels\"", "[3]", "2 images"});
    check_contains(refused({{"images", npy_bytes({2, 2, 4}, grey)}, {"labels", npy_f32({2}, {0, 1})}}),
                   {"\"labels\"", "f32", "integers"});
    check_contains(refused({{"images", npy_bytes({2, 2, 4}, grey)}, {"labels", npy_labels({1, -7})}}), {"label -7"});
    check_contains(refused({{"images", npy_of(npy_dict("<i2", {2, 2, 4}), std::string(32, '\0'))}, {"labels", two}}),
                   {"\"images\"", "i16", "u8"});

    // Floating-point pixels, and soft labels.
    std::vector<float> shares;
    for (const char pixel : grey) shares.push_back(static_cast<float>(static_cast<unsigned char>(pixel)) / 255);
    const ImageSet soft = open({{"x", npy_f32({2, 2, 4}, shares)}, {"y", npy_f32({2, 3}, {0.25F, 0, 0.75F, 0, 1, 0})}});
    check_images(soft, {0, 1});
    CHECK(soft.target_kind() == TargetKind::soft);
    CHECK(soft.target(0) == Targets{{0, 0.25F}, {2, 0.75F}});
    CHECK(labels_of(soft) == std::vector<std::int64_t>{2, 1});
    const ImageSet several =
        open({{"images", npy_bytes({2, 2, 4}, grey)}, {"labels", npy_bytes({2, 3}, bytes_of(1, 0, 1, 0, 1, 0))}});
    CHECK(several.target_kind() == TargetKind::several);
    CHECK(several.target(0) == Targets{{0, 1}, {2, 1}});
    CHECK(several.target(1) == Targets{{1, 1}});
    CHECK(several.label(0) == 0);
    shares[5] = 17;
    check_contains(refused({{"x", npy_f32({2, 2, 4}, shares)}, {"y", two}}), {"\"x\"", "value 17", "0 to 1"});
    check_contains(refused({{"images", npy_bytes({2, 2, 4}, grey)}, {"labels", npy_f32({2, 2}, {0, 1, 2, 0})}}),
                   {"\"labels\"", "weight 2", "class 0"});
    check_contains(
        refused({{"images", npy_bytes({2, 2, 4}, grey)}, {"labels", npy_bytes({2, 2}, bytes_of(0, 1, 2, 0))}}),
        {"\"labels\"", "number 2"});
    write_file(npz, "no zip file");
    check_contains(refusal(npz), {"set.npz", "zip file"});

    const fs::path tensors = directory.path() / "set.safetensors";
    const Image colours = numbered_image(2, 2, 4, 3);
    std::string planes;
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t i = 0; i < 8; ++i) planes += static_cast<char>(colours.pixels[3 * i + c]);
    const std::vector<std::int64_t> numbers{1, 0};
    const std::string both = planes + planes;
    io::write_safetensors(
        tensors,
        std::vector<io::OutputTensor>{{"images", DType::u8, {2, 3, 2, 4}, std::as_bytes(std::span(both))},
                                      {"labels", DType::i64, {2}, std::as_bytes(std::span(numbers))}},
        {{"classes", "cat\ndog"}});
    const ImageSet stored = ImageSet::open(tensors.string());
    CHECK(stored.kind() == "a safetensors file");
    CHECK(stored.channels() == 3);
    CHECK(stored.class_names() == std::vector<std::string>{"cat", "dog"});
    CHECK(stored.target(0) == Targets{{1, 1}});
    check_images(stored, {2, 2});
  }

  TEST_CASE("a fingerprint tells sets apart, and not copies of a set") {
    const TemporaryDirectory directory;
    const auto print = [&](const std::string& name) {
      return ImageSet::open((directory.path() / name).string()).fingerprint();
    };
    std::set<std::string> seen;
    const fs::path a = directory.path() / "a";
    write_folder(a);
    write_folder(directory.path() / "b");
    CHECK(print("a").size() == 16);
    CHECK(print("a") == print("b"));
    seen.insert(print("a"));
    fs::rename(a / "dog" / "b.png", a / "dog" / "c.png");
    seen.insert(print("a"));
    fs::rename(a / "dog" / "c.png", a / "cat" / "c.png");
    seen.insert(print("a"));
    write_file(a / "cat" / "c.png", "longer or shorter");
    seen.insert(print("a"));
    fs::rename(a / "dog", a / "wolf");
    seen.insert(print("a"));
    CHECK(seen.size() == 5);

    const auto arrays = [&](int number, std::vector<std::int64_t> labels) {
      const std::string pixels = pixels_of(numbered_image(0, 2, 4, 1)) + pixels_of(numbered_image(number, 2, 4, 1));
      write_file(directory.path() / "set.npz",
                 npz_of({{"images", npy_bytes({2, 2, 4}, pixels)}, {"labels", npy_labels(std::move(labels))}}));
      return print("set.npz");
    };
    CHECK(arrays(1, {0, 1}) == arrays(1, {0, 1}));
    CHECK(arrays(1, {0, 1}) != arrays(2, {0, 1}));
    CHECK(arrays(1, {0, 1}) != arrays(1, {1, 0}));
  }

  TEST_CASE("any number of threads read at once, with room to keep images or without") {
    const TemporaryDirectory directory;
    for (int i = 0; i < 60; ++i)
      write_file(directory.path() / (i % 2 == 0 ? "a" : "b") / (std::to_string(1000 + i) + ".png"),
                 png_of(numbered_image(i)));
    for (const std::int64_t memory : {std::int64_t{0}, std::int64_t{2000}, std::int64_t{1} << 20}) {
      const ImageSet set = ImageSet::open(directory.path().string(), {.memory = memory});
      std::vector<std::thread> threads;
      std::atomic<int> wrong = 0;
      for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
          for (std::int64_t i = 0; i < 120; ++i) {
            const std::int64_t index = (i * 7 + t * 13) % 60;
            const int number = static_cast<int>(index < 30 ? 2 * index : 2 * (index - 30) + 1);
            if (set.image(index).pixels != numbered_image(number).pixels) ++wrong;
          }
        });
      for (std::thread& thread : threads) thread.join();
      CHECK(wrong == 0);
    }
  }
}
