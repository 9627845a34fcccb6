#include "runtime/kernel_cache.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <span>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/temporary_file.hpp"

namespace sylvit::runtime {

namespace fs = std::filesystem;

std::uint64_t fnv1a(std::string_view bytes, std::uint64_t seed) {
  std::uint64_t hash = seed;
  for (const char byte : bytes) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3U;
  }
  return hash;
}

std::string fingerprint(std::string_view text) {
  std::array<char, 33> digits{};
  const std::uint64_t first = fnv1a(text);
  std::snprintf(digits.data(), digits.size(), "%016llx%016llx", static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(fnv1a(text, first ^ 0x9e3779b97f4a7c15U)));
  return digits.data();
}

namespace {

constexpr std::string_view magic = "sylvit kernels 1";
constexpr std::string_view extension = ".kernels";
constexpr off_t largest_entry = off_t{1} << 30;

/// "sylvit kernels 1 <key bytes> <binary bytes> <checksum>\n"
std::string preamble(std::string_view key, std::string_view binary) {
  return std::string(magic) + " " + std::to_string(key.size()) + " " + std::to_string(binary.size()) + " " +
         std::to_string(fnv1a(binary, fnv1a(key))) + "\n";
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Makes a directory, and those above it, for this user alone; returns why not. Nothing is made in a directory of
/// another user (root with a user's HOME, say), who could not remove it; /tmp and its like are for that.
std::string make_private(const fs::path& directory) {
  struct stat status {};
  if (::stat(directory.c_str(), &status) == 0) return {};
  if (errno != ENOENT) return "it cannot be made: " + std::generic_category().message(errno);
  const fs::path above =
      directory.has_parent_path() && directory.parent_path() != directory ? directory.parent_path() : fs::path(".");
  if (std::string reason = make_private(above); !reason.empty()) return reason;
  if (::stat(above.c_str(), &status) == 0 && base::is_foreign(status) && (status.st_mode & S_ISVTX) == 0)
    return "it is not there, and " + above.string() + ", where it would be made, " + base::whose(status);
  // Another process may have made it meanwhile; a link that leads nowhere is there, too, and no directory.
  if (::mkdir(directory.c_str(), S_IRWXU) != 0 && (errno != EEXIST || ::stat(directory.c_str(), &status) != 0))
    return directory.string() + " cannot be made: " + std::generic_category().message(errno);
  return {};
}

}  // namespace

KernelCache KernelCache::from_environment(std::function<void(std::string_view)> warn) {
  fs::path directory;
  if (const std::string own = environment("SYLVIT_CACHE_DIR"); !own.empty())
    directory = own;
  else if (const std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty())
    directory = fs::path(xdg) / "sylvit" / "kernels";
  else if (const std::string home = environment("HOME"); !home.empty())
    directory = fs::path(home) / ".cache" / "sylvit" / "kernels";

  std::uintmax_t megabytes = 256;
  if (const std::string text = environment("SYLVIT_CACHE_LIMIT_MB"); !text.empty()) {
    std::uintmax_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{} && end == text.data() + text.size() && value <= 1U << 20U)
      megabytes = value;
    else
      warn("SYLVIT_CACHE_LIMIT_MB='" + text + "' is not a number of megabytes; 256 is used");
  }
  if (megabytes == 0) directory.clear();
  return {directory, megabytes << 20U, std::move(warn)};
}

KernelCache::KernelCache(fs::path directory, std::uintmax_t limit_bytes, std::function<void(std::string_view)> warn)
    : directory_(std::move(directory)), limit_bytes_(limit_bytes), warn_(std::move(warn)) {}

fs::path KernelCache::path_of(std::string_view key) const {
  return directory_ / (fingerprint(key) + std::string(extension));
}

void KernelCache::go_without(const std::string& reason) const {
  warn_("the kernel cache " + directory_.string() + " is not used: " + reason +
        "; kernels will be built anew each time. Set SYLVIT_CACHE_DIR to a directory of your own");
}

/// Everything else begins with this descriptor, so the directory that was looked at is the one that is used.
base::FileDescriptor KernelCache::trusted_directory() const {
  base::FileDescriptor directory(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  std::string reason;
  if (directory.get() >= 0 && ::fstat(directory.get(), &status) == 0)
    reason = base::distrusted(status);
  else if (errno == ENOENT)
    return base::FileDescriptor(-1);
  else
    reason = "it cannot be opened: " + std::generic_category().message(errno);
  if (reason.empty()) return directory;
  go_without(reason);
  return base::FileDescriptor(-1);
}

std::optional<std::vector<char>> KernelCache::load(std::string_view key) const {
  if (directory_.empty()) return {};
  const base::FileDescriptor directory = trusted_directory();
  if (directory.get() < 0) return {};
  const auto file = base::open_regular_file(directory.get(), path_of(key).filename(), O_NOFOLLOW);
  if (!file || file->status.st_size > largest_entry) return {};
  // An entry is code. In a directory that is the user's own, another's file was put there by mistake, e.g. copied.
  if (const std::string reason = base::distrusted(file->status); !reason.empty()) {
    warn_("an entry of the kernel cache " + directory_.string() + " is not used: " + reason);
    return {};
  }
  const std::optional<std::string> bytes = file->read();
  if (!bytes) return {};
  // Everything in the file follows from the key and the binary: make it again and compare.
  const std::size_t line = bytes->find('\n');
  if (line == std::string::npos || bytes->size() < line + 1 + key.size()) return {};
  const std::string_view binary = std::string_view(*bytes).substr(line + 1 + key.size());
  if (std::string_view(*bytes).substr(0, line + 1) != preamble(key, binary)) return {};
  if (std::string_view(*bytes).substr(line + 1, key.size()) != key) return {};
  ::futimens(file->descriptor.get(), nullptr);  // recently used: the last to be removed
  return std::vector<char>(binary.begin(), binary.end());
}

void KernelCache::store(std::string_view key, std::string_view binary) const try {
  if (directory_.empty()) return;
  if (const std::string reason = make_private(directory_); !reason.empty()) return go_without(reason);
  const base::FileDescriptor directory = trusted_directory();
  if (directory.get() < 0) return;
  const std::string first = preamble(key, binary);
  base::TemporaryFile file(path_of(key), "the kernel cache " + directory_.string(), S_IRUSR | S_IWUSR);
  for (const std::string_view part : {std::string_view(first), key, binary}) file.write(std::as_bytes(std::span(part)));
  file.rename_into_place();  // not flushed: what a power cut damages is built anew
  remove_oldest(directory, path_of(key).filename());
} catch (const Error& error) {
  warn_(error.failure() +
        "; kernels will be built anew each time. Set SYLVIT_CACHE_DIR to a writable directory of your own");
}

void KernelCache::remove_oldest(const base::FileDescriptor& directory, const std::string& keep) const {
  struct Entry {
    std::string name;
    timespec time;
    std::uintmax_t bytes;
  };
  std::vector<Entry> entries;
  std::uintmax_t total = 0;
  std::error_code error;
  for (fs::directory_iterator file(directory_, error), end; !error && file != end; file.increment(error)) {
    if (file->path().extension() != extension) continue;
    struct stat status {};
    const std::string name = file->path().filename();
    // Another process may be removing too.
    if (::fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
      continue;
    entries.push_back({name, status.st_mtim, static_cast<std::uintmax_t>(status.st_size)});
    total += entries.back().bytes;
  }
  std::ranges::sort(entries, {}, [](const Entry& entry) { return std::pair(entry.time.tv_sec, entry.time.tv_nsec); });
  for (const Entry& entry : entries) {
    if (total <= limit_bytes_) break;
    if (entry.name == keep) continue;
    ::unlinkat(directory.get(), entry.name.c_str(), 0);
    total -= entry.bytes;
  }
}

}  // namespace sylvit::runtime
