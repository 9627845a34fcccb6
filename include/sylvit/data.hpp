// Labelled images on their way to a model. A library of its own (sylvit::data, find_package's component `data`),
// because it needs sylvit::images and libarchive.
//
//     const ImageSet training = ImageSet::open("fashion-mnist:train");
//     const ImageSet test = ImageSet::open("fashion-mnist:test", {.classes = training.class_names()});
//
// A SOURCE is a path whose kind is recognised:
//     a folder of classes         one folder a class, with its JPEG and PNG files
//     tar shards                  a .tar file, a folder of them, or a name with braces ("train-{000..146}.tar"); a
//     sample
//                                 is KEY.jpg or KEY.png beside KEY.cls (numbers) or KEY.json ("label" or "labels")
//     MNIST's files               a folder with train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-…, plain or .gz
//     CIFAR's binary files        a folder with data_batch_1.bin … and test_batch.bin, or with train.bin and test.bin
//     .npz or .safetensors        arrays `images` and `labels` (or x_train and y_train, and the like): images [N,H,W],
//                                 [N,H,W,C] or [N,C,H,W], u8 or 0 to 1; labels [N], or soft or several ones [N,classes]
//     a list                      a text file with lines PATH LABEL, separated by a tab or spaces; several labels with
//                                 commas; paths are relative to the list
// Behind a source that comes split stands which part is meant: "PATH:train", "PATH:test". Names of numbered classes are
// taken from a file classes.txt beside the images, a line each.
#pragma once

#include <sylvit/export.hpp>
#include <sylvit/images.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sylvit {

/// What an image's target is made of.
enum class TargetKind : std::uint8_t {
  one,      ///< one class
  several,  ///< any number of classes, each as true as the others
  soft      ///< classes with weights
};

/// A class of an image, and how true it is.
struct ClassWeight {
  std::int32_t number = 0;  ///< the class
  float weight = 1;         ///< 1 unless the targets are soft

  /// Both are the same.
  friend bool operator==(const ClassWeight&, const ClassWeight&) = default;
};

/// How a set of images is opened.
struct ImageSetOptions {
  /// The classes' names in their order, of the set that a model was trained with. Named classes are looked for among
  /// them, and a class may then be without images. Empty: the set's own classes, of which each must have images.
  std::vector<std::string> classes = {};
  std::int64_t channels = 0;                     ///< of the images: 1 or 3; 0: as the source has them (files: 3)
  std::int64_t memory = std::int64_t{1} << 30U;  ///< bytes of decoded images that are kept
};

/// A set of labelled images. What is wrong with a source is an Error with one sentence that names it: one class, a
/// class without images, labels out of range, a class folder one level off, a shard that ends early.
///
/// Threads: a value whose copies share what was read, to be used by any number of threads at once.
class SYLVIT_API ImageSet {
 public:
  /// Reads what is needed to know every image and its label. Files named by the source may come from anywhere.
  static ImageSet open(const std::string& source, const ImageSetOptions& options = {});

  /// The source as it was given.
  const std::string& source() const noexcept;
  /// "a folder of classes", "tar shards", …
  std::string_view kind() const noexcept;
  /// How many images.
  std::int64_t size() const noexcept;
  /// How many classes.
  std::int64_t classes() const noexcept;
  /// What they are called: numbers, if the source has no names.
  const std::vector<std::string>& class_names() const noexcept;
  /// Of every image: 1 or 3.
  std::int64_t channels() const noexcept;
  /// Height and width of every image where the source has one size; zeros where each has its own.
  std::array<std::int64_t, 2> extents() const noexcept;

  /// What a target is made of.
  TargetKind target_kind() const noexcept;
  /// An image's classes, in ascending order; one, unless the kind says otherwise.
  std::vector<ClassWeight> target(std::int64_t index) const;
  /// The class with the largest weight, the first of several; -1 for an image without any.
  std::int64_t label(std::int64_t index) const;
  /// Images of each class.
  std::vector<std::int64_t> histogram() const;

  /// What the image is called in messages: its file, or file and number.
  std::string name(std::int64_t index) const;
  /// The image, decoded. Throws Error that names a file which is missing or corrupt.
  Image image(std::int64_t index) const;
  /// Height and width of an image, of whose file only the beginning is read.
  std::array<std::int64_t, 2> extents(std::int64_t index) const;

  /// A text that differs when names, sizes or labels of the images do; of arrays, also when pixels do (of large ones, a
  /// part of them is looked at). Looks up the size of every file.
  std::string fingerprint() const;

  /// What it holds.
  struct State;

 private:
  std::shared_ptr<const State> state_;
};

/// Which part of an image is taken.
enum class Crop : std::uint8_t {
  middle,     ///< timm's for evaluation: resized_and_cropped()
  inception,  ///< big_vision's inception_crop: random, resized
  resized,    ///< torchvision's and timm's RandomResizedCrop
  padded      ///< torchvision's RandomCrop with padding, for images that have the model's size already
};

/// How a random part is resized.
enum class CropResampling : std::uint8_t {
  plain_bilinear,  ///< big_vision's: without antialiasing
  bilinear,        ///< Pillow's
  bicubic,         ///< Pillow's
  random           ///< bilinear or bicubic, timm's default
};

/// Whose RandAugment. They differ in their operations, in what a level means, and in how images are turned.
enum class RandAugmentForm : std::uint8_t {
  none,        ///< nobody's
  big_vision,  ///< 16 operations, each that is drawn is applied; nearest pixels, grey where there is no image
  timm         ///< 15 operations with a probability; Pillow's interpolation, the mean where there is no image
};

/// RandAugment: some operations, each as strong as a level says.
struct RandAugment {
  RandAugmentForm form = RandAugmentForm::none;  ///< whose
  std::int64_t operations = 2;                   ///< for each image
  double level = 10;                             ///< how strong, as the libraries count it
  // big_vision's alone.
  double translate = 100;  ///< pixels at level 10, for images of 224
  double cutout = 40;      ///< half the size of what is cut out at level 10
  // timm's alone.
  double probability = 0.5;    ///< of each operation that was drawn
  double level_deviation = 0;  ///< of the level, around what it should be; infinite: uniform from 0
  double level_limit = 10;     ///< no level is higher
  bool increasing = false;     ///< higher levels change more, also where they did not in the first form
};

/// "randaug(2,10)" as big_vision, "rand-m9-mstd0.5-inc1" as timm spells it, or "none". Throws Error for others.
SYLVIT_API RandAugment parse_rand_augment(std::string_view text);

/// What a part of an image is overwritten with.
enum class EraseWith : std::uint8_t {
  zero,   ///< the mean of all images, that is
  color,  ///< a random colour
  noise   ///< a random colour for each pixel
};

/// timm's random erasing.
struct Erasing {
  double probability = 0;             ///< that an image loses something
  double area_min = 0.02;             ///< the share of the image's area, at least
  double area_max = 1.0 / 3;          ///< and at most
  double aspect_min = 0.3;            ///< of height to width; at most, its inverse
  std::int64_t count = 1;             ///< how many parts
  EraseWith with = EraseWith::noise;  ///< what they become
};

/// What is done to an image on its way to a model, in this order: crop, flip, RandAugment, normalisation, erasing.
struct Augmentation {
  std::int64_t size = 224;   ///< height and width that the model takes
  Crop crop = Crop::middle;  ///< which part
  double crop_pct = 0.9;     ///< of Crop::middle: ImageTransform::crop_pct
  // Of Crop::inception and Crop::resized.
  double area_min = 0.05;                               ///< the part's share of the area, at least
  double area_max = 1;                                  ///< and at most
  double aspect_min = 3.0 / 4;                          ///< its width over its height, at least
  double aspect_max = 4.0 / 3;                          ///< and at most
  CropResampling resampling = CropResampling::bicubic;  ///< how it is resized
  // Of Crop::padded.
  std::int64_t padding = 0;  ///< pixels on each side
  bool mirrored = false;     ///< they mirror the image instead of being black

  double flip = 0;                                   ///< the probability that left and right are exchanged
  RandAugment rand_augment = {};                     ///< some changes more
  std::array<float, 3> mean{0.5F, 0.5F, 0.5F};       ///< of each channel (grey: the first)
  std::array<float, 3> deviation{0.5F, 0.5F, 0.5F};  ///< of each channel (grey: the first)
  Erasing erasing = {};                              ///< what is overwritten in the end

  /// Throws Error naming a number that cannot be.
  void check() const;
};

/// An image of a set as a model takes it, [channels, size, size]. A pure function of all arguments: `epoch` and `index`
/// choose the random numbers. Room for the result is the caller's.
SYLVIT_API void augment_image(const ImageSet& set, std::int64_t index, const Augmentation& augmentation,
                              std::uint64_t seed, std::int64_t epoch, std::span<float> to);

/// Images of a batch mixed with one another. Each is mixed with the one before it in the batch, the first with the
/// last.
struct Mixing {
  double mixup = 0;             ///< p: a share of Beta(p, p) stays of every image, the rest is its neighbour; 0: none
  double cutmix = 0;            ///< the same, the rest a rectangle of its neighbour; 0: none
  double cutmix_instead = 0.5;  ///< the probability of cutmix where both are on
  double probability = 1;       ///< that a batch is mixed at all
  bool larger_share = false;    ///< big_vision: max(a, 1 - a) stays
  float smoothing = 0;          ///< s: targets become (1 - s) t + s / classes

  /// Throws Error naming a number that cannot be.
  void check() const;
};

/// How batches are made.
struct LoaderOptions {
  std::int64_t batch = 128;   ///< images that make a step together, and are mixed with one another
  std::int64_t part = 0;      ///< so many are handed out at once, as a part of a batch; 0: all
  std::int64_t begin = 0;     ///< examples that came before: after a resume, or for a part that is another's
  std::int64_t end = -1;      ///< examples after which there are no more; negative: never
  bool shuffled = true;       ///< each epoch in another order
  std::uint64_t seed = 0;     ///< of order, augmentation and mixing
  std::int64_t threads = 1;   ///< that prepare images; 0: none but the one that asks for them
  std::int64_t ahead = 2;     ///< parts that are prepared before they are asked for
  bool skip_corrupt = false;  ///< take the next image instead of one that cannot be read
  bool soft_targets = false;  ///< targets also where labels say it all
};

/// A batch, or a part of one.
struct LabelledBatch {
  std::int64_t position = 0;         ///< examples before its first image
  std::int64_t images = 0;           ///< how many
  std::vector<float> pixels;         ///< [images, channels, size, size]
  std::vector<std::int64_t> labels;  ///< [images]: ImageSet::label() of each, before mixing
  std::vector<float> targets;        ///< [images, classes]; empty where labels say it all
};

/// An image that could not be read, and was replaced by the next one.
struct SkippedImage {
  std::string name;    ///< ImageSet::name()
  std::string reason;  ///< the sentence of the error
};

/// Where the time of a loader's user went, in seconds since the first call of next().
struct LoaderTimes {
  double total = 0;   ///< until now
  double waited = 0;  ///< of that, inside next() for images that were not ready
};

/// Batches of a set, prepared ahead by threads of its own. What comes at which position is a pure function of set,
/// options and seed: the same bits for any number of threads, for any size of the parts, and wherever it begins. So a
/// run that is resumed needs nothing but the number of examples seen.
///
/// The order of an epoch is a permutation drawn from (seed, epoch); a batch may lie in two epochs.
///
/// Threads: a loader belongs to one thread at a time.
class SYLVIT_API Loader {
 public:
  /// Throws Error when the options do not fit each other or the set.
  Loader(const ImageSet& set, const Augmentation& augmentation, const Mixing& mixing, const LoaderOptions& options);
  ~Loader();
  /// Takes the loader over.
  Loader(Loader&&) noexcept;
  /// Takes the loader over.
  Loader& operator=(Loader&&) noexcept;

  /// The next part, valid until the call after; null after the last one. Throws Error that names an image that cannot
  /// be read, if those are not skipped (or if too many follow one another).
  const LabelledBatch* next();

  /// Images that were replaced so far, each of them once.
  std::vector<SkippedImage> skipped() const;
  /// How long next() had to wait.
  LoaderTimes times() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The images of an epoch in the order of a Loader.
SYLVIT_API std::vector<std::int32_t> epoch_order(std::int64_t images, std::uint64_t seed, std::int64_t epoch);

}  // namespace sylvit
