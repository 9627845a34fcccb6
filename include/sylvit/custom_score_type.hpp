// A custom score as a type, for libraries compiled ahead of time (the `dpcpp` and `acpp` toolchains), with which alone
// this header is installed: the application's own compiler instantiates the library's attention kernels with it.
//
//     struct Squareplus {
//       [[gnu::always_inline]] static float value(float s) { return 0.5F * (s + sycl::sqrt(s * s + 4.0F)); }
//       [[gnu::always_inline]] static float slope(float s) { return 0.5F + 0.5F * s / sycl::sqrt(s * s + 4.0F); }
//     };
//     constexpr sylvit::CustomScoreKernels kernels{.bf16 = false, .f16 = false, .head_size = 64};
//     const auto squareplus = sylvit::custom_score<Squareplus, kernels>("Squareplus");
//
// Each storage type and head size costs the application compilation time; so say which are needed.
#pragma once

#include <sylvit/custom_score.hpp>
#include <sylvit/tensor.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace sylvit {

/// Which kernels an application compiles for its score.
struct CustomScoreKernels {
  bool f32 = true;             ///< for f32 tensors
  bool bf16 = true;            ///< for bf16 tensors
  bool f16 = true;             ///< for f16 tensors
  std::int64_t head_size = 0;  ///< one of those that the library was compiled for; 0: all of them

  /// Is this kernel among them?
  constexpr bool has(DType dtype, std::int64_t size) const {
    const bool type = (dtype == DType::f32 && f32) || (dtype == DType::bf16 && bf16) || (dtype == DType::f16 && f16);
    return type && (head_size == 0 || head_size == size);
  }
};

}  // namespace sylvit

#include <sylvit/ahead_of_time/custom_variants.hpp>

namespace sylvit {

/// The score whose value(s) and slope(s) are static functions of `Score`. `name` is for messages.
template <class Score, CustomScoreKernels wanted = CustomScoreKernels{}>
CustomScore custom_score(std::string name) {
  static_assert(
      std::is_same_v<decltype(Score::value(0.0F)), float> && std::is_same_v<decltype(Score::slope(0.0F)), float>,
      "value and slope must take and give a float");
  runtime::CustomCode code{.name = std::move(name), .functor = "CustomScore"};
  runtime::add_custom_variants<Score, wanted>(code.variants);
  return CustomScore(std::make_shared<const runtime::CustomCode>(std::move(code)));
}

}  // namespace sylvit
