// A model's classes: their labels, which of them count, and what an image's logits say of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sylvit::cli {

/// One label a line, line n is class n - 1 (the first class is 0). Throws Error when there are not `classes` of them.
std::vector<std::string> read_labels(const std::string& path, std::int64_t classes);

/// The classes that a file names, ascending: one a line, by number or, where there are labels, by label. Empty lines
/// are skipped. Throws Error that names the line of an unknown or doubled class.
std::vector<std::int64_t> read_subset(const std::string& path, std::int64_t classes,
                                      std::span<const std::string> labels);

struct Prediction {
  std::int64_t number;
  double probability;
  float logit;
};

/// The most probable `count` of these classes, by softmax over them alone; of equals the lower number comes first.
/// Throws Error when a logit is not a finite number.
std::vector<Prediction> top_classes(std::span<const float> logits, std::span<const std::int64_t> classes,
                                    std::size_t count);

}  // namespace sylvit::cli
