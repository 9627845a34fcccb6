#include "runtime/kernel_cache.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <unistd.h>

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

/// "sylvit kernels 1 <key bytes> <binary bytes> <checksum>\n"
std::string preamble(std::string_view key, std::string_view binary) {
  return std::string(magic) + " " + std::to_string(key.size()) + " " + std::to_string(binary.size()) + " " +
         std::to_string(fnv1a(binary, fnv1a(key))) + "\n";
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
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

std::optional<std::vector<char>> KernelCache::load(std::string_view key) const {
  if (directory_.empty()) return {};
  const fs::path path = path_of(key);
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  // Through a stream, which notes a failure to read (of a directory, say) instead of throwing: that is no entry either.
  std::ostringstream content;
  content << file.rdbuf();
  if (!content) return {};
  const std::string bytes = std::move(content).str();
  // Everything in the file follows from the key and the binary: make it again and compare.
  const std::size_t line = bytes.find('\n');
  if (line == std::string::npos || bytes.size() < line + 1 + key.size()) return {};
  const std::string_view binary = std::string_view(bytes).substr(line + 1 + key.size());
  if (std::string_view(bytes).substr(0, line + 1) != preamble(key, binary)) return {};
  if (std::string_view(bytes).substr(line + 1, key.size()) != key) return {};
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);  // recently used: the last to be removed
  return std::vector<char>(binary.begin(), binary.end());
}

void KernelCache::store(std::string_view key, std::string_view binary) const {
  if (directory_.empty()) return;
  const auto complain = [&](const std::string& reason) {
    warn_("the kernel cache " + directory_.string() + " cannot be written (" + reason +
          "); kernels will be built anew each time. Set SYLVIT_CACHE_DIR to a writable directory");
  };
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) return complain(error.message());
  const fs::path path = path_of(key);
  static std::atomic<unsigned> counter{0};
  const fs::path temporary =
      path.string() + "." + std::to_string(getpid()) + "." + std::to_string(counter++) + ".partial";
  errno = 0;
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file << preamble(key, binary) << key;
    file.write(binary.data(), static_cast<std::streamsize>(binary.size()));
    file.close();
    if (!file) {
      const std::string reason = errno != 0 ? std::generic_category().message(errno) : "writing failed";
      fs::remove(temporary, error);
      return complain(reason);
    }
  }
  fs::rename(temporary, path, error);
  if (error) {
    const std::string reason = error.message();
    fs::remove(temporary, error);
    return complain(reason);
  }
  remove_oldest(path);
}

void KernelCache::remove_oldest(const fs::path& keep) const {
  struct Entry {
    fs::path path;
    fs::file_time_type time;
    std::uintmax_t bytes;
  };
  std::vector<Entry> entries;
  std::uintmax_t total = 0;
  std::error_code error;
  const auto hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (fs::directory_iterator file(directory_, error), end; !error && file != end; file.increment(error)) {
    std::error_code gone;  // another process may be removing too
    const fs::file_time_type time = file->last_write_time(gone);
    const std::uintmax_t bytes = gone ? 0 : file->file_size(gone);
    if (gone) continue;
    if (file->path().extension() == extension) {
      entries.push_back({file->path(), time, bytes});
      total += bytes;
    } else if (file->path().extension() == ".partial" && time < hour_ago) {
      fs::remove(file->path(), gone);  // left by a process that was ended while writing
    }
  }
  std::ranges::sort(entries, {}, &Entry::time);
  for (const Entry& entry : entries) {
    if (total <= limit_bytes_) break;
    if (entry.path == keep) continue;
    std::error_code gone;
    fs::remove(entry.path, gone);
    total -= entry.bytes;
  }
}

}  // namespace sylvit::runtime
