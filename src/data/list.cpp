// A list: lines of a path and its label.
#include <sylvit/error.hpp>

#include <algorithm>
#include <charconv>
#include <map>

#include "data/file_images.hpp"
#include "data/mapped_file.hpp"
#include "io/messages.hpp"

namespace sylvit::data {

namespace {

namespace fs = std::filesystem;

/// A line's two halves: at the last tab, or else at the last spaces.
std::pair<std::string, std::string> halves(const std::string& line, const std::string& where) {
  std::size_t end = line.rfind('\t');
  if (end == std::string::npos) end = line.rfind(' ');
  std::string label = end == std::string::npos ? "" : line.substr(end + 1);
  const std::size_t last = line.find_last_not_of(" \t", end);
  std::string path = end == std::string::npos || last == std::string::npos ? "" : line.substr(0, last + 1);
  if (path.empty() || label.empty())
    throw Error(where + " is " + io::in_quotes(line) + ", and should be a path, a tab or spaces, and a label");
  return {std::move(path), std::move(label)};
}

/// "7" or "3,7".
bool read_numbers(std::string_view text, std::vector<std::int64_t>& numbers) {
  numbers.clear();
  while (true) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return false;
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return true;
    if (text.front() != ',') return false;
    text.remove_prefix(1);
  }
}

}  // namespace

std::vector<std::string> read_lines(const fs::path& file) {
  const MappedFile mapped = map_file(file, "a text file");
  const std::string_view text(reinterpret_cast<const char*>(mapped.bytes.data()), mapped.bytes.size());
  if (text.substr(0, 4096).find('\0') != std::string_view::npos) throw Error(file.string() + " is no text file");
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    begin = end + 1;
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

std::vector<std::string> class_names_in(const fs::path& folder) {
  const fs::path file = folder / "classes.txt";
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return {};
  return read_lines(file);
}

Source open_list(const fs::path& file) {
  const std::vector<std::string> lines = read_lines(file);
  Source source{.kind = "a list"};
  std::vector<std::string> paths;
  std::vector<std::string> labels;
  bool numbers_only = true;
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    auto [path, label] = halves(lines[i], "line " + std::to_string(i + 1) + " of " + file.string());
    numbers_only = numbers_only && read_numbers(label, numbers);
    paths.push_back(std::move(path));
    labels.push_back(std::move(label));
  }
  if (paths.empty()) throw Error(file.string() + " lists no images");
  if (numbers_only) {
    source.classes = class_names_in(file.parent_path());
    for (std::size_t i = 0; i < paths.size(); ++i) {
      read_numbers(labels[i], numbers);
      source.labels.add(numbers, paths[i]);
    }
  } else {
    std::map<std::string, std::int64_t> order;
    for (const std::string& label : labels) order.emplace(label, 0);
    for (auto& [name, number] : order) {
      number = static_cast<std::int64_t>(source.classes.size());
      source.classes.push_back(name);
    }
    for (std::size_t i = 0; i < paths.size(); ++i) source.labels.add(order.at(labels[i]), paths[i]);
  }
  const fs::path folder = file.parent_path();
  std::error_code ignored;
  if (!fs::exists(folder / paths.front(), ignored))
    throw Error(
        "the first image that " + file.string() + " lists, " + (folder / paths.front()).string() + ", does not exist",
        "paths in a list are relative to the list");
  source.images = std::make_unique<FileImages>(folder, std::move(paths));
  return source;
}

}  // namespace sylvit::data
