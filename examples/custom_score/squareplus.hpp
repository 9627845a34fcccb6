// Squareplus, (s + sqrt(s² + 4)) / 2: like softplus, without an exponential.
struct Squareplus {
  [[gnu::always_inline]] static float value(float s) { return 0.5F * (s + sycl::sqrt(s * s + 4.0F)); }
  [[gnu::always_inline]] static float slope(float s) { return 0.5F + 0.5F * s / sycl::sqrt(s * s + 4.0F); }
};
