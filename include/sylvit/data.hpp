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

}  // namespace sylvit
