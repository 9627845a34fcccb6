// Which kind a source is of.
#include <sylvit/error.hpp>

#include <algorithm>
#include <cctype>
#include <optional>

#include "data/source.hpp"
#include "io/messages.hpp"

namespace sylvit::data {

namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// The names of the files of a folder, sorted.
std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      std::error_code ignored;
      if (!entry.is_directory(ignored)) names.push_back(entry.path().filename().string());
    }
  } catch (const fs::filesystem_error& error) {
    throw Error("cannot list " + folder.string() + ": " + error.code().message());
  }
  std::ranges::sort(names);
  return names;
}

/// "a{1..3}b{x,y}" as a1bx, a1by, a2bx, …
std::vector<std::string> expand(const std::string& text) {
  constexpr std::size_t most = 1'000'000;
  const std::size_t open = text.find('{');
  const std::size_t close = text.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {text};
  const std::string inside = text.substr(open + 1, close - open - 1);
  const auto refuse = [&] {
    throw Error("the braces of " + text + " are not understood: {000..146} and {a,b} are, for at most " +
                std::to_string(most) + " names");
  };
  std::vector<std::string> parts;
  if (const std::size_t dots = inside.find(".."); dots != std::string::npos) {
    const std::string first = inside.substr(0, dots);
    const std::string last = inside.substr(dots + 2);
    const auto is_number = [](const std::string& word) {
      return !word.empty() && word.size() <= 12 &&
             std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
    };
    if (!is_number(first) || !is_number(last)) refuse();
    const std::int64_t begin = std::stoll(first);
    const std::int64_t end = std::stoll(last);
    if (end < begin || end - begin >= static_cast<std::int64_t>(most)) refuse();
    for (std::int64_t number = begin; number <= end; ++number) {
      std::string digits = std::to_string(number);
      if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
      parts.push_back(std::move(digits));
    }
  } else {
    for (std::size_t begin = 0; begin <= inside.size();) {
      const std::size_t end = std::min(inside.find(',', begin), inside.size());
      parts.push_back(inside.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  const std::vector<std::string> behind = expand(text.substr(close + 1));
  if (parts.size() > most / behind.size()) refuse();
  std::vector<std::string> all;
  for (const std::string& part : parts)
    for (const std::string& rest : behind) all.push_back(text.substr(0, open) + part + rest);
  return all;
}

/// A path, and what stood behind it.
struct Address {
  fs::path path;
  std::string split;

  std::string text() const { return split.empty() ? path.string() : path.string() + ":" + split; }
};

Address address_of(const std::string& source) {
  if (is_there(source)) return {source, {}};
  const std::size_t colon = source.rfind(':');
  const bool is_word = colon != std::string::npos && colon > 0 && colon + 1 < source.size() &&
                       std::all_of(source.begin() + static_cast<std::ptrdiff_t>(colon) + 1, source.end(),
                                   [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
  if (is_word) return {source.substr(0, colon), source.substr(colon + 1)};
  return {source, {}};
}

/// What else a part is called. The first name is the one that was given.
std::vector<std::string> names_of_split(const std::string& split) {
  if (split == "test") return {"test", "t10k"};
  if (split == "val" || split == "validation" || split == "valid") return {split, "val", "validation", "valid"};
  return {split};
}

/// Does the name hold the word, not as a part of a longer one?
bool has_word(const std::string& name, const std::string& word) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
    const bool begins = at == 0 || !is_letter(name[at - 1]);
    const std::size_t end = at + word.size();
    if (begins && (end == name.size() || !is_letter(name[end]))) return true;
  }
  return false;
}

/// The files that are of the part; all, where none is asked for.
std::vector<std::string> of_split(const std::vector<std::string>& names, const std::string& split) {
  if (split.empty()) return names;
  std::vector<std::string> chosen;
  for (const std::string& word : names_of_split(split)) {
    std::ranges::copy_if(names, std::back_inserter(chosen), [&](const auto& name) { return has_word(name, word); });
    if (!chosen.empty()) break;
  }
  return chosen;
}

/// The parts that some names speak of.
std::string splits_of(const std::vector<std::string>& names, const fs::path& path) {
  std::string list;
  for (const char* split : {"train", "test", "val"})
    if (!of_split(names, split).empty()) io::add_to_list(list, path.string() + ":" + split, " or ");
  return list;
}

std::optional<Source> open_mnist(const fs::path& folder, const std::string& split,
                                 const std::vector<std::string>& names) {
  std::vector<std::string> images;
  for (const std::string& name : names)
    if (name.find("images") != std::string::npos && name.find("idx3-ubyte") != std::string::npos)
      images.push_back(name);
  if (images.empty()) return std::nullopt;
  const std::vector<std::string> chosen = of_split(images, split);
  if (chosen.empty())
    throw Error(folder.string() + " has no images of " + split, "there is " + splits_of(images, folder));
  if (chosen.size() > 1 && split.empty())
    throw Error(folder.string() + " comes split", "say " + splits_of(images, folder));
  // The same file packed and unpacked may be there; the unpacked one comes first.
  if (chosen.size() > 2 || (chosen.size() == 2 && chosen[1] != chosen[0] + ".gz"))
    throw Error(folder.string() + " has several files of images for " + split + ": " + chosen[0] + " and " + chosen[1],
                "put those of a set into a folder of their own");
  std::string labels = chosen[0];
  labels.replace(labels.find("images"), 6, "labels");
  labels.replace(labels.find("idx3"), 4, "idx1");
  if (!is_there(folder / labels)) {  // one of the two packed
    if (labels.ends_with(".gz"))
      labels.resize(labels.size() - 3);
    else
      labels += ".gz";
  }
  return open_idx(folder / chosen[0], folder / labels);
}

std::optional<Source> open_cifar_folder(const fs::path& folder, const std::string& split,
                                        const std::vector<std::string>& names) {
  const auto has = [&](const char* name) { return std::ranges::binary_search(names, std::string(name)); };
  const bool ten = has("data_batch_1.bin") || has("test_batch.bin");
  const bool hundred = !ten && (has("train.bin") || has("test.bin"));
  if (!ten && !hundred) return std::nullopt;
  if (split != "train" && split != "test")
    throw Error(folder.string() + (split.empty() ? " comes split" : " has no " + split),
                "say " + folder.string() + ":train or " + folder.string() + ":test");
  CifarFiles files;
  if (hundred) {
    files = {{folder / (split + ".bin")}, folder / "fine_label_names.txt", 2};
  } else {
    files.names = folder / "batches.meta.txt";
    if (split == "test") {
      files.batches = {folder / "test_batch.bin"};
    } else {
      for (const std::string& name : names)
        if (name.starts_with("data_batch_") && name.ends_with(".bin")) files.batches.push_back(folder / name);
    }
  }
  return open_cifar(files);
}

std::optional<Source> open_shard_folder(const fs::path& folder, const std::string& split,
                                        const std::vector<std::string>& names) {
  std::vector<std::string> shards;
  std::ranges::copy_if(names, std::back_inserter(shards), [](const auto& name) { return name.ends_with(".tar"); });
  if (shards.empty()) return std::nullopt;
  const std::vector<std::string> chosen = of_split(shards, split);
  const std::string splits = splits_of(shards, folder);
  if (chosen.empty())
    throw Error(folder.string() + " has no shards of " + split, splits.empty() ? "" : "there is " + splits);
  if (split.empty() && splits.find(" or ") != std::string::npos)
    throw Error(folder.string() + " comes split", "say " + splits);
  std::vector<fs::path> paths;
  for (const std::string& name : chosen) paths.push_back(folder / name);
  return open_shards(paths);
}

Source open_folder_of_any_kind(const fs::path& folder, const std::string& split) {
  const std::vector<std::string> names = files_in(folder);
  if (auto source = open_mnist(folder, split, names)) return std::move(*source);
  if (auto source = open_cifar_folder(folder, split, names)) return std::move(*source);
  if (auto source = open_shard_folder(folder, split, names)) return std::move(*source);
  if (split.empty()) return open_folder(folder);
  for (const std::string& name : names_of_split(split)) {
    if (is_folder(folder / name)) return open_folder_of_any_kind(folder / name, {});
    for (const char* ending : {".npz", ".safetensors", ".tsv", ".txt"})
      if (is_there(folder / (name + ending))) return open_source((folder / (name + ending)).string());
  }
  throw Error(folder.string() + " has no " + split + ": there is neither a folder nor a file of that name");
}

Source open_file(const Address& address) {
  const std::string name = address.path.filename().string();
  const auto unsplit = [&] {
    if (!address.split.empty())
      throw Error(address.path.string() + " does not come split", "leave out :" + address.split);
  };
  if (name.ends_with(".npz")) return open_npz(address.path, address.split);
  if (name.ends_with(".safetensors")) return open_safetensors(address.path, address.split);
  unsplit();
  if (name.ends_with(".tar")) return open_shards({address.path});
  for (const char* ending : {".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2"})
    if (name.ends_with(ending))
      throw Error(address.path.string() + " is a packed tar file, of which single images cannot be read",
                  "unpack it to .tar");
  if (name.ends_with(".gz") || name.find("ubyte") != std::string::npos || name.ends_with(".bin"))
    throw Error(address.path.string() + " is one file of a set",
                "the source is its folder, " + address.path.parent_path().string());
  if (named_as_image(address.path))
    throw Error(address.path.string() + " is one image", "a source is a folder of classes, each a folder of images");
  return open_list(address.path);
}

}  // namespace

Source open_source(const std::string& text) {
  const Address address = address_of(text);
  if (!is_there(address.path)) {
    if (address.path.string().find('{') != std::string::npos) {
      std::vector<fs::path> shards;
      for (const std::string& name : expand(address.path.string()))
        if (!of_split({name}, address.split).empty()) shards.emplace_back(name);
      if (!shards.empty()) return open_shards(shards);
    }
    throw Error("there is no " + address.path.string());
  }
  if (is_folder(address.path)) return open_folder_of_any_kind(address.path, address.split);
  return open_file(address);
}

}  // namespace sylvit::data
