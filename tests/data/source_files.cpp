#include "data/source_files.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <doctest/doctest.h>
#include <fstream>

namespace sylvit::test {

namespace {

/// An archive that is written into a text.
class Writer {
 public:
  Writer() : archive_(archive_write_new()) {}
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { archive_write_free(archive_); }
  archive* get() { return archive_; }
  void open() {
    archive_write_set_bytes_in_last_block(archive_, 1);
    REQUIRE(archive_write_open(archive_, this, nullptr, write, nullptr) == ARCHIVE_OK);
  }
  void add(const std::string& name, const std::string& content) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    REQUIRE(archive_write_header(archive_, entry) == ARCHIVE_OK);
    REQUIRE(archive_write_data(archive_, content.data(), content.size()) == static_cast<la_ssize_t>(content.size()));
    archive_entry_free(entry);
  }
  std::string take() {
    REQUIRE(archive_write_close(archive_) == ARCHIVE_OK);
    return std::move(text_);
  }

 private:
  static la_ssize_t write(archive*, void* self, const void* bytes, std::size_t count) {
    static_cast<Writer*>(self)->text_.append(static_cast<const char*>(bytes), count);
    return static_cast<la_ssize_t>(count);
  }

  archive* archive_;
  std::string text_;
};

}  // namespace

void write_file(const std::filesystem::path& path, const std::string& content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << content;
  REQUIRE(file.good());
}

Image numbered_image(int number, std::int64_t height, std::int64_t width, std::int64_t channels) {
  Image image{height, width, {}, channels};
  for (std::int64_t i = 0; i < height * width * channels; ++i)
    image.pixels.push_back(static_cast<std::uint8_t>(number * 37 + i * 11));
  return image;
}

std::string png_of(const Image& image) {
  const std::vector<std::byte> file = encode_png(image);
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

std::string tar_of(const Files& members) {
  Writer writer;
  archive_write_set_format_pax_restricted(writer.get());
  writer.open();
  for (const auto& [name, content] : members) writer.add(name, content);
  return writer.take();
}

std::string gzip_of(const std::string& content) {
  Writer writer;
  archive_write_set_format_raw(writer.get());
  archive_write_add_filter_gzip(writer.get());
  writer.open();
  writer.add("content", content);
  return writer.take();
}

std::string idx_of(const std::vector<std::uint32_t>& extents, const std::string& elements) {
  std::string text = bytes_of(0, 0, 8, extents.size());
  for (const std::uint32_t extent : extents) text += bytes_of(extent >> 24U, extent >> 16U, extent >> 8U, extent);
  return text + elements;
}

}  // namespace sylvit::test
