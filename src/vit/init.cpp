// Compiled without contraction and without fast-math (CMakeLists.txt): every operation here is rounded as written.
#include "vit/init.hpp"

#include <sylvit/error.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

namespace sylvit::vit {

namespace {

static_assert(std::numeric_limits<double>::is_iec559 && std::numeric_limits<float>::is_iec559);

// SplitMix64 (Steele, Lea, Flood 2014).
constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;

constexpr std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

/// FNV-1a.
constexpr std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325U;
  for (const char letter : text) value = (value ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  return value;
}

/// Uniform numbers of (0, 1), by index. Each is an odd multiple of 2^-53, so it is exact and never 0 or 1.
class Uniform {
 public:
  Uniform(std::uint64_t seed, std::string_view name) : key_(mixed(mixed(seed + golden) ^ hash(name))) {}

  double operator()(std::uint64_t index) const {
    const std::uint64_t bits = mixed(key_ + (index + 1) * golden) >> 12U;
    return (static_cast<double>(bits) + 0.5) * 0x1p-52;
  }

 private:
  std::uint64_t key_;
};

/// The logarithm of a normal positive number: e log 2 + 2 artanh((m - 1) / (m + 1)) for m 2^e.
double natural_logarithm(double value) {
  constexpr double log2 = 0.693147180559945309417;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  auto exponent = static_cast<int>(bits >> 52U) - 1023;
  auto mantissa = std::bit_cast<double>((bits & 0x000fffffffffffffU) | 0x3ff0000000000000U);
  if (mantissa > 1.41421356237309504880) {
    mantissa *= 0.5;
    ++exponent;
  }
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double square = s * s;
  double series = 0.0;
  for (int power = 23; power > 0; power -= 2) series = series * square + 1.0 / power;
  return exponent * log2 + 2.0 * s * series;
}

template <std::size_t count>
double polynomial(const std::array<double, count>& highest_first, double x) {
  double value = 0.0;
  for (const double coefficient : highest_first) value = value * x + coefficient;
  return value;
}

// Wichura's AS 241 (1988).
constexpr std::array centre_over{2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4,
                                 4.5921953931549871457e+4, 1.3731693765509461125e+4, 1.9715909503065514427e+3,
                                 1.3314166789178437745e+2, 3.3871328727963666080e+0};
constexpr std::array centre_under{
    5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4, 2.1213794301586595867e+4,
    5.3941960214247511077e+3, 6.8718700749205790830e+2, 4.2313330701600911252e+1, 1.0};
constexpr std::array middle_over{7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
                                 1.27045825245236838258e+0, 3.64784832476320460504e+0, 5.76949722146069140550e+0,
                                 4.63033784615654529590e+0, 1.42343711074968357734e+0};
constexpr std::array middle_under{
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
    6.89767334985100004550e-1, 1.67638483018380384940e+0, 2.05319162663775882187e+0, 1.0};
constexpr std::array far_over{2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
                              2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e+0,
                              5.46378491116411436990e+0, 6.65790464350110377720e+0};
constexpr std::array far_under{
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
    1.48753612908506148525e-2,  1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0};
// The normal distribution at -2, and how far the deviation shrinks when it is cut at ±2.
constexpr double below_minus_two = 0.0227501319481792072003;
constexpr double cut_deviation = 0.87962566103423978;

struct Distribution {
  double constant = 0.0;   ///< without a deviation: this
  double deviation = 0.0;  ///< of the normal distribution
  bool cut = false;        ///< at two deviations
};

Distribution distribution_of(const VitConfig& config, const VitParameter& parameter) {
  const std::string_view name = parameter.name;
  const std::size_t rank = parameter.shape.rank();
  if (name == "cls_token") return {.deviation = 1e-6};
  if (name == "pos_embed") return {.deviation = 0.02};
  if (name == "attn_pool.latent") return {.deviation = 1.0 / std::sqrt(static_cast<double>(config.width)), .cut = true};
  if (name == "patch_embed.proj.weight")
    return {.deviation = std::sqrt(1.0 / static_cast<double>(config.patch_values())) / cut_deviation, .cut = true};
  if (name.ends_with(".attn.head_scale") || name.ends_with(".attn.gate.bias")) return {.constant = 1.0};
  if (name.ends_with(".attn.alpha")) return {.constant = static_cast<double>(config.alpha)};
  if (name.ends_with(".bias")) return {};
  if (name.ends_with(".weight") && rank == 1) return {.constant = 1.0};  // of a norm
  if (name.ends_with(".weight") && rank == 2) return {.deviation = 0.02};
  throw Error("there is no rule for the initial values of the parameter \"" + parameter.name + "\" " +
              parameter.shape.text());
}

}  // namespace

double inverse_normal(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(centre_over, r) / polynomial(centre_under, r);
  }
  const double tail = q < 0.0 ? p : 1.0 - p;
  const double r = std::sqrt(-natural_logarithm(tail));
  const double x = r <= 5.0 ? polynomial(middle_over, r - 1.6) / polynomial(middle_under, r - 1.6)
                            : polynomial(far_over, r - 5.0) / polynomial(far_under, r - 5.0);
  return q < 0.0 ? -x : x;
}

void initialise(const VitConfig& config, const VitParameter& parameter, std::uint64_t seed, std::span<float> out) {
  if (static_cast<std::int64_t>(out.size()) != parameter.shape.elements())
    throw Error("the parameter \"" + parameter.name + "\" " + parameter.shape.text() + " does not fit in " +
                std::to_string(out.size()) + " numbers");
  const Distribution wanted = distribution_of(config, parameter);
  if (wanted.deviation == 0.0) {
    for (float& value : out) value = static_cast<float>(wanted.constant);
    return;
  }
  const Uniform uniform(seed, parameter.name);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double u = uniform(i);
    const double p = wanted.cut ? below_minus_two + u * (1.0 - 2.0 * below_minus_two) : u;
    out[i] = static_cast<float>(inverse_normal(p) * wanted.deviation);
  }
}

double parameter_count(const VitConfig& config) {
  // Blocks are alike, so two of them tell, and a model of a million blocks is not spelled out.
  const auto with_depth = [&](std::int64_t depth) {
    VitConfig shallow = config;
    shallow.depth = depth;
    double count = 0;
    for (const VitParameter& parameter : vit_parameters(shallow))
      count += static_cast<double>(parameter.shape.elements());
    return count;
  };
  const double one = with_depth(1);
  return one + static_cast<double>(config.depth - 1) * (with_depth(2) - one);
}

std::vector<std::vector<float>> initial_parameters(const VitConfig& config, std::uint64_t seed) {
  config.check();
  std::vector<std::vector<float>> all;
  for (const VitParameter& parameter : vit_parameters(config))
    initialise(config, parameter, seed, all.emplace_back(static_cast<std::size_t>(parameter.shape.elements())));
  return all;
}

}  // namespace sylvit::vit
