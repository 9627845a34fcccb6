// Finding the fastest of many records by measuring, on a machine that is never quiet.
//
//     build in batches  →  right results only  →  interleaved rounds, after each the slower half leaves
//                                              →  the winner and the record in use, alone, interleaved, from scratch
//
// Taking turns means that what slows the machine down slows all alike. The last pass is independent of the first, in
// which the winner may just have been lucky; only who wins that too, by a margin, replaces the record in use.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tuning/record.hpp"

namespace sylvit::tuner {

using namespace tuning;

/// Whoever knows how to run the work with a record.
class Bench {
 public:
  virtual ~Bench() = default;
  /// Builds the kernels of these records at once. Throws Error if one of them cannot be built.
  virtual void build(std::span<const Record> batch) = 0;
  /// What is wrong with the results; empty when they are right.
  virtual std::string verify(const Record& record) = 0;
  /// Runs the work once and waits for it. Milliseconds.
  virtual double run(const Record& record) = 0;
};

struct SearchOptions {
  double seconds = 60;      ///< for all of it; the last pass takes place in any case
  double margin = 0.02;     ///< a winner must be faster by this share, and in most of the last pass's turns
  std::size_t batch = 20;   ///< kernels that are built at once: the compiler's start dominates
  std::size_t finals = 21;  ///< turns in the last pass, at least
  double finals_ms = 2000;  ///< short work has more turns, up to ten times as many, until this time is used
  std::function<bool()> stop = [] { return false; };
  /// Gets the candidates tried so far, the best time and that of the record in use.
  std::function<void(std::size_t tried, double best_ms, double used_ms)> progress = [](std::size_t, double, double) {};
};

struct SearchResult {
  bool finished = false;  ///< false: it was stopped, and says nothing
  bool improved = false;  ///< `best` is not the record in use
  Record best;
  double used_ms = 0;                ///< of the record in use: the median of the last pass
  double best_ms = 0;                ///< that, times the median of the turns' ratios
  std::size_t tried = 0;             ///< measured
  std::size_t unbuilt = 0;           ///< that the compiler or the device refused
  std::size_t wrong = 0;             ///< whose results were wrong
  std::vector<std::string> remarks;  ///< one for each kind of refusal, for people
};

/// `used` is the record that serves the case now; it competes. Candidates are tried in their order, as far as the time
/// goes.
SearchResult search(Bench& bench, const Record& used, std::span<const Record> candidates, const SearchOptions& options);

/// Does the winner serve other work that its record would serve, too: with right results, and at most a tenth slower
/// than the record in use? A compiler may make vectors of one score's kernel and none of another's.
bool keeps_up(Bench& other, const Record& used, const Record& winner);

}  // namespace sylvit::tuner
