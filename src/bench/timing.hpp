// How the bench commands take times.
#pragma once

#include <sylvit/pass.hpp>

#include <algorithm>
#include <chrono>
#include <vector>

namespace sylvit::bench {

/// Times of one piece of work, in milliseconds.
class Times {
 public:
  void add(double ms) { all_.push_back(ms); }
  double best() const { return *std::ranges::min_element(all_); }
  double median() const { return quantile(0.5); }
  /// Half of them, for instance, are no longer than quantile(0.5).
  double quantile(double share) const {
    std::vector<double> sorted = all_;
    std::ranges::sort(sorted);
    return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
  }
  std::size_t count() const { return all_.size(); }
  /// In the order in which they were taken.
  const std::vector<double>& all() const { return all_; }

 private:
  std::vector<double> all_;
};

/// How many forward passes a pass counts as: of each product, the backward pass has two. The optimiser has none.
constexpr double forward_passes_of(Pass pass) { return pass == Pass::forward ? 1 : 3; }

template <class Work>
double milliseconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace sylvit::bench
