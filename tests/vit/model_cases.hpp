// Tiny models with every option, their inputs, and how far results are from the reference's.
#pragma once

#include <sylvit/vit.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "vit/tiny.hpp"

namespace sylvit::test {

/// Every option of a model in some of them.
inline std::vector<std::pair<std::string, VitConfig>> options() {
  return {
      {"softmax", tiny_vit()},
      {"relu, qk norm, gate", tiny_vit([](VitConfig& c) {
         c.score = Score::relu;
         c.qk_norm = c.gate = true;
       })},
      {"gelu, average pooling after the norm, no class token", tiny_vit([](VitConfig& c) {
         c.score = Score::gelu;
         c.alpha = 0.5F;
         c.pooling = Pooling::average;
         c.class_token = false;
       })},
      {"sigmoid, average pooling before the norm", tiny_vit([](VitConfig& c) {
         c.score = Score::sigmoid;
         c.pooling = Pooling::average;
         c.norm_after_pooling = true;
         c.divisor = 3;
       })},
      {"relu2, map pooling, learned factors", tiny_vit([](VitConfig& c) {
         c.score = Score::relu2;
         c.pooling = Pooling::map;
         c.head_scale = c.head_alpha = true;
         c.gelu_tanh = true;
       })},
      {"softmax, map pooling without class token, sin-cos positions", tiny_vit([](VitConfig& c) {
         c.pooling = Pooling::map;
         c.class_token = false;
         c.positions = Positions::sincos;
         c.qk_norm = c.head_scale = true;
         c.norm_epsilon = 1e-3F;
       })},
      {"identity, gate", tiny_vit([](VitConfig& c) {
         c.score = Score::identity;
         c.gate = true;
         c.channels = 1;
       })},
  };
}

/// Parameters that leave nothing at a special value: norms are not 1, biases not 0.
inline std::map<std::string, std::vector<float>> random_parameters(const VitConfig& config) {
  std::map<std::string, std::vector<float>> all;
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  for (const VitParameter& parameter : vit_parameters(config)) {
    const bool around_one = parameter.shape.rank() == 1 && parameter.name.find("bias") == std::string::npos;
    const float size = parameter.shape.rank() == 2 ? 1.0F / std::sqrt(static_cast<float>(parameter.shape[1])) : 0.2F;
    std::vector<float> values(static_cast<std::size_t>(parameter.shape.elements()));
    for (float& value : values) value = (around_one ? 1.0F : 0.0F) + size * normal(generator);
    all[parameter.name] = values;
  }
  return all;
}

inline std::vector<float> random_images(const VitConfig& config, std::int64_t batch) {
  std::mt19937 generator(11);
  std::normal_distribution<float> normal;
  std::vector<float> images(
      static_cast<std::size_t>(batch * config.channels * config.image_height * config.image_width));
  for (float& value : images) value = normal(generator);
  return images;
}

/// Of random_images(config, 3).
inline const std::vector<std::int64_t> labels{3, 0, 6};

/// The largest difference, relative to the largest expected value (or to `least`, where all are nearly zero).
inline double difference(const std::vector<float>& got, const std::vector<double>& expected, double least) {
  double error = 0;
  double size = least;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double distance = std::abs(static_cast<double>(got[i]) - expected[i]);
    error = std::max(error, std::isfinite(distance) ? distance : HUGE_VAL);
    size = std::max(size, std::abs(expected[i]));
  }
  return error / size;
}

}  // namespace sylvit::test
