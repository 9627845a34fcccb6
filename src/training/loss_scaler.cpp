#include <sylvit/error.hpp>
#include <sylvit/training.hpp>

#include <algorithm>
#include <cmath>

#include "training/numbers.hpp"

namespace sylvit {

namespace {

void require(bool good, const char* name, double value) {
  if (!good) throw Error("a loss scaler's " + std::string(name) + " cannot be " + std::to_string(value));
}

bool is_positive(float value) { return value > 0 && std::isfinite(value); }

std::string name_of_scale(std::size_t index) { return "scale." + std::to_string(index); }

}  // namespace

LossScaler::LossScaler(const LossScalerOptions& options) : options_(options) {
  require(is_positive(options.least), "smallest scale", options.least);
  require(is_positive(options.most) && options.most >= options.least, "largest scale", options.most);
  require(options.first >= options.least && options.first <= options.most, "first scale", options.first);
  require(options.growth >= 1 && std::isfinite(options.growth), "growth", options.growth);
  require(options.backoff > 0 && options.backoff <= 1, "backoff", options.backoff);
  require(options.interval > 0, "interval", static_cast<double>(options.interval));
  require(options.delay >= 0 && options.delay <= 1000, "delay", static_cast<double>(options.delay));
  scales_.assign(static_cast<std::size_t>(options.delay) + 1, options.first);
}

float LossScaler::scale(std::int64_t update) const {
  const std::int64_t wanted = std::max<std::int64_t>(0, update - options_.delay);
  const std::int64_t age = seen_ - wanted;
  if (age < 0)
    throw Error("the loss scale of update " + std::to_string(update) + " depends on the metrics of update " +
                    std::to_string(wanted - 1) + ", and those of " + std::to_string(seen_) + " updates were seen",
                "read them and give them to LossScaler::see() first");
  if (age > options_.delay)
    throw Error("the loss scale of update " + std::to_string(update) + " is forgotten: the metrics of " +
                std::to_string(seen_) + " updates were seen");
  return scales_[static_cast<std::size_t>(options_.delay - age)];
}

void LossScaler::see(const StepMetrics& metrics) {
  if (metrics.update != seen_)
    throw Error("the loss scaler was given the metrics of update " + std::to_string(metrics.update) +
                " and waits for those of update " + std::to_string(seen_));
  float scale = scales_.back();
  // What was on its way when the scale changed says nothing about the new one, unless even less was too much.
  if (!metrics.applied && metrics.loss_scale <= scale) {
    scale = std::max(options_.least, metrics.loss_scale * options_.backoff);
    in_a_row_ = 0;
  } else if (metrics.applied && metrics.loss_scale == scale && ++in_a_row_ == options_.interval) {
    scale = std::min(options_.most, scale * options_.growth);
    in_a_row_ = 0;
  }
  ++seen_;
  scales_.pop_front();
  scales_.push_back(scale);
}

std::map<std::string, double> LossScaler::state() const {
  std::map<std::string, double> state{{"seen", static_cast<double>(seen_)},
                                      {"in_a_row", static_cast<double>(in_a_row_)}};
  for (std::size_t i = 0; i < scales_.size(); ++i) state[name_of_scale(i)] = static_cast<double>(scales_[i]);
  return state;
}

void LossScaler::restore(const std::map<std::string, double>& state) {
  training::NumberReader numbers(state, "the loss scaler");
  LossScaler restored(options_);
  restored.seen_ = numbers.count("seen");
  restored.in_a_row_ = numbers.count("in_a_row");
  for (std::size_t i = 0; i < scales_.size(); ++i) restored.scales_[i] = numbers.scale(name_of_scale(i));
  numbers.finish();
  *this = restored;
}

}  // namespace sylvit
