#include <sylvit/data.hpp>
#include <sylvit/error.hpp>

#include <algorithm>
#include <atomic>
#include <map>

#include "data/source.hpp"
#include "io/messages.hpp"

namespace sylvit {

namespace {

using data::Labels;
using data::Source;

/// Decoded images that were asked for before, as many as there is room for.
class KeptImages {
 public:
  KeptImages(std::int64_t images, std::int64_t bytes)
      : images_(bytes > 0 ? static_cast<std::size_t>(images) : 0), room_(bytes) {}
  ~KeptImages() {
    for (const std::atomic<const Image*>& image : images_) delete image.load();
  }
  KeptImages(const KeptImages&) = delete;
  KeptImages& operator=(const KeptImages&) = delete;

  /// Null when it is not there.
  const Image* find(std::int64_t index) const {
    return images_.empty() ? nullptr : images_[static_cast<std::size_t>(index)].load(std::memory_order_acquire);
  }

  void keep(std::int64_t index, const Image& image) {
    const auto bytes = static_cast<std::int64_t>(image.pixels.size() + sizeof image);
    if (images_.empty() || room_.load() < bytes) return;
    if (room_.fetch_sub(bytes) < bytes) {
      room_ += bytes;
      return;
    }
    auto kept = std::make_unique<const Image>(image);
    const Image* none = nullptr;
    if (images_[static_cast<std::size_t>(index)].compare_exchange_strong(none, kept.get()))
      static_cast<void>(kept.release());
    else
      room_ += bytes;  // another thread was faster
  }

 private:
  std::vector<std::atomic<const Image*>> images_;
  std::atomic<std::int64_t> room_;
};

/// Finds the set's classes among those of the set that a model was trained with.
void renumber(Source& source, const std::vector<std::string>& wanted, const std::string& name) {
  std::map<std::string_view, std::int32_t> numbers;
  for (std::size_t i = 0; i < wanted.size(); ++i) numbers.emplace(wanted[i], static_cast<std::int32_t>(i));
  std::vector<std::int32_t> own;
  for (const std::string& known : source.classes) {
    const auto found = numbers.find(known);
    if (found == numbers.end())
      throw Error(name + " has a class " + io::in_quotes(known) + ", which is none of the " +
                  std::to_string(wanted.size()) + " classes that were asked for, " + io::in_quotes(wanted.front()) +
                  " and so on");
    own.push_back(found->second);
  }
  source.labels.renumber(own);
}

std::vector<std::int64_t> count(const Labels& labels, std::int64_t classes) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes));
  for (std::int64_t i = 0; i < labels.images(); ++i)
    for (const std::int32_t number : labels.of(i)) ++counts[static_cast<std::size_t>(number)];
  return counts;
}

/// A set of its own has several classes, and images of each.
void check_classes(const Source& source, const std::vector<std::string>& names, const std::string& name) {
  const auto classes = static_cast<std::int64_t>(names.size());
  if (classes < 2)
    throw Error(name + " has one class only, " + io::in_quotes(names.front()) + ": there is nothing to tell apart");
  const std::vector<std::int64_t> counts = count(source.labels, classes);
  const auto empty = std::ranges::count(counts, 0);
  if (empty == 0) return;
  const auto first = static_cast<std::size_t>(std::ranges::find(counts, 0) - counts.begin());
  throw Error(name + " has no images of " + std::to_string(empty) + " of its " + std::to_string(classes) +
              " classes: class " + std::to_string(first) +
              (source.classes.empty() ? "" : ", " + io::in_quotes(names[first]) + ",") +
              (empty > 1 ? " is the first" : " is empty"));
}

}  // namespace

struct ImageSet::State {
  std::string source;
  Source set;
  std::vector<std::string> classes;
  std::int64_t channels = 3;
  mutable KeptImages kept;

  void check(std::int64_t index) const {
    if (index < 0 || index >= set.labels.images())
      throw Error(source + " has no image " + std::to_string(index) + ": there are " +
                  std::to_string(set.labels.images()));
  }
};

ImageSet ImageSet::open(const std::string& name, const ImageSetOptions& options) {
  if (options.channels != 0 && options.channels != 1 && options.channels != 3)
    throw Error("images have 1 or 3 channels, not " + std::to_string(options.channels));
  Source source = data::open_source(name);
  const Labels& labels = source.labels;
  if (labels.images() == 0) throw Error(name + " holds no images");
  const auto image_name = [&](std::int64_t index) { return source.images->name(index); };
  std::vector<std::string> classes = options.classes.empty() ? source.classes : options.classes;
  if (classes.empty())
    for (std::int64_t i = 0; i <= labels.largest(); ++i) classes.push_back(std::to_string(i));
  if (!source.classes.empty()) {
    labels.check(static_cast<std::int64_t>(source.classes.size()), image_name);
    if (!options.classes.empty()) renumber(source, options.classes, name);
  }
  labels.check(static_cast<std::int64_t>(classes.size()), image_name);
  if (classes.empty()) throw Error(name + ": not one image has a class");
  if (options.classes.empty()) check_classes(source, classes, name);
  const std::int64_t channels = options.channels != 0 ? options.channels : source.images->channels();
  const std::int64_t kept = source.images->worth_keeping() ? options.memory : 0;
  ImageSet set;
  const std::int64_t images = labels.images();
  set.state_.reset(new State{name, std::move(source), std::move(classes), channels, {images, kept}});
  return set;
}

const std::string& ImageSet::source() const noexcept { return state_->source; }
std::string_view ImageSet::kind() const noexcept { return state_->set.kind; }
std::int64_t ImageSet::size() const noexcept { return state_->set.labels.images(); }
std::int64_t ImageSet::classes() const noexcept { return static_cast<std::int64_t>(state_->classes.size()); }
const std::vector<std::string>& ImageSet::class_names() const noexcept { return state_->classes; }
std::int64_t ImageSet::channels() const noexcept { return state_->channels; }
std::array<std::int64_t, 2> ImageSet::extents() const noexcept { return state_->set.images->extents(); }
TargetKind ImageSet::target_kind() const noexcept { return state_->set.labels.kind(); }

std::vector<ClassWeight> ImageSet::target(std::int64_t index) const {
  state_->check(index);
  const std::span<const std::int32_t> numbers = state_->set.labels.of(index);
  const std::span<const float> weights = state_->set.labels.weights_of(index);
  std::vector<ClassWeight> target;
  for (std::size_t i = 0; i < numbers.size(); ++i) target.push_back({numbers[i], weights.empty() ? 1 : weights[i]});
  std::ranges::sort(target, {}, &ClassWeight::number);
  return target;
}

std::int64_t ImageSet::label(std::int64_t index) const {
  state_->check(index);
  if (target_kind() == TargetKind::one) return state_->set.labels.of(index).front();
  const std::vector<ClassWeight> target = this->target(index);
  const auto largest = std::ranges::max_element(target, {}, &ClassWeight::weight);
  return largest == target.end() ? -1 : largest->number;
}

std::vector<std::int64_t> ImageSet::histogram() const { return count(state_->set.labels, classes()); }

std::string ImageSet::name(std::int64_t index) const {
  state_->check(index);
  return state_->set.images->name(index);
}

Image ImageSet::image(std::int64_t index) const {
  state_->check(index);
  if (const Image* kept = state_->kept.find(index)) return *kept;
  Image image = with_channels(state_->set.images->image(index), channels());
  state_->kept.keep(index, image);
  return image;
}

std::array<std::int64_t, 2> ImageSet::extents(std::int64_t index) const {
  state_->check(index);
  return state_->set.images->extents(index);
}

std::string ImageSet::fingerprint() const {
  data::Fingerprint fingerprint;
  for (const std::string& name : class_names()) fingerprint.add(name);
  fingerprint.add(static_cast<std::uint64_t>(size()));
  for (std::int64_t i = 0; i < size(); ++i) {
    for (const std::int32_t number : state_->set.labels.of(i)) fingerprint.add(static_cast<std::uint64_t>(number) + 1);
    for (const float weight : state_->set.labels.weights_of(i))
      fingerprint.add(std::uint64_t{std::bit_cast<std::uint32_t>(weight)});
    if (target_kind() != TargetKind::one) fingerprint.add(std::uint64_t{0});
  }
  state_->set.images->add_to(fingerprint);
  return fingerprint.text();
}

}  // namespace sylvit
