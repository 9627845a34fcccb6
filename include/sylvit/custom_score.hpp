// Scores that an application brings itself, without any change to the library.
#pragma once

#include <sylvit/export.hpp>

#include <memory>
#include <string>

namespace sylvit {

namespace runtime {
struct CustomCode;
}

/// A point-wise score h of the application's own, for AttentionDescription and VitConfig with Score::custom:
///
///     const sylvit::CustomScore squareplus("Squareplus", R"(
///       struct Squareplus {
///         [[gnu::always_inline]] static float value(float s) { return 0.5F * (s + sycl::sqrt(s * s + 4.0F)); }
///         [[gnu::always_inline]] static float slope(float s) { return 0.5F + 0.5F * s / sycl::sqrt(s * s + 4.0F); }
///       };)");
///
/// value(s) is h(s) and slope(s) its derivative, both from float to float. They run in the innermost loops: forced
/// inline and free of branches (selects are fine) they cost what the library's own scores cost. A NaN should stay one.
///
/// The constructor is for libraries whose kernels are built while the program runs (the `rtc` toolchain). The text
/// stands in a namespace of its own inside sylvit::kernels, so it may use sycl::… and the functions of the library's
/// own scores (fast_exp, fast_exp2, fast_sigmoid, fast_normal). Libraries compiled ahead of time take the score as a
/// type instead: see custom_score_type.hpp, which is installed with those.
///
/// A value: copies are cheap, share the text, and may be used by several threads at once.
class SYLVIT_API CustomScore {
 public:
  /// No score.
  CustomScore() = default;

  /// `name` is the struct's name in `source`. Throws Error when it is no C++ identifier, or the source is empty.
  /// Whether the source compiles is found out when a kernel is first built with it: that throws Error with the
  /// compiler's message.
  CustomScore(const std::string& name, std::string source);

  /// For the library and custom_score_type.hpp.
  explicit CustomScore(std::shared_ptr<const runtime::CustomCode> code);

  /// Is there a score?
  explicit operator bool() const noexcept { return code_ != nullptr; }
  /// Its name; empty when there is none.
  const std::string& name() const noexcept;
  /// The same code under the same name?
  bool operator==(const CustomScore& other) const noexcept;
  /// What kernels are made of; for the library itself.
  const std::shared_ptr<const runtime::CustomCode>& code() const noexcept { return code_; }

 private:
  std::shared_ptr<const runtime::CustomCode> code_;
};

}  // namespace sylvit
