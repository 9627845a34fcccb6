#include <bit>
#include <cmath>
#include <map>

#include "support.hpp"
#include "vit/init.hpp"

using namespace sylvit;
using sylvit::test::check_error;

namespace {

/// Large enough for statistics, with every parameter that there is.
VitConfig everything() {
  return {.width = 64,
          .depth = 2,
          .heads = 4,
          .mlp = 128,
          .patch = 8,
          .image_height = 32,
          .image_width = 48,
          .classes = 10,
          .score = Score::relu,
          .alpha = 0.75F,
          .qk_norm = true,
          .gate = true,
          .head_scale = true,
          .head_alpha = true,
          .pooling = Pooling::map};
}

/// FNV-1a over the bits, in the order of vit_parameters().
std::uint64_t hash(const std::vector<std::vector<float>>& parameters) {
  std::uint64_t value = 0xcbf29ce484222325U;
  for (const auto& parameter : parameters)
    for (const float number : parameter) value = (value ^ std::bit_cast<std::uint32_t>(number)) * 0x100000001b3U;
  return value;
}

std::map<std::string, std::vector<float>> by_name(const VitConfig& config, std::uint64_t seed) {
  const auto values = vit::initial_parameters(config, seed);
  const auto parameters = vit_parameters(config);
  std::map<std::string, std::vector<float>> result;
  for (std::size_t i = 0; i < values.size(); ++i) result[parameters[i].name] = values[i];
  return result;
}

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};

Moments moments(const std::vector<float>& values) {
  Moments result;
  double square = 0;
  for (const float value : values) {
    result.mean += value / static_cast<double>(values.size());
    square += static_cast<double>(value) * value / static_cast<double>(values.size());
    result.largest = std::max(result.largest, std::abs(static_cast<double>(value)));
  }
  result.deviation = std::sqrt(square - result.mean * result.mean);
  return result;
}

void check_all(const std::vector<float>& values, float expected) {
  CHECK(!values.empty());
  CHECK(std::ranges::count(values, expected) == static_cast<std::ptrdiff_t>(values.size()));
}

}  // namespace

TEST_SUITE("vit/init") {
  TEST_CASE("a seed gives these very bits, on every machine") {
    CHECK(hash(vit::initial_parameters(everything(), 42)) == 2415394293242907092U);
    CHECK(hash(vit::initial_parameters(vit_preset("Ti/16"), 0)) == 8892996467717457001U);
  }

  TEST_CASE("the inverse normal distribution is right") {
    for (const double p :
         {1e-16, 1e-12, 1e-5, 0.001, 0.02, 0.07499, 0.0750001, 0.3, 0.5, 0.7, 0.925001, 0.99, 0.9999999}) {
      CAPTURE(p);
      const double x = vit::inverse_normal(p);
      const double back = 0.5 * std::erfc(-x / std::sqrt(2.0));
      // The distribution's slope turns an error in x into one in p.
      const double slope = std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979323846);
      CHECK(std::abs(back - p) <= 1e-14 * std::max(1.0, std::abs(x)) * slope + 4e-16 + 1e-13 * p);
    }
    CHECK(vit::inverse_normal(0.5) == 0.0);
    CHECK(vit::inverse_normal(0.25) == -vit::inverse_normal(0.75));
    CHECK(std::abs(vit::inverse_normal(0.975) - 1.959963984540054) < 1e-14);
  }

  TEST_CASE("every parameter has timm's distribution") {
    const VitConfig config = everything();
    const auto values = by_name(config, 7);
    CHECK(values.size() == vit_parameters(config).size());
    const auto normal = [&](const std::string& name, double deviation, double cut) {
      CAPTURE(name);
      const Moments got = moments(values.at(name));
      const double noise = 4 / std::sqrt(static_cast<double>(values.at(name).size()));
      CHECK(std::abs(got.mean) < noise * deviation);
      CHECK(std::abs(got.deviation - deviation) < noise * deviation);
      if (cut > 0) CHECK(got.largest <= cut * 1.0000001);
      if (cut == 0) CHECK(got.largest > 2 * deviation);
    };
    for (const char* name :
         {"pos_embed", "blocks.0.attn.qkv.weight", "blocks.1.attn.proj.weight", "blocks.1.attn.gate.weight",
          "blocks.0.mlp.fc1.weight", "blocks.1.mlp.fc2.weight", "attn_pool.kv.weight", "head.weight"})
      normal(name, 0.02, 0);
    normal("cls_token", 1e-6, -1);
    const double inputs = std::sqrt(1.0 / (3 * 8 * 8));
    normal("patch_embed.proj.weight", inputs, 2 * inputs / 0.87962566103423978);
    normal("attn_pool.latent", 0.87962566103423978 / 8, 2.0 / 8);
    for (const char* name : {"patch_embed.proj.bias", "blocks.0.attn.qkv.bias", "blocks.0.norm1.bias", "head.bias",
                             "blocks.1.attn.q_norm.bias", "attn_pool.mlp.fc1.bias"})
      check_all(values.at(name), 0.0F);
    for (const char* name : {"blocks.0.norm1.weight", "blocks.1.attn.k_norm.weight", "norm.weight",
                             "attn_pool.norm.weight", "blocks.0.attn.head_scale", "blocks.1.attn.gate.bias"})
      check_all(values.at(name), 1.0F);
    check_all(values.at("blocks.1.attn.alpha"), 0.75F);
  }

  TEST_CASE("a parameter depends on the seed and its own name alone") {
    const auto one = by_name(everything(), 1);
    const auto other_seed = by_name(everything(), 2);
    CHECK(one.at("head.weight") != other_seed.at("head.weight"));
    CHECK(one.at("blocks.0.attn.qkv.weight") != one.at("blocks.1.attn.qkv.weight"));
    VitConfig smaller = everything();
    smaller.depth = 1;
    smaller.gate = false;
    smaller.classes = 5;
    const auto part = by_name(smaller, 1);
    CHECK(part.at("blocks.0.attn.proj.weight") == one.at("blocks.0.attn.proj.weight"));
    // Fewer classes: the first rows.
    CHECK(std::ranges::equal(part.at("head.weight"), std::span(one.at("head.weight")).first(5 * 64)));
  }

  TEST_CASE("neighbouring numbers are not related") {
    const auto values = by_name(vit_preset("Ti/16"), 3).at("blocks.0.mlp.fc1.weight");
    double product = 0;
    for (std::size_t i = 0; i + 1 < values.size(); ++i) product += static_cast<double>(values[i]) * values[i + 1];
    CHECK(std::abs(product / (static_cast<double>(values.size()) * 0.02 * 0.02)) <
          4 / std::sqrt(static_cast<double>(values.size())));
  }

  TEST_CASE("every preset and option has its rules, and mistakes are named") {
    for (const bool token : {false, true})
      for (const Pooling pooling : {Pooling::average, Pooling::map}) {
        VitConfig config = everything();
        config.class_token = token;
        config.pooling = pooling;
        config.norm_after_pooling = pooling == Pooling::average;
        config.positions = token ? Positions::sincos : Positions::learned;
        CHECK(vit::initial_parameters(config, 0).size() == vit_parameters(config).size());
      }
    std::vector<float> out(3);
    check_error([&] { vit::initialise(everything(), {"head.bias", {4}}, 0, out); }, {"head.bias", "[4]", "3"});
    check_error([&] { vit::initialise(everything(), {"mystery", {3}}, 0, out); }, {"mystery"});
  }
}
