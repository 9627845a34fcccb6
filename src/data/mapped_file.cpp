#include "data/mapped_file.hpp"

#include <sylvit/error.hpp>

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/files.hpp"
#include "io/messages.hpp"

namespace sylvit::data {

MappedFile map_file(const std::filesystem::path& path, std::string_view kind) {
  const std::string name = path.string();
  // Non-blocking, so that a named pipe is refused below instead of waiting here for a writer.
  const base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    if (errno == ENOENT) throw Error("the file " + name + " does not exist");
    throw Error("cannot open " + name + ": " + io::system_message(errno));
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw Error("cannot examine " + name + ": " + io::system_message(errno));
  if (S_ISDIR(status.st_mode)) throw Error(name + " is a directory, not " + std::string(kind));
  if (!S_ISREG(status.st_mode)) throw Error(name + " is not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) throw Error(name + " is empty, not " + std::string(kind));

  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED)
    throw Error("cannot map the " + std::to_string(size) + " bytes of " + name + ": " + io::system_message(errno));
  std::shared_ptr<const void> owner(address, [size](void* mapped) { ::munmap(mapped, size); });
  return {{static_cast<const std::byte*>(address), size}, std::move(owner)};
}

}  // namespace sylvit::data
