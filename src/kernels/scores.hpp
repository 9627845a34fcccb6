// The scores: what turns s = scale * (q . k) into a weight.
//
// A point-wise score h is one struct with two static functions, value(s) = h(s) and slope(s) = h'(s). That is all the
// kernels ask of it, so an application adds its own by writing such a struct and naming it as the Score of a kernel.
// Both must be branch-free (selects) and forced inline, for they run in the vector loops (a call there costs 95 % of
// the speed), and must let a NaN through: hence `s < 0 ? 0 : s` and not `s > 0 ? s : 0`. At a kink the slope is that of
// the left side, as in PyTorch.
//
// Softmax is not point-wise: it is only a name here, and the kernels know what to do with it.
//
// exp and its relatives are written out, as the devices' built-ins cost from 2 to 20 times more than these polynomials
// in a vector loop and differ from device to device. Errors are a few units in the last place of f32.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/sycl.hpp"

namespace sylvit::kernels {

/// 2^x. Below -126.5 it is 0, from 127.5 on infinity; a NaN stays a NaN.
[[gnu::always_inline]] inline float fast_exp2(float x) {
  x = x < -127.0F ? -127.0F : x;
  x = x > 128.0F ? 128.0F : x;
  // Adding 1.5 * 2^23 rounds x to a whole number n, and leaves n in the low bits of the sum.
  const float shifted = x + 12582912.0F;
  const float fraction = x - (shifted - 12582912.0F);  // in [-0.5, 0.5]
  const float power = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3f800000U);  // 2^n
  float p = 1.5403530e-4F;
  p = sycl::fma(p, fraction, 1.3333558e-3F);
  p = sycl::fma(p, fraction, 9.6181291e-3F);
  p = sycl::fma(p, fraction, 5.5504109e-2F);
  p = sycl::fma(p, fraction, 2.4022651e-1F);
  p = sycl::fma(p, fraction, 6.9314718e-1F);
  p = sycl::fma(p, fraction, 1.0F);
  return p * power;
}

inline constexpr float log2_of_e = 1.44269504F;
inline constexpr float ln_of_2 = 0.69314718F;

/// e^x. Below -87.7 it is 0, from 88.4 on infinity; a NaN stays a NaN.
[[gnu::always_inline]] inline float fast_exp(float x) {
  x = x < -88.1F ? -88.1F : x;
  x = x > 89.0F ? 89.0F : x;
  const float shifted = sycl::fma(x, log2_of_e, 12582912.0F);
  const float n = shifted - 12582912.0F;
  // x - n ln 2, with ln 2 in two parts, the first of few bits, so that n times it is exact.
  const float fraction = sycl::fma(n, 2.1219444e-4F, sycl::fma(n, -0.693359375F, x));
  const float power = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3f800000U);  // 2^n
  float p = 1.9875691e-4F;
  p = sycl::fma(p, fraction, 1.3981999e-3F);
  p = sycl::fma(p, fraction, 8.3334519e-3F);
  p = sycl::fma(p, fraction, 4.1665796e-2F);
  p = sycl::fma(p, fraction, 1.6666665e-1F);
  p = sycl::fma(p, fraction, 0.5F);
  p = sycl::fma(p, fraction, 1.0F);
  p = sycl::fma(p, fraction, 1.0F);
  return p * power;
}

[[gnu::always_inline]] inline float fast_sigmoid(float x) { return 1.0F / (1.0F + fast_exp(-x)); }

/// log(1 + e) for e in [0, 1], as 2 artanh(e / (2 + e)).
[[gnu::always_inline]] inline float fast_log1p_of_fraction(float e) {
  const float t = e / (2.0F + e);  // in [0, 1/3]
  const float t2 = t * t;
  float p = 2.1853F / 13.0F;  // carries the rest of the series
  p = sycl::fma(p, t2, 2.0F / 11.0F);
  p = sycl::fma(p, t2, 2.0F / 9.0F);
  p = sycl::fma(p, t2, 2.0F / 7.0F);
  p = sycl::fma(p, t2, 2.0F / 5.0F);
  p = sycl::fma(p, t2, 2.0F / 3.0F);
  p = sycl::fma(p, t2, 2.0F);
  return p * t;
}

/// The normal distribution at x: e^(-x²/2), and the distribution function Phi(x).
struct Normal {
  float exponential;
  float distribution;

  [[gnu::always_inline]] float density() const { return 0.39894228F * exponential; }
};

/// The upper tail beyond |x| is e^(-x²/2) t R(t), with t = 1 / (1 + 0.3 |x|) and a polynomial R fitted to 1.3e-7 of its
/// value for |x| up to 13.5, where the tail is no f32 any more. So one exponential serves both numbers, and the lower
/// tail keeps its digits.
[[gnu::always_inline]] inline Normal fast_normal(float x) {
  const float exponential = fast_exp(-0.5F * x * x);
  const float t = 1.0F / sycl::fma(x < 0.0F ? -x : x, 0.3F, 1.0F);
  float p = 0.0359317809F;
  p = sycl::fma(p, t, -0.158276185F);
  p = sycl::fma(p, t, 0.208206892F);
  p = sycl::fma(p, t, -0.0553940833F);
  p = sycl::fma(p, t, 0.12946932F);
  p = sycl::fma(p, t, 0.0996374637F);
  p = sycl::fma(p, t, 0.120798364F);
  p = sycl::fma(p, t, 0.119626388F);
  const float upper_tail = exponential * (t * p);
  return {exponential, x < 0.0F ? upper_tail : 1.0F - upper_tail};
}

struct Softmax {};

struct Identity {
  [[gnu::always_inline]] static float value(float s) { return s; }
  [[gnu::always_inline]] static float slope(float) { return 1.0F; }
};

struct Relu {
  [[gnu::always_inline]] static float value(float s) { return s < 0.0F ? 0.0F : s; }
  [[gnu::always_inline]] static float slope(float s) { return s <= 0.0F ? 0.0F : 1.0F; }
};

struct Relu2 {
  [[gnu::always_inline]] static float value(float s) { return Relu::value(s) * Relu::value(s); }
  [[gnu::always_inline]] static float slope(float s) { return 2.0F * Relu::value(s); }
};

struct Relu6 {
  [[gnu::always_inline]] static float value(float s) { return s < 0.0F ? 0.0F : (s > 6.0F ? 6.0F : s); }
  [[gnu::always_inline]] static float slope(float s) { return s <= 0.0F || s >= 6.0F ? 0.0F : 1.0F; }
};

struct Sigmoid {
  [[gnu::always_inline]] static float value(float s) { return fast_sigmoid(s); }
  [[gnu::always_inline]] static float slope(float s) {
    const float y = fast_sigmoid(s);
    return y * (1.0F - y);
  }
};

struct Silu {
  [[gnu::always_inline]] static float value(float s) { return s * fast_sigmoid(s); }
  [[gnu::always_inline]] static float slope(float s) {
    const float y = fast_sigmoid(s);
    return y * sycl::fma(s, 1.0F - y, 1.0F);
  }
};

struct Softplus {
  [[gnu::always_inline]] static float value(float s) {
    const float distance = s < 0.0F ? s : -s;
    return Relu::value(s) + fast_log1p_of_fraction(fast_exp(distance));
  }
  [[gnu::always_inline]] static float slope(float s) { return fast_sigmoid(s); }
};

/// s * Phi(s), Phi the normal distribution function. The value has Phi(s) = 1/2 + s P(s²) / Q(s²), with the fractions
/// that Eigen has for erf: right to 2 ε |s|, like PyTorch's, and half the instructions of fast_normal, which the slope
/// needs.
struct Gelu {
  [[gnu::always_inline]] static float value(float s) {
    float x = s < -5.65F ? -5.65F : s;
    x = x > 5.65F ? 5.65F : x;
    const float t = x * x;
    float p = 1.05574666e-10F;
    p = sycl::fma(p, t, -2.14599047e-8F);
    p = sycl::fma(p, t, 3.2546344e-6F);
    p = sycl::fma(p, t, 1.76361878e-4F);
    p = sycl::fma(p, t, 4.55420931e-3F);
    p = sycl::fma(p, t, 3.6615068e-2F);
    p = sycl::fma(p, t, 3.98942255e-1F);
    float q = 6.38202695e-5F;
    q = sycl::fma(q, t, 1.8697683e-3F);
    q = sycl::fma(q, t, 2.94927753e-2F);
    q = sycl::fma(q, t, 2.58445988e-1F);
    q = sycl::fma(q, t, 1.0F);
    const float value = s * sycl::fma(x, p / q, 0.5F);
    return s < -5.65F ? 0.0F : value;  // what is left of Phi there is rounding, and s may be large
  }
  [[gnu::always_inline]] static float slope(float s) {
    const Normal normal = fast_normal(s);
    return sycl::fma(s, normal.density(), normal.distribution);
  }
};

/// The tanh form: 0.5 s (1 + tanh(u)) = s sigmoid(2u), u = sqrt(2/pi) (s + 0.044715 s^3).
struct GeluTanh {
  [[gnu::always_inline]] static float value(float s) {
    return s * fast_sigmoid(s * sycl::fma(0.071354816F, s * s, 1.5957691F));
  }
  [[gnu::always_inline]] static float slope(float s) {
    const float s2 = s * s;
    const float y = fast_sigmoid(s * sycl::fma(0.071354816F, s2, 1.5957691F));
    return y * sycl::fma(s * (1.0F - y), sycl::fma(0.21406445F, s2, 1.5957691F), 1.0F);
  }
};

/// Scores of an instruction or two.
template <class Score>
inline constexpr bool is_cheap = std::is_same_v<Score, Identity> || std::is_same_v<Score, Relu> ||
                                 std::is_same_v<Score, Relu2> || std::is_same_v<Score, Relu6>;

template <class Score>
inline constexpr bool is_softmax = std::is_same_v<Score, Softmax>;

}  // namespace sylvit::kernels
