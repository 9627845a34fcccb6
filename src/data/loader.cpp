#include <sylvit/data.hpp>
#include <sylvit/error.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "augment/random.hpp"
#include "data/augmenter.hpp"
#include "data/mix.hpp"
#include "data/require_number.hpp"

namespace sylvit {

std::vector<std::int32_t> epoch_order(std::int64_t images, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(images));
  std::iota(order.begin(), order.end(), 0);
  augment::Random random{seed, static_cast<std::uint64_t>(data::Purpose::order), static_cast<std::uint64_t>(epoch)};
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

namespace {

using Clock = std::chrono::steady_clock;
using data::Augmenter;
using data::Mix;

/// The orders of the epochs that are being read.
class Orders {
 public:
  Orders(std::int64_t images, const LoaderOptions& options) : images_(images), options_(options) {}

  /// The image at a position of an epoch.
  std::int64_t at(std::int64_t epoch, std::int64_t position) {
    if (!options_.shuffled) return position;
    return (*order(epoch))[static_cast<std::size_t>(position)];
  }

 private:
  std::shared_ptr<const std::vector<std::int32_t>> order(std::int64_t epoch) {
    const std::lock_guard lock(mutex_);
    auto& found = orders_[epoch];
    if (!found) found = std::make_shared<const std::vector<std::int32_t>>(epoch_order(images_, options_.seed, epoch));
    const auto result = found;
    // A batch lies in two epochs at most, unless the set is smaller than that.
    constexpr std::size_t most = 4;
    if (orders_.size() > most)
      orders_.erase(orders_.begin()->first == epoch ? std::prev(orders_.end()) : orders_.begin());
    return result;
  }

  std::int64_t images_;
  LoaderOptions options_;
  std::mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<const std::vector<std::int32_t>>> orders_;
};

/// Which examples a part is made of.
struct Plan {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t batch_first = 0;
  std::int64_t batch_count = 0;
};

LoaderOptions checked(LoaderOptions options, const ImageSet& set) {
  using data::require_number;
  constexpr double most = 1 << 30;
  if (options.part == 0) options.part = options.batch;
  require_number("the batch", static_cast<double>(options.batch), 1, most);
  require_number("a part of the batch", static_cast<double>(options.part), 1, static_cast<double>(options.batch));
  require_number("the number of threads", static_cast<double>(options.threads), 0, 1024);
  require_number("the number of parts ahead", static_cast<double>(options.ahead), 1, 1024);
  require_number("the position to begin at", static_cast<double>(options.begin), 0, 0x1p53);
  if (options.end >= 0 && options.end < options.begin)
    throw Error("batches cannot end at example " + std::to_string(options.end) + " and begin at " +
                std::to_string(options.begin));
  if (options.end < 0) options.end = std::numeric_limits<std::int64_t>::max();
  if (set.size() > std::numeric_limits<std::int32_t>::max())
    throw Error(set.source() + " has " + std::to_string(set.size()) + " images, more than can be shuffled");
  return options;
}

}  // namespace

struct Loader::State {
  /// A part on its way.
  struct Slot {
    Plan plan;
    Mix mix;
    LabelledBatch batch;
    std::vector<float> before_pixels;   // of the image before the first, where images are mixed
    std::vector<float> before_targets;  // of the same
    std::int64_t claimed = 0;           // images that somebody prepares, or has
    std::int64_t prepared = 0;
    bool ready = false;
    std::exception_ptr error;
    std::int64_t error_at = 0;

    bool mixed() const { return !mix.does_nothing() && plan.batch_count > 1; }
    /// The image before the first is the last.
    std::int64_t images() const { return plan.count + (mixed() ? 1 : 0); }
  };

  State(const ImageSet& images, const Augmentation& augmentation, const Mixing& how, const LoaderOptions& given)
      : set(images),
        options(checked(given, images)),
        mixing(how),
        size(augmentation.size),
        augmenter(images, augmentation),
        orders(images.size(), options),
        soft(how.mixup > 0 || how.cutmix > 0 || how.smoothing > 0 || given.soft_targets ||
             images.target_kind() != TargetKind::one),
        next_first(options.begin) {
    mixing.check();
    chunk = std::max<std::int64_t>(1, 32768 / static_cast<std::int64_t>(augmenter.values()));
    for (std::int64_t i = 0; i < options.threads; ++i) threads.emplace_back([this] { work(); });
  }

  ~State() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    to_work.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // ---- what a part is, whoever prepares it

  std::size_t classes() const { return static_cast<std::size_t>(set.classes()); }

  /// Opens the next part; false after the last. With the lock held.
  bool open_slot() {
    if (next_first >= options.end) return false;
    Plan plan{.first = next_first};
    plan.batch_first = next_first / options.batch * options.batch;
    plan.batch_count = std::min(options.batch, options.end - plan.batch_first);
    const std::int64_t within = next_first - plan.batch_first;
    plan.count = std::min(plan.batch_count, (within / options.part + 1) * options.part) - within;
    next_first += plan.count;
    std::unique_ptr<Slot> slot = spare ? std::move(spare) : std::make_unique<Slot>();
    slot->plan = plan;
    slot->mix = data::draw_mix(mixing, options.seed, plan.batch_first / options.batch, size);
    slot->claimed = slot->prepared = 0;
    slot->ready = false;
    slots.push_back(std::move(slot));
    return true;
  }

  /// Makes room for the images, or leaves an error in the slot. With the lock held.
  bool allocate(Slot& slot) {
    try {
      make_room(slot);
      return true;
    } catch (...) {
      slot.error = std::current_exception();
      slot.claimed = slot.images();
      slot.ready = true;
      to_user.notify_one();
      return false;
    }
  }

  void make_room(Slot& slot) const {
    LabelledBatch& batch = slot.batch;
    batch.position = slot.plan.first;
    batch.images = slot.plan.count;
    const auto count = static_cast<std::size_t>(slot.plan.count);
    batch.pixels.resize(count * augmenter.values());
    batch.labels.resize(count);
    batch.targets.resize(soft ? count * classes() : 0);
    slot.before_pixels.resize(slot.mixed() ? augmenter.values() : 0);
    slot.before_targets.resize(slot.mixed() ? classes() : 0);
  }

  /// Pixels, label and target of a slot's image i. With i = count, the image before the first.
  void prepare(Slot& slot, std::int64_t i) {
    const Plan& plan = slot.plan;
    const bool is_before = i == plan.count;
    std::int64_t example = plan.first + i;
    if (is_before) example = plan.first > plan.batch_first ? plan.first - 1 : plan.batch_first + plan.batch_count - 1;
    const auto at = static_cast<std::size_t>(i);
    const std::span<float> pixels =
        is_before ? std::span(slot.before_pixels)
                  : std::span(slot.batch.pixels).subspan(at * augmenter.values(), augmenter.values());
    const std::int64_t index = prepare_pixels(example, pixels);
    if (!is_before) slot.batch.labels[at] = set.label(index);
    if (soft)
      write_target(index, is_before ? std::span(slot.before_targets)
                                    : std::span(slot.batch.targets).subspan(at * classes(), classes()));
  }

  /// Returns which image it was.
  std::int64_t prepare_pixels(std::int64_t example, std::span<float> pixels) {
    constexpr std::int64_t most_skipped = 100;
    const std::int64_t epoch = example / set.size();
    const std::int64_t position = example % set.size();
    for (std::int64_t skip = 0;; ++skip) {
      const std::int64_t index = orders.at(epoch, (position + skip) % set.size());
      try {
        augmenter.run(index, options.seed, epoch, pixels);
        return index;
      } catch (const Error& error) {
        if (!options.skip_corrupt) throw;
        if (skip + 1 == std::min(most_skipped, set.size()))
          throw Error(std::to_string(skip + 1) +
                      " images after one another cannot be used; the last one: " + error.what());
        const std::lock_guard lock(mutex);
        skipped.emplace(index, error.what());
      }
    }
  }

  void write_target(std::int64_t index, std::span<float> row) const {
    std::ranges::fill(row, 0.0F);
    for (const ClassWeight& one : set.target(index)) row[static_cast<std::size_t>(one.number)] = one.weight;
    if (mixing.smoothing == 0) return;
    const float off = mixing.smoothing / static_cast<float>(classes());
    for (float& value : row) value = (1 - mixing.smoothing) * value + off;
  }

  /// From the last to the first, so that every neighbour is still as it was.
  void mix(Slot& slot) const {
    const std::size_t values = augmenter.values();
    const auto part = [](std::vector<float>& all, std::size_t i, std::size_t count) {
      return std::span(all).subspan(i * count, count);
    };
    LabelledBatch& batch = slot.batch;
    for (auto i = static_cast<std::size_t>(slot.plan.count); i-- > 0;) {
      data::mix_pixels(part(batch.pixels, i, values),
                       i > 0 ? part(batch.pixels, i - 1, values) : std::span(slot.before_pixels), size, slot.mix);
      data::mix_targets(part(batch.targets, i, classes()),
                        i > 0 ? part(batch.targets, i - 1, classes()) : std::span(slot.before_targets), slot.mix);
    }
  }

  // ---- who does what

  struct Claim {
    Slot* slot = nullptr;
    std::int64_t first = 0;
    std::int64_t count = 0;
  };

  /// Images that nobody prepares yet. With the lock held.
  std::optional<Claim> claim() {
    while (true) {
      for (const auto& slot : slots) {
        if (slot->claimed == slot->images()) continue;
        if (slot->claimed == 0 && !allocate(*slot)) continue;
        Claim claim{slot.get(), slot->claimed, std::min(chunk, slot->images() - slot->claimed)};
        slot->claimed += claim.count;
        return claim;
      }
      // The one that the user holds counts, too.
      if (static_cast<std::int64_t>(slots.size()) > options.ahead || !open_slot()) return std::nullopt;
    }
  }

  /// Does what was claimed; called without the lock, and returns with it.
  void fulfil(const Claim& claim, std::unique_lock<std::mutex>& lock) {
    Slot& slot = *claim.slot;
    std::exception_ptr error;
    std::int64_t error_at = 0;
    for (std::int64_t i = claim.first; i < claim.first + claim.count && !error; ++i) try {
        prepare(slot, i);
      } catch (...) {
        error = std::current_exception();
        error_at = i;
      }
    lock.lock();
    // Of several errors, the same one whichever thread was first.
    if (error && (!slot.error || error_at < slot.error_at)) {
      slot.error = error;
      slot.error_at = error_at;
    }
    slot.prepared += claim.count;
    if (slot.prepared < slot.images()) return;
    if (slot.mixed() && !slot.error) {
      lock.unlock();
      mix(slot);
      lock.lock();
    }
    slot.ready = true;
    to_user.notify_one();
  }

  void work() {
    std::unique_lock lock(mutex);
    while (!stop) {
      if (const auto claimed = claim()) {
        lock.unlock();
        fulfil(*claimed, lock);
      } else {
        to_work.wait(lock);
      }
    }
  }

  const LabelledBatch* next() {
    const Clock::time_point now = Clock::now();
    if (!started) started = now;
    std::unique_lock lock(mutex);
    if (held) {
      spare = std::move(slots.front());
      slots.pop_front();
      held = false;
      to_work.notify_all();
    }
    if (slots.empty() && !open_slot()) return nullptr;
    to_work.notify_all();
    while (!slots.front()->ready) {
      if (options.threads > 0) {
        to_user.wait(lock);
      } else if (const auto claimed = claim()) {
        lock.unlock();
        fulfil(*claimed, lock);
      }
    }
    waited += std::chrono::duration<double>(Clock::now() - now).count();
    if (slots.front()->error) std::rethrow_exception(slots.front()->error);
    held = true;
    return &slots.front()->batch;
  }

  ImageSet set;
  LoaderOptions options;
  Mixing mixing;
  std::int64_t size;
  Augmenter augmenter;
  Orders orders;
  bool soft;
  std::int64_t chunk = 1;  // images that a thread takes at once

  mutable std::mutex mutex;
  std::condition_variable to_work, to_user;
  std::deque<std::unique_ptr<Slot>> slots;  // in order; the first is the user's while `held`
  std::unique_ptr<Slot> spare;
  std::int64_t next_first;
  bool held = false;
  bool stop = false;
  std::map<std::int64_t, std::string> skipped;

  std::optional<Clock::time_point> started;
  double waited = 0;
  std::vector<std::thread> threads;
};

Loader::Loader(const ImageSet& set, const Augmentation& augmentation, const Mixing& mixing,
               const LoaderOptions& options)
    : state_(std::make_unique<State>(set, augmentation, mixing, options)) {}
Loader::~Loader() = default;
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;

const LabelledBatch* Loader::next() { return state_->next(); }

std::vector<SkippedImage> Loader::skipped() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<SkippedImage> all;
  for (const auto& [index, reason] : state_->skipped) all.push_back({state_->set.name(index), reason});
  return all;
}

LoaderTimes Loader::times() const noexcept {
  if (!state_->started) return {};
  return {std::chrono::duration<double>(Clock::now() - *state_->started).count(), state_->waited};
}

}  // namespace sylvit
