#include <algorithm>
#include <csignal>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "runtime/kernel_cache.hpp"
#include "support.hpp"

using namespace sylvit;
using runtime::KernelCache;
using test::read_file;
namespace fs = std::filesystem;

namespace {

struct Fixture {
  test::TemporaryDirectory directory;
  std::vector<std::string> warnings;
  std::function<void(std::string_view)> warn = [this](std::string_view text) { warnings.emplace_back(text); };
  KernelCache cache{directory.path() / "kernels", 1 << 20, warn};
};

std::string as_text(const std::optional<std::vector<char>>& binary) {
  return binary ? std::string(binary->begin(), binary->end()) : "(nothing)";
}

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

int files_in(const fs::path& directory, std::string_view extension) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().extension() == extension) ++count;
  return count;
}

unsigned mode_of(const fs::path& path) {
  struct stat status {};
  REQUIRE(lstat(path.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// Another user's id. Only root can give files away; others leave out what needs that.
constexpr uid_t another_user = 12345;
bool can_give_away() {
  if (geteuid() == 0) return true;
  MESSAGE("left out: only root can give files away");
  return false;
}

}  // namespace

TEST_SUITE("runtime/kernel_cache") {
  TEST_CASE_FIXTURE(Fixture, "what is stored is loaded, under its own key only") {
    cache.store("key one", std::string("binary\0with\nbytes", 17));
    cache.store("key two", "");
    CHECK(as_text(cache.load("key one")) == std::string("binary\0with\nbytes", 17));
    CHECK(as_text(cache.load("key two")).empty());
    CHECK_FALSE(cache.load("key three"));
    CHECK(warnings.empty());
    CHECK(files_in(cache.directory(), ".tmp") == 0);
  }

  TEST_CASE_FIXTURE(Fixture, "a truncated, damaged or foreign entry is as good as none, and is replaced") {
    cache.store("key", "the binary of a kernel");
    const std::string good = read_file(cache.path_of("key"));
    for (std::size_t length = 0; length < good.size(); ++length) {
      write(cache.path_of("key"), good.substr(0, length));
      CHECK_FALSE(cache.load("key"));
    }
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::string damaged = good;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
      write(cache.path_of("key"), damaged);
      CHECK_FALSE(cache.load("key"));
    }
    write(cache.path_of("key"), good + "x");
    CHECK_FALSE(cache.load("key"));
    cache.store("other key", "another binary");
    fs::copy_file(cache.path_of("other key"), cache.path_of("key"), fs::copy_options::overwrite_existing);
    CHECK_FALSE(cache.load("key"));
    cache.store("key", "new");
    CHECK(as_text(cache.load("key")) == "new");
    fs::remove(cache.path_of("key"));
    fs::create_directories(cache.path_of("key"));
    CHECK_FALSE(cache.load("key"));
  }

  TEST_CASE_FIXTURE(Fixture, "an unwritable directory is a warning that says what to do") {
    write(directory.path() / "file", "not a directory");
    const KernelCache bad(directory.path() / "file" / "kernels", 1 << 20, warn);
    bad.store("key", "binary");
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("SYLVIT_CACHE_DIR") != std::string::npos);
    CHECK(warnings[0].find((directory.path() / "file").string()) != std::string::npos);
    CHECK_FALSE(bad.load("key"));
  }

  TEST_CASE_FIXTURE(Fixture, "a full disk is a warning and leaves nothing behind") {
    // A limit on file sizes stands in for a full disk: the write fails half-way.
    cache.store("before", "small");
    rlimit old{};
    REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
    auto* handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{4096, old.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    cache.store("key", std::string(100000, 'x'));
    REQUIRE(setrlimit(RLIMIT_FSIZE, &old) == 0);
    std::signal(SIGXFSZ, handler);
    CHECK(warnings.size() == 1);
    CHECK_FALSE(cache.load("key"));
    CHECK(files_in(cache.directory(), ".tmp") == 0);
    CHECK(as_text(cache.load("before")) == "small");
  }

  TEST_CASE_FIXTURE(Fixture, "the size stays within the limit, and the oldest go first") {
    const KernelCache small(directory.path() / "small", 10000, warn);
    const auto store_aged = [&](const std::string& key, int minutes_old) {
      small.store(key, std::string(3000, 'x'));
      fs::last_write_time(small.path_of(key), fs::file_time_type::clock::now() - std::chrono::minutes(minutes_old));
    };
    store_aged("oldest", 50);
    store_aged("used", 40);
    store_aged("middle", 30);
    CHECK(small.load("used"));  // so it is no longer old
    small.store("new", std::string(3000, 'x'));
    CHECK_FALSE(small.load("oldest"));
    CHECK(small.load("used"));
    CHECK(small.load("new"));
    small.store("larger than the limit", std::string(20000, 'x'));
    CHECK(small.load("larger than the limit"));  // it was just built: keep it, drop the rest
    CHECK_FALSE(small.load("used"));
  }

  TEST_CASE_FIXTURE(Fixture, "what a killed process left behind is removed") {
    cache.store("key", "binary");
    const fs::path left = cache.directory() / ".sylvit-0123456789abcdef.tmp";
    write(left, "half");
    const fs::path other = cache.directory() / "notes.tmp";
    write(other, "mine");
    cache.store("key", "binary");
    CHECK_FALSE(fs::exists(left));
    CHECK(fs::exists(other));
  }

  TEST_CASE_FIXTURE(Fixture, "directories and entries are for the user alone, whatever the umask") {
    const mode_t before = umask(0);
    const KernelCache deep(directory.path() / "a" / "b", 1 << 20, warn);
    deep.store("key", "binary");
    umask(before);
    CHECK(mode_of(directory.path() / "a") == 0700);
    CHECK(mode_of(directory.path() / "a" / "b") == 0700);
    CHECK(mode_of(deep.path_of("key")) == 0600);
    CHECK(warnings.empty());
  }

  TEST_CASE_FIXTURE(Fixture, "a directory that others can write to is not used") {
    cache.store("key", "binary");
    for (const unsigned mode : {0770U, 0702U, 01777U}) {
      CAPTURE(mode);
      REQUIRE(chmod(cache.directory().c_str(), mode) == 0);
      warnings.clear();
      CHECK_FALSE(cache.load("key"));
      cache.store("new", "binary");
      CHECK_FALSE(fs::exists(cache.path_of("new")));
      REQUIRE(warnings.size() == 2);  // a Device says the sentence once
      CHECK(warnings[0] == warnings[1]);
      CHECK(warnings[0].find("others may write to it (mode ") != std::string::npos);
      CHECK(warnings[0].find(cache.directory().string()) != std::string::npos);
      CHECK(warnings[0].find("SYLVIT_CACHE_DIR") != std::string::npos);
    }
    REQUIRE(chmod(cache.directory().c_str(), 0755) == 0);
    CHECK(cache.load("key"));
  }

  TEST_CASE_FIXTURE(Fixture, "an entry that others can write to is not used, and is replaced") {
    cache.store("key", "binary");
    for (const unsigned mode : {0620U, 0602U}) {
      REQUIRE(chmod(cache.path_of("key").c_str(), mode) == 0);
      CHECK_FALSE(cache.load("key"));
    }
    CHECK(warnings.size() == 2);
    cache.store("key", "binary");
    CHECK(mode_of(cache.path_of("key")) == 0600);
    CHECK(cache.load("key"));
  }

  TEST_CASE_FIXTURE(Fixture, "what belongs to another user is not used") {
    if (!can_give_away()) return;
    cache.store("key", "binary");
    REQUIRE(lchown(cache.path_of("key").c_str(), another_user, another_user) == 0);
    CHECK_FALSE(cache.load("key"));
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("belongs to user 12345 and not to user 0") != std::string::npos);
    cache.store("key", "binary");
    CHECK(cache.load("key"));

    REQUIRE(lchown(cache.directory().c_str(), another_user, another_user) == 0);
    CHECK_FALSE(cache.load("key"));
    cache.store("new", "binary");
    CHECK_FALSE(fs::exists(cache.path_of("new")));
    CHECK(warnings.size() == 3);
    // Nor is anything made in it: whose it is could not remove that.
    const KernelCache inside(cache.directory() / "inside", 1 << 20, warn);
    inside.store("key", "binary");
    CHECK_FALSE(fs::exists(inside.directory()));
    REQUIRE(warnings.size() == 4);
    CHECK(warnings[3].find(cache.directory().string() + ", where it would be made, belongs to user 12345") !=
          std::string::npos);
  }

  TEST_CASE_FIXTURE(Fixture, "a link, a pipe or a device is no entry, and nothing waits for it") {
    cache.store("real", "binary");
    cache.store("key", "binary");
    const auto replaced_by = [&](auto&& make) {
      REQUIRE(fs::remove(cache.path_of("key")));
      make();
      CHECK_FALSE(cache.load("key"));
      cache.store("key", "new");
      CHECK(as_text(cache.load("key")) == "new");
      CHECK(fs::is_regular_file(fs::symlink_status(cache.path_of("key"))));
    };
    const fs::path elsewhere = directory.path() / "elsewhere";
    fs::copy_file(cache.path_of("key"), elsewhere);
    replaced_by([&] { fs::create_symlink(elsewhere, cache.path_of("key")); });
    CHECK(read_file(elsewhere).find("binary") != std::string::npos);  // nobody wrote through the link
    replaced_by([&] { REQUIRE(mkfifo(cache.path_of("key").c_str(), 0600) == 0); });
    // Not a link to a real device: a mistake in what is tested would replace that.
    REQUIRE(mkfifo((directory.path() / "pipe").c_str(), 0600) == 0);
    replaced_by([&] { fs::create_symlink(directory.path() / "pipe", cache.path_of("key")); });
    CHECK(fs::is_fifo(directory.path() / "pipe"));
    replaced_by([&] {  // one that never ends; sparse, so it takes no room
      write(cache.path_of("key"), "sylvit kernels 1");
      fs::resize_file(cache.path_of("key"), std::uintmax_t{1} << 40);
    });
    CHECK(warnings.empty());
  }

  TEST_CASE_FIXTURE(Fixture, "a link that leads nowhere is no directory") {
    fs::create_symlink(directory.path() / "nowhere", directory.path() / "link");
    const KernelCache bad(directory.path() / "link", 1 << 20, warn);
    CHECK_FALSE(bad.load("key"));
    bad.store("key", "binary");
    CHECK(warnings.size() == 1);
  }

  TEST_CASE("with a HOME of another user, the program says so once and goes on") {
    if (!can_give_away()) return;
    const test::TemporaryDirectory home;
    const std::string setting = "-u XDG_CACHE_HOME -u SYLVIT_CACHE_DIR HOME=" + home.path().string();
    REQUIRE(chmod(home.path().c_str(), 0755) == 0);
    REQUIRE(lchown(home.path().c_str(), another_user, another_user) == 0);
    const test::CommandResult fresh = test::run_sylvit("self-check", setting);
    CHECK(fresh.exit_code == 0);
    CHECK(count_of(fresh.errors, "sylvit: warning: the kernel cache ") == 1);
    CHECK(fresh.errors.find("belongs to user 12345") != std::string::npos);
    CHECK(fs::is_empty(home.path()));
  }

  TEST_CASE("the program rebuilds damaged entries and goes on without a writable cache") {
    const test::TemporaryDirectory directory;
    const std::string setting = "SYLVIT_CACHE_DIR=" + (directory.path() / "kernels").string();
    REQUIRE(test::run_sylvit("devices", setting).exit_code == 0);
    REQUIRE(files_in(directory.path() / "kernels", ".kernels") >= 1);
    std::vector<std::pair<fs::path, std::string>> before;
    for (const auto& entry : fs::directory_iterator(directory.path() / "kernels")) {
      before.emplace_back(entry.path(), read_file(entry.path()));
      fs::resize_file(entry.path(), entry.file_size() / 2);
    }
    const test::CommandResult repaired = test::run_sylvit("devices", setting);
    CHECK(repaired.exit_code == 0);
    CHECK(repaired.errors.empty());
    for (const auto& [path, content] : before) CHECK(fs::file_size(path) == content.size());

    const test::CommandResult unwritable = test::run_sylvit("self-check", "SYLVIT_CACHE_DIR=/proc/sylvit");
    CHECK(unwritable.exit_code == 0);
    CHECK(count_of(unwritable.errors, "sylvit: warning: the kernel cache /proc/sylvit is not used") == 1);
    const test::CommandResult off = test::run_sylvit("devices", setting + "/off SYLVIT_CACHE_LIMIT_MB=0");
    CHECK(off.exit_code == 0);
    CHECK_FALSE(fs::exists(directory.path() / "kernels" / "off"));
    CHECK(test::run_sylvit("devices", setting + " SYLVIT_CACHE_LIMIT_MB=lots").errors.find("'lots'") !=
          std::string::npos);
  }

  TEST_CASE("processes that fill the cache at once do not disturb each other") {
    const test::TemporaryDirectory directory;
    const std::string setting = "SYLVIT_CACHE_DIR=" + directory.path().string();
    std::vector<std::thread> threads;
    std::vector<test::CommandResult> results(3);
    for (test::CommandResult& result : results)
      threads.emplace_back([&] { result = test::run_sylvit("self-check", setting); });
    for (std::thread& thread : threads) thread.join();
    for (const test::CommandResult& result : results) {
      CHECK(result.exit_code == 0);
      CHECK(result.errors.empty());
    }
    CHECK(files_in(directory.path(), ".tmp") == 0);
    const int entries = files_in(directory.path(), ".kernels");
    CHECK(entries >= 2);
    CHECK(test::run_sylvit("self-check", setting).exit_code == 0);
    CHECK(files_in(directory.path(), ".kernels") == entries);  // everything was found
  }
}
