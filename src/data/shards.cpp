// Tar shards by WebDataset's rule: the files of a sample have one name up to the first dot.
#include <sylvit/error.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/printable.hpp"
#include "data/archive.hpp"
#include "data/mapped_file.hpp"
#include "data/source.hpp"
#include "io/messages.hpp"

namespace sylvit::data {

namespace {

namespace fs = std::filesystem;

struct Shard {
  std::string name;
  MappedFile file;
};

struct Member {
  std::uint32_t shard = 0;
  std::string path;
  std::size_t begin = 0;
  std::size_t bytes = 0;
};

class ShardImages final : public Images {
 public:
  ShardImages(std::vector<Shard> shards, std::vector<Member> members)
      : shards_(std::move(shards)), members_(std::move(members)) {}

  std::int64_t channels() const override { return 3; }
  std::array<std::int64_t, 2> extents() const override { return {0, 0}; }
  std::array<std::int64_t, 2> extents(std::int64_t index) const override {
    return image_extents(bytes(index), name(index));
  }
  std::string name(std::int64_t index) const override {
    return shards_[member(index).shard].name + ": " + base::printable(member(index).path);
  }
  Image image(std::int64_t index) const override { return decode_image(bytes(index), name(index)); }
  bool worth_keeping() const override { return true; }
  void add_to(Fingerprint& fingerprint) const override {
    for (const Member& member : members_) {
      fingerprint.add(member.path);
      fingerprint.add(std::uint64_t{member.bytes});
    }
  }

 private:
  const Member& member(std::int64_t index) const { return members_[static_cast<std::size_t>(index)]; }
  std::span<const std::byte> bytes(std::int64_t index) const {
    return shards_[member(index).shard].file.bytes.subspan(member(index).begin, member(index).bytes);
  }

  std::vector<Shard> shards_;
  std::vector<Member> members_;
};

/// The numbers in the text of a .cls file.
std::vector<std::int64_t> numbers_of_text(std::string_view text, const std::string& where) {
  std::vector<std::int64_t> numbers;
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0 || c == ','; };
  while (true) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    if (text.empty()) return numbers;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (error != std::errc{} || (!text.empty() && !is_space(text.front())))
      throw Error(where + " holds " + io::in_quotes(text) + ", and a label is a number");
    numbers.push_back(number);
  }
}

/// The numbers of a JSON object's "label", "labels" or "cls", if it has one.
std::optional<std::vector<std::int64_t>> numbers_of_json(std::string_view text, const std::string& where) {
  constexpr std::size_t longest = 1 << 20;
  if (text.size() > longest) throw Error(where + " is longer than " + std::to_string(longest) + " bytes");
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  for (const char* key : {"label", "labels", "cls"}) {
    if (!json.is_object() || !json.contains(key)) continue;
    const nlohmann::json& value = json[key];
    std::vector<std::int64_t> numbers;
    const auto add = [&](const nlohmann::json& one) {
      if (!one.is_number_integer()) throw Error(where + ": its " + key + " is no whole number");
      numbers.push_back(one.get<std::int64_t>());
    };
    if (value.is_array())
      std::ranges::for_each(value, add);
    else
      add(value);
    return numbers;
  }
  return std::nullopt;
}

class Indexer {
 public:
  void add(const fs::path& path) {
    shards_.push_back({path.string(), map_file(path, "a tar file")});
    key_.clear();
    for (const TarMember& member : tar_members(shards_.back().file.bytes, shards_.back().name)) add(member);
    finish_sample();
  }

  Source source() {
    Source source{.kind = "tar shards", .labels = std::move(labels_)};
    if (images_.empty()) throw Error(shards_.front().name + " holds no JPEG or PNG files");
    source.classes = class_names_in(fs::path(shards_.front().name).parent_path());
    source.images = std::make_unique<ShardImages>(std::move(shards_), std::move(images_));
    return source;
  }

 private:
  void add(const TarMember& member) {
    const std::size_t slash = member.path.rfind('/') + 1;  // 0 if there is none
    const std::size_t dot = member.path.find('.', slash);
    if (dot == std::string::npos || dot == slash) return;  // no extension, or a hidden file
    const std::string key = member.path.substr(0, dot);
    std::string extension = member.path.substr(dot + 1);
    std::ranges::transform(extension, extension.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (key != key_) {
      finish_sample();
      key_ = key;
    }
    if (extension == "jpg" || extension == "jpeg" || extension == "png") {
      if (image_)
        throw Error(where() + " has two images, " + base::printable(image_->path) + " and " +
                    base::printable(member.path));
      image_ = Member{static_cast<std::uint32_t>(shards_.size() - 1), member.path, member.begin, member.bytes};
    } else if (extension == "cls" || (extension == "json" && !numbers_)) {
      const auto bytes = shards_.back().file.bytes.subspan(member.begin, member.bytes);
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      const std::string file = shards_.back().name + ": " + base::printable(member.path);
      if (extension == "cls")
        numbers_ = numbers_of_text(text, file);
      else
        numbers_ = numbers_of_json(text, file);
    }
  }

  void finish_sample() {
    if (image_ && !numbers_)
      throw Error(where() + " has no label", "a label is a file " + base::printable(key_) + ".cls with a number, or " +
                                                 base::printable(key_) + ".json with a \"label\"");
    if (numbers_ && !image_) throw Error(where() + " has a label, and no .jpg or .png");
    if (image_) {
      labels_.add(std::move(*numbers_), where());
      images_.push_back(std::move(*image_));
    }
    image_.reset();
    numbers_.reset();
  }

  std::string where() const { return shards_.back().name + ": the sample " + io::in_quotes(key_); }

  std::vector<Shard> shards_;
  std::vector<Member> images_;
  Labels labels_;
  // The sample that is being read.
  std::string key_;
  std::optional<Member> image_;
  std::optional<std::vector<std::int64_t>> numbers_;
};

}  // namespace

Source open_shards(const std::vector<fs::path>& shards) {
  Indexer indexer;
  for (const fs::path& shard : shards) indexer.add(shard);
  return indexer.source();
}

}  // namespace sylvit::data
