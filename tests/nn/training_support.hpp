// What the tests of a training step's kernels share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/kernel.hpp"
#include "support.hpp"
#include "tuning/variants.hpp"

namespace sylvit::test {

/// The device, with all kernels of a training step built in one batch.
inline const Device& training_device() {
  static const Device& ready = [&]() -> const Device& {
    std::vector<runtime::KernelName> kernels;
    for (const char* record : {"patch_rows", "tokens", "loss", "optimizer"}) {
      const auto some = tuning::variants_of(tuning::table_for(device().info()), record);
      kernels.insert(kernels.end(), some.begin(), some.end());
    }
    runtime::prepare(device(), kernels);
    return device();
  }();
  return ready;
}

/// Numbers of [-size, size] that look random, in a type.
template <class T>
std::vector<T> noise(std::int64_t count, std::uint32_t seed, float size = 2.0F) {
  std::vector<T> values;
  std::uint32_t state = seed * 2654435761U + 12345U;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    values.push_back(T((static_cast<float>(state >> 8U) / 8388608.0F - 1.0F) * size));
  }
  return values;
}

/// An output with bytes before and behind it that must stay as they are.
template <class T>
class Guarded {
 public:
  explicit Guarded(const Shape& shape)
      : Guarded(shape, std::vector<T>(static_cast<std::size_t>(shape.elements()), T(-77.0F))) {}
  Guarded(const Shape& shape, const std::vector<T>& values)
      : count_(values.size()),
        whole_(count_ + 2 * guard, {static_cast<std::int64_t>(count_ + 2 * guard)}),
        view_(whole_.data() + guard, dtype_of<T>, shape) {
    std::vector<T> all(count_ + 2 * guard, T(-77.0F));
    std::ranges::copy(values, all.begin() + guard);
    whole_.write(all);
  }

  const TensorView& view() const { return view_; }
  std::vector<T> read() const {
    const std::vector<T> all = whole_.read();
    int broken = 0;
    for (std::size_t i = 0; i < guard; ++i)
      if (static_cast<float>(all[i]) != -77.0F || static_cast<float>(all[guard + count_ + i]) != -77.0F) ++broken;
    CHECK_MESSAGE(broken == 0, "elements beside the output were written");
    return {all.begin() + guard, all.begin() + static_cast<std::ptrdiff_t>(guard + count_)};
  }

 private:
  static constexpr std::size_t guard = 64;
  std::size_t count_;
  OnDevice<T> whole_;
  TensorView view_;
};

/// Checks |got - expected| <= relative |expected| + absolute for every element, with one message for all.
template <class T>
void check_close(const std::vector<T>& got, const std::vector<double>& expected, double relative, double absolute) {
  REQUIRE(got.size() == expected.size());
  std::size_t wrong = 0;
  std::size_t worst = 0;
  double excess = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(static_cast<double>(static_cast<float>(got[i])) - expected[i]);
    const double over = error - relative * std::abs(expected[i]) - absolute;
    if (over <= 0) continue;
    if (++wrong == 1 || !(over <= excess)) {
      worst = i;
      excess = over;
    }
  }
  // A NaN is never within bounds.
  for (std::size_t i = 0; i < got.size(); ++i)
    if (std::isnan(static_cast<float>(got[i])) != std::isnan(expected[i])) {
      ++wrong;
      worst = i;
    }
  CHECK_MESSAGE(wrong == 0, wrong << " of " << got.size() << " are wrong, e.g. element " << worst << " is "
                                  << static_cast<float>(got[worst]) << " and should be " << expected[worst]);
}

}  // namespace sylvit::test
