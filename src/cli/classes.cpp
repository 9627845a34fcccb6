#include "cli/classes.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <string_view>

#include "io/files.hpp"
#include "io/messages.hpp"

namespace sylvit::cli {

namespace {

/// Thirty thousand classes with long names take a megabyte.
constexpr std::uint64_t largest_file = 16 << 20;

/// Visits every line with its number, the first of which is 1.
template <class Visit>
void for_each_line(std::string_view text, const Visit& visit) {
  // The mark that some editors put before a text in UTF-8 is no part of its first line.
  if (constexpr std::string_view mark = "\xEF\xBB\xBF"; text.starts_with(mark)) text.remove_prefix(mark.size());
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(number, line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::vector<std::string> read_labels(const std::string& path, std::int64_t classes) {
  const std::string text = io::read_text(path, "a file of labels", largest_file);
  std::vector<std::string> labels;
  std::size_t lines = 0;
  for_each_line(text, [&](std::size_t number, std::string_view line) {
    lines = number;
    if (lines <= static_cast<std::size_t>(classes)) labels.emplace_back(line);
  });
  if (lines != static_cast<std::size_t>(classes))
    throw Error(fmt::format("{} has {} labels, and the model has {} classes", path, lines, classes));
  return labels;
}

std::vector<std::int64_t> read_subset(const std::string& path, std::int64_t classes,
                                      std::span<const std::string> labels) {
  std::multimap<std::string_view, std::int64_t> by_label;
  for (std::size_t i = 0; i < labels.size(); ++i) by_label.emplace(labels[i], static_cast<std::int64_t>(i));
  const std::string text = io::read_text(path, "a file of classes", largest_file);
  std::map<std::int64_t, std::size_t> line_of;
  for_each_line(text, [&](std::size_t at, std::string_view line) {
    if (line.empty()) return;
    const auto refuse = [&](const std::string& why) {
      throw Error(fmt::format("line {} of {} is {}, {}", at, path, io::in_quotes(line), why));
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
    if (const auto [entry, added] = line_of.emplace(number, at); !added)
      refuse(fmt::format("class {}, as line {} is already", number, entry->second));
  });
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
