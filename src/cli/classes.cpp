#include "cli/classes.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/core.h>
#include <fstream>
#include <map>

namespace sylvit::cli {

namespace {

std::vector<std::string> read_lines(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file) throw Error("cannot open " + path + ": " + std::strerror(errno));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    // The mark that some editors put before a text in UTF-8 is no part of its first line.
    if (lines.empty() && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
    lines.push_back(line);
  }
  if (file.bad()) throw Error("cannot read " + path + ": " + std::strerror(errno));
  return lines;
}

}  // namespace

std::vector<std::string> read_labels(const std::string& path, std::int64_t classes) {
  std::vector<std::string> labels = read_lines(path);
  if (labels.size() != static_cast<std::size_t>(classes))
    throw Error(fmt::format("{} has {} labels, and the model has {} classes", path, labels.size(), classes));
  return labels;
}

std::vector<std::int64_t> read_subset(const std::string& path, std::int64_t classes,
                                      std::span<const std::string> labels) {
  std::multimap<std::string, std::int64_t> by_label;
  for (std::size_t i = 0; i < labels.size(); ++i) by_label.emplace(labels[i], static_cast<std::int64_t>(i));
  const std::vector<std::string> lines = read_lines(path);
  std::map<std::int64_t, std::size_t> line_of;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (line.empty()) continue;
    const auto refuse = [&](const std::string& why) {
      throw Error(fmt::format("line {} of {} is \"{}\", {}", i + 1, path, line, why));
    };
    std::int64_t number = 0;
    if (const auto [first, last] = by_label.equal_range(line); first != last) {
      number = first->second;
      if (std::next(first) != last)
        refuse(fmt::format("the label of classes {} and {}: give the number", number, std::next(first)->second));
    } else {
      const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
      if (error == std::errc::invalid_argument || end != line.data() + line.size())
        refuse(labels.empty() ? "which is no class number" : "which is neither a label nor a class number");
      if (error != std::errc() || number < 0 || number >= classes)
        refuse(fmt::format("and the model has classes 0 to {}", classes - 1));
    }
    if (const auto [entry, added] = line_of.emplace(number, i + 1); !added)
      refuse(fmt::format("class {}, as line {} is already", number, entry->second));
  }
  if (line_of.empty()) throw Error(path + " names no class");
  std::vector<std::int64_t> subset;
  subset.reserve(line_of.size());
  for (const auto& [number, line] : line_of) subset.push_back(number);
  return subset;
}

std::vector<Prediction> top_classes(std::span<const float> logits, std::span<const std::int64_t> classes,
                                    std::size_t count) {
  std::vector<Prediction> all;
  float largest = -HUGE_VALF;
  for (const std::int64_t number : classes) {
    const float logit = logits[static_cast<std::size_t>(number)];
    if (!std::isfinite(logit)) throw Error(fmt::format("the logit of class {} is {}", number, logit));
    largest = std::max(largest, logit);
    all.push_back({number, 0, logit});
  }
  double sum = 0;
  for (Prediction& one : all) {
    one.probability = std::exp(static_cast<double>(one.logit) - static_cast<double>(largest));
    sum += one.probability;
  }
  for (Prediction& one : all) one.probability /= sum;
  count = std::min(count, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                    [](const Prediction& a, const Prediction& b) {
                      return a.logit != b.logit ? a.logit > b.logit : a.number < b.number;
                    });
  all.resize(count);
  return all;
}

}  // namespace sylvit::cli
