// A folder of classes: one folder a class, with its JPEG and PNG files.
#include <sylvit/error.hpp>

#include <algorithm>
#include <optional>

#include "base/printable.hpp"
#include "data/file_images.hpp"
#include "io/messages.hpp"

namespace sylvit::data {

namespace {

namespace fs = std::filesystem;

struct Listing {
  std::vector<std::string> images;
  std::vector<std::string> folders;
};

/// In the order of their bytes, hidden ones left out.
Listing list(const fs::path& folder) {
  Listing listing;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with('.') || name == "__MACOSX" || name == "@eaDir") continue;
      std::error_code ignored;  // what cannot be looked at is named when it is opened
      if (entry.is_directory(ignored))
        listing.folders.push_back(name);
      else if (named_as_image(entry.path()))
        listing.images.push_back(name);
    }
  } catch (const fs::filesystem_error& error) {
    throw Error("cannot list " + folder.string() + ": " + error.code().message());
  }
  std::ranges::sort(listing.images);
  std::ranges::sort(listing.folders);
  return listing;
}

bool has_images(const fs::path& folder) { return !list(folder).images.empty(); }

/// The folder above, if what it holds looks like classes.
std::optional<fs::path> classes_above(const fs::path& folder) {
  const fs::path above = fs::weakly_canonical(folder).parent_path();
  try {
    const Listing beside = list(above);
    const auto classes =
        std::ranges::count_if(beside.folders, [&](const auto& name) { return has_images(above / name); });
    if (beside.images.empty() && classes > 1) return above;
  } catch (const Error&) {  // which may not be ours to read
  }
  return std::nullopt;
}

[[noreturn]] void refuse_without_classes(const fs::path& folder, const Listing& top) {
  const std::string name = folder.string();
  if (!top.images.empty()) {
    const std::string hint = "a class is a folder of images, and the source is the folder of the classes";
    const std::optional<fs::path> above = classes_above(folder);
    throw Error(name + " holds images (" + base::printable(top.images.front()) + ") and not one folder for each class",
                above ? "did you mean " + above->string() + "?" : hint);
  }
  if (top.folders.empty()) throw Error(name + " holds neither folders of images nor any other images that are known");
  std::vector<std::string> folders = top.folders;
  std::ranges::stable_partition(folders, [](const auto& below) { return below == "train"; });
  for (const std::string& below : folders) {
    const fs::path candidate = folder / below;
    for (const std::string& lower : list(candidate).folders)
      if (has_images(candidate / lower)) {
        const bool split = below == "train" || below == "test" || below.starts_with("val");
        throw Error("the classes of " + name + " are one level further down, such as " + (candidate / lower).string(),
                    "did you mean " + (split ? name + ":" + below : candidate.string()) + "?");
      }
  }
  throw Error("the folders in " + name + " hold no files that end in .jpg, .jpeg or .png");
}

}  // namespace

Source open_folder(const fs::path& folder) {
  const Listing top = list(folder);
  Source source{.kind = "a folder of classes"};
  std::vector<std::string> paths;
  std::vector<std::string> empty;
  for (const std::string& name : top.folders) {
    const Listing files = list(folder / name);
    if (files.images.empty()) {
      empty.push_back(name);
      continue;
    }
    for (const std::string& below : files.folders)
      if (has_images(folder / name / below))
        throw Error((folder / name).string() + " holds images and also a folder of images, " + base::printable(below),
                    "a class is one folder: move the images, so that it is clear which class they are of");
    const auto number = static_cast<std::int64_t>(source.classes.size());
    for (const std::string& file : files.images) {
      paths.push_back(name + "/" + file);
      source.labels.add(number, paths.back());
    }
    source.classes.push_back(name);
  }
  if (source.classes.empty()) refuse_without_classes(folder, top);
  if (!top.images.empty())
    throw Error(
        folder.string() + " holds images beside its folders of classes (" + base::printable(top.images.front()) + ")",
        source.classes.size() == 1 ? "" : "an image outside of a class has no label: move it");
  if (!empty.empty())
    throw Error("the class " + io::in_quotes(empty.front()) + " of " + folder.string() + " has no images" +
                    (empty.size() > 1 ? ", nor have " + std::to_string(empty.size() - 1) + " others" : ""),
                "a class is a folder with files that end in .jpg, .jpeg or .png: fill the folder or remove it");
  source.images = std::make_unique<FileImages>(folder, std::move(paths));
  return source;
}

}  // namespace sylvit::data
