// The one exception type of the library: what failed, on which device, and what to do about it.
#pragma once

#include <sylvit/export.hpp>

#include <stdexcept>
#include <string>

namespace sylvit {

/// Thrown by every function of the library that cannot do its work. `what()` is one readable sentence (two where there
/// is advice); the parts are kept apart for programs that show them in their own way.
///
/// Threads: a value, to be read by any number of them at once.
class SYLVIT_API Error : public std::runtime_error {
 public:
  /// Makes the sentence "failure (on device); advice".
  explicit Error(std::string failure, std::string advice = {}, std::string device = {})
      : std::runtime_error(sentence(failure, advice, device)),
        failure_(std::move(failure)),
        advice_(std::move(advice)),
        device_(std::move(device)) {}

  /// What failed, without a full stop.
  const std::string& failure() const noexcept { return failure_; }
  /// What the user can do; may be empty.
  const std::string& advice() const noexcept { return advice_; }
  /// The device it happened on; empty when no device was involved.
  const std::string& device() const noexcept { return device_; }

 private:
  static std::string sentence(const std::string& failure, const std::string& advice, const std::string& device) {
    std::string text = failure;
    if (!device.empty()) text += " (on " + device + ")";
    if (!advice.empty()) text += "; " + advice;
    return text;
  }

  std::string failure_;
  std::string advice_;
  std::string device_;
};

}  // namespace sylvit
