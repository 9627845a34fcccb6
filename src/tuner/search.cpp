#include "tuner/search.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>

namespace sylvit::tuner {

namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Contestant {
  Record record;
  double best_ms = std::numeric_limits<double>::infinity();
};

class Search {
 public:
  Search(Bench& bench, const Record& used, const SearchOptions& options) : bench_(bench), options_(options) {
    used_.record = used;
    result_.best = used;
  }

  SearchResult run(std::span<const Record> candidates) {
    const std::array one{used_.record};
    bench_.build(one);
    if (const std::string wrong = bench_.verify(used_.record); !wrong.empty())
      throw Error("the record in use for " + used_.record.kernel + " (" + used_.record.source() +
                  ") gives wrong results: " + wrong);
    bench_.run(used_.record);  // warm-up
    turn(used_);
    collect(candidates);
    halve();
    if (options_.stop()) return std::move(result_);
    decide();
    result_.finished = !options_.stop();
    return std::move(result_);
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void turn(Contestant& contestant) {
    contestant.best_ms = std::min(contestant.best_ms, bench_.run(contestant.record));
  }

  /// Builds, verifies and runs the candidates a few times, as many of them as half of the time allows.
  void collect(std::span<const Record> candidates) {
    for (std::size_t first = 0; first < candidates.size() && !options_.stop(); first += options_.batch) {
      if (first > 0 && elapsed() > options_.seconds / 2) break;
      const auto batch = candidates.subspan(first, std::min(options_.batch, candidates.size() - first));
      const std::size_t before = contestants_.size();
      for (const Record& record : built(batch)) admit(record);
      for (int round = 0; round < 2 && !options_.stop(); ++round)
        for (std::size_t i = before; i < contestants_.size() && !options_.stop(); ++i) {
          // Who is hopelessly slow is not run again.
          if (contestants_[i].best_ms < 2 * used_.best_ms || round == 0) turn(contestants_[i]);
          if (i % 8 == 0) turn(used_);
          tell();
        }
    }
  }

  /// Those of a batch that can be built. One bad kernel fails a batch, so then each is tried alone.
  std::vector<Record> built(std::span<const Record> batch) {
    try {
      bench_.build(batch);
      return {batch.begin(), batch.end()};
    } catch (const Error&) {
    }
    std::vector<Record> good;
    for (const Record& record : batch) {
      if (options_.stop()) break;
      try {
        bench_.build({&record, 1});
        good.push_back(record);
      } catch (const Error& error) {
        if (result_.unbuilt++ == 0) result_.remarks.emplace_back(std::string("not built: ") + error.what());
      }
    }
    return good;
  }

  void admit(const Record& record) {
    if (options_.stop()) return;
    if (record.numbers == used_.record.numbers && record.providers == used_.record.providers) return;
    try {
      if (const std::string wrong = bench_.verify(record); !wrong.empty()) {
        if (result_.wrong++ == 0) result_.remarks.push_back("wrong results: " + wrong);
        return;
      }
      bench_.run(record);  // warm-up
    } catch (const Error& error) {
      if (result_.unbuilt++ == 0) result_.remarks.emplace_back(std::string("not run: ") + error.what());
      return;
    }
    contestants_.push_back({record});
    ++result_.tried;
  }

  /// Rounds of turns; after each the slower half leaves. Those who stay have been measured more often.
  void halve() {
    std::size_t turns = 2;
    while (contestants_.size() > 1 && !options_.stop()) {
      std::ranges::sort(contestants_, {}, &Contestant::best_ms);
      contestants_.resize(std::max<std::size_t>(1, std::min(contestants_.size() / 2, std::size_t{16})));
      for (std::size_t i = 0; i < turns && !options_.stop(); ++i) {
        for (Contestant& contestant : contestants_) turn(contestant);
        turn(used_);
        tell();
      }
      ++turns;
    }
  }

  /// The winner and the record in use, from scratch.
  void decide() {
    std::vector<double> used_times;
    std::vector<double> ratios;
    const bool challenged = !contestants_.empty() && contestants_.front().best_ms < used_.best_ms;
    double spent_ms = 0;
    for (std::size_t i = 0; !options_.stop(); ++i) {
      if (i >= options_.finals && (spent_ms >= options_.finals_ms || i >= 10 * options_.finals || !challenged)) break;
      // Who goes first changes: the first of a pair may find a colder cache.
      const bool used_first = i % 2 == 0;
      double own = 0;
      if (used_first) own = bench_.run(used_.record);
      const double other = challenged ? bench_.run(contestants_.front().record) : 0;
      if (!used_first) own = bench_.run(used_.record);
      spent_ms += own + other;
      used_times.push_back(own);
      ratios.push_back(other / own);
    }
    if (used_times.empty()) return;
    result_.used_ms = median(used_times);
    result_.best_ms = result_.used_ms;
    // Turns won by more than two and a half standard deviations of a coin's: less than once in a hundred by luck.
    const auto turns = static_cast<double>(ratios.size());
    const auto won = static_cast<double>(std::ranges::count_if(ratios, [](double ratio) { return ratio < 1; }));
    if (!challenged || options_.stop() || median(ratios) > 1 - options_.margin ||
        won < turns / 2 + 1.25 * std::sqrt(turns))
      return;
    result_.best = contestants_.front().record;
    result_.best_ms = result_.used_ms * median(ratios);
    result_.improved = true;
  }

  void tell() const {
    double best = used_.best_ms;
    for (const Contestant& contestant : contestants_) best = std::min(best, contestant.best_ms);
    options_.progress(result_.tried, best, used_.best_ms);
  }

  Bench& bench_;
  const SearchOptions& options_;
  Clock::time_point start_ = Clock::now();
  Contestant used_;
  std::vector<Contestant> contestants_;
  SearchResult result_;
};

}  // namespace

SearchResult search(Bench& bench, const Record& used, std::span<const Record> candidates,
                    const SearchOptions& options) {
  return Search(bench, used, options).run(candidates);
}

bool keeps_up(Bench& other, const Record& used, const Record& winner) {
  constexpr int turns = 9;
  constexpr double most = 1.1;
  const std::array both{used, winner};
  try {
    other.build(both);
    if (!other.verify(winner).empty()) return false;
  } catch (const Error&) {
    return false;
  }
  std::vector<double> ratios;
  for (int turn = 0; turn < turns; ++turn) {
    const double before = other.run(used);
    ratios.push_back(other.run(winner) / before);
  }
  return median(ratios) <= most;
}

}  // namespace sylvit::tuner
