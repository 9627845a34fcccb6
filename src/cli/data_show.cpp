// sylvit data show: what a set of labelled images holds, and what is wrong with it.
#include <sylvit/data.hpp>
#include <sylvit/error.hpp>

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/temporary_file.hpp"
#include "cli/commands.hpp"
#include "data/inspect.hpp"
#include "terminal/print.hpp"

namespace sylvit::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string source;
  std::string sheet;
  std::string against;
  bool all = false;
  bool json = false;
};

std::string range(const std::array<std::int64_t, 2>& least_and_most) {
  const auto [least, most] = least_and_most;
  return least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
}

void write_sheet(const ImageSet& set, const std::string& path) {
  constexpr std::int64_t most_classes = 100;
  constexpr std::int64_t images = 16;
  base::TemporaryFile file(path);
  file.write(encode_png(data::contact_sheet(set, most_classes, images)));
  file.flush();
  file.rename_into_place();
}

/// Images of the first set that the second one has.
struct Overlap {
  std::vector<data::SameImage> same;
  std::int64_t of = 0;  // images of the smaller set

  /// A few images are often in both parts of a public set; more is a mistake.
  bool is_too_much() const { return static_cast<std::int64_t>(same.size()) * 100 > of; }
};

void print_text(const ImageSet& set, const data::Sizes& sizes) {
  constexpr std::size_t most_rows = 100;
  const std::vector<std::int64_t> counts = set.histogram();
  terminal::print("{}\n  kind         {}\n  images       {}\n", set.source(), set.kind(), set.size());
  terminal::print("  size         {} high, {} wide, {} {}{}\n", range(sizes.height), range(sizes.width), set.channels(),
                  set.channels() == 1 ? "channel" : "channels",
                  sizes.looked_at < set.size() ? fmt::format(" ({} images looked at)", sizes.looked_at) : "");
  const auto [least, most] = std::ranges::minmax(counts);
  terminal::print("  classes      {}, of {} images each\n  fingerprint  {}\n\n", set.classes(), range({least, most}),
                  set.fingerprint());
  constexpr std::int64_t widest = 40;
  for (std::size_t i = 0; i < std::min(counts.size(), most_rows); ++i) {
    std::string bar;
    for (std::int64_t drawn = 0; drawn < counts[i] * widest / most; ++drawn) bar += "█";
    terminal::print("  {:>5}  {:<24} {:>8}  {}\n", i, set.class_names()[i], counts[i], bar);
  }
  if (counts.size() > most_rows) terminal::print("  and {} more\n", counts.size() - most_rows);
}

Json as_json(const ImageSet& set, const data::Sizes& sizes) {
  const std::vector<std::int64_t> counts = set.histogram();
  Json classes = Json::array();
  for (std::size_t i = 0; i < counts.size(); ++i)
    classes.push_back({{"name", set.class_names()[i]}, {"images", counts[i]}});
  Json unreadable = Json::array();
  for (const auto& [index, reason] : sizes.unreadable)
    unreadable.push_back({{"name", set.name(index)}, {"reason", reason}});
  return {{"source", set.source()},       {"kind", set.kind()},
          {"images", set.size()},         {"channels", set.channels()},
          {"height", sizes.height},       {"width", sizes.width},
          {"looked_at", sizes.looked_at}, {"fingerprint", set.fingerprint()},
          {"classes", classes},           {"unreadable", unreadable}};
}

Overlap compare(const ImageSet& set, const std::string& source) {
  // The other part of a set need not have every class.
  const ImageSet other = ImageSet::open(source, {.classes = set.class_names(), .channels = set.channels()});
  Overlap overlap{data::same_images(set, other), std::min(set.size(), other.size())};
  constexpr std::size_t most_named = 5;
  for (std::size_t i = 0; i < std::min(most_named, overlap.same.size()); ++i)
    terminal::print(stderr, "sylvit: {} is the same as {}\n", set.name(overlap.same[i].first),
                    other.name(overlap.same[i].second));
  return overlap;
}

void show(const Options& options) {
  const ImageSet set = ImageSet::open(options.source);
  constexpr std::int64_t most = 1000;
  const data::Sizes sizes = data::sizes_of(set, most, options.all);
  for (const auto& [index, reason] : sizes.unreadable) terminal::print(stderr, "sylvit: {}\n", reason);
  Json document;
  if (options.json)
    document = as_json(set, sizes);
  else
    print_text(set, sizes);
  if (!options.sheet.empty()) write_sheet(set, options.sheet);
  Overlap overlap;
  if (!options.against.empty()) {
    overlap = compare(set, options.against);
    document["against"] = {{"source", options.against}, {"same", overlap.same.size()}};
    if (!options.json) terminal::print("\n  {} images are in {} too\n", overlap.same.size(), options.against);
  }
  // A path may have any bytes; invalid UTF-8 is replaced rather than fatal.
  if (options.json) terminal::print_json(document);
  if (!sizes.unreadable.empty())
    throw Error(fmt::format("{} of {} images that were looked at cannot be read", sizes.unreadable.size(),
                            sizes.looked_at + static_cast<std::int64_t>(sizes.unreadable.size())));
  if (overlap.is_too_much())
    throw Error(fmt::format("{} images of {} are in {} too: what is trained with cannot be tested with",
                            overlap.same.size(), options.source, options.against));
  if (!overlap.same.empty())
    terminal::print(stderr, "sylvit: warning: {} images of {} are in {} too\n", overlap.same.size(), options.source,
                    options.against);
}

}  // namespace

void add_data_show(CLI::App& data) {
  CLI::App* command = data.add_subcommand("show", "Show what a set of labelled images holds");
  auto options = std::make_shared<Options>();
  command->add_option("source", options->source, "A folder of classes, tar shards, arrays, a list, …, or PATH:train")
      ->required();
  command->add_option("--sheet", options->sheet, "Write a PNG file with a row of images for each class");
  command->add_option("--against", options->against, "Another source: which images are in both?");
  command->add_flag("--all", options->all, "Read every image to its end, and name those that cannot be read");
  command->add_flag("--json", options->json, "Print one JSON document");
  command->footer(
      "It fails if images cannot be read, and with --against if more than one in a hundred images of the smaller set "
      "are\n"
      "in both. Fewer are a warning.");
  command->callback([options] { show(*options); });
}

}  // namespace sylvit::cli
