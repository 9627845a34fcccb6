#include "io/files.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "io/messages.hpp"

namespace sylvit::io {

namespace {

/// An open regular file and its size.
struct OpenFile {
  std::shared_ptr<const base::FileDescriptor> descriptor;
  std::uint64_t size;
};

OpenFile open_regular(const std::string& name, std::string_view kind) {
  // Non-blocking, so that a named pipe is refused below instead of waiting here for a writer.
  const auto file =
      std::make_shared<const base::FileDescriptor>(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file->get() < 0) {
    if (errno == ENOENT) throw Error("the file " + name + " does not exist");
    throw Error("cannot open " + name + ": " + system_message(errno));
  }
  struct stat status {};
  if (::fstat(file->get(), &status) != 0) throw Error("cannot examine " + name + ": " + system_message(errno));
  if (S_ISDIR(status.st_mode)) throw Error(name + " is a directory, not " + std::string(kind));
  if (!S_ISREG(status.st_mode)) throw Error(name + " is not a regular file");
  return {file, static_cast<std::uint64_t>(status.st_size)};
}

void read_file(const base::FileDescriptor& file, const std::string& name, std::uint64_t position,
               std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t got = ::pread(file.get(), into.data(), into.size(), static_cast<off_t>(position));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error("cannot read " + name + ": " + system_message(errno));
    if (got == 0)
      throw Error(name + " ends after " + std::to_string(position) + " bytes, and was longer when it was opened",
                  "another program seems to be writing it");
    into = into.subspan(static_cast<std::size_t>(got));
    position += static_cast<std::uint64_t>(got);
  }
}

}  // namespace

ByteSource ByteSource::open(const std::filesystem::path& path, std::string_view kind) {
  ByteSource source;
  source.name_ = path.string();
  const OpenFile file = open_regular(source.name_, kind);
  if (file.size == 0) throw Error(source.name_ + " is empty, not " + std::string(kind));
  source.size_ = file.size;
  source.file_ = file.descriptor;
  return source;
}

ByteSource ByteSource::of(std::span<const std::byte> bytes, std::string name) {
  ByteSource source;
  source.name_ = std::move(name);
  source.size_ = bytes.size();
  source.memory_ = bytes;
  return source;
}

void ByteSource::read(std::uint64_t position, std::span<std::byte> into) const {
  if (position > size_ || into.size() > size_ - position)
    throw Error(name_ + " has " + std::to_string(size_) + " bytes, and " + std::to_string(into.size()) + " from byte " +
                std::to_string(position) + " on are wanted");
  if (file_)
    read_file(*file_, name_, position, into);
  else
    std::ranges::copy(memory_.subspan(static_cast<std::size_t>(position), into.size()), into.begin());
}

std::string read_text(const std::filesystem::path& path, std::string_view kind, std::uint64_t most_bytes) {
  const std::string name = path.string();
  const OpenFile file = open_regular(name, kind);
  if (file.size > most_bytes)
    throw Error(name + " has " + std::to_string(file.size) + " bytes, and " + std::string(kind) + " may have " +
                std::to_string(most_bytes));
  std::string text(static_cast<std::size_t>(file.size), '\0');
  read_file(*file.descriptor, name, 0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace sylvit::io
