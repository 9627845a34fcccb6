// Who may have written a file, and files that appear whole or not at all.
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/temporary_file.hpp"
#include "support.hpp"

using namespace sylvit;
using base::TemporaryFile;
using test::check_error;
using test::read_file;
namespace fs = std::filesystem;

namespace {

struct stat status_of(uid_t owner, mode_t mode) {
  struct stat status {};
  status.st_uid = owner;
  status.st_mode = S_IFREG | mode;
  return status;
}

void write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

void write(TemporaryFile& file, std::string_view text) { file.write(std::as_bytes(std::span(text))); }

std::set<std::string> names_in(const fs::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename());
  return names;
}

}  // namespace

TEST_SUITE("base/files") {
  TEST_CASE("what others can have written is told from what they cannot") {
    const uid_t me = geteuid();
    for (const mode_t mode : {0600, 0644, 0755, 0400}) CHECK(base::distrusted(status_of(me, mode)).empty());
    CHECK(base::distrusted(status_of(0, 0644)).empty());  // root can do anything anyway
    CHECK(base::distrusted(status_of(me, 0664)) == "others may write to it (mode 0664)");
    CHECK(base::distrusted(status_of(me, 0646)) == "others may write to it (mode 0646)");
    CHECK(base::distrusted(status_of(me + 7, 0600)) == "it belongs to user " + std::to_string(me + 7) +
                                                           " and not to user " + std::to_string(me) +
                                                           ", who runs this");
  }

  TEST_CASE("only a regular file is opened, and nothing waits") {
    const test::TemporaryDirectory directory;
    const fs::path path = directory.path() / "file";
    write(path, std::string("some\0bytes", 10));
    const auto file = base::open_regular_file(AT_FDCWD, path);
    REQUIRE(file);
    CHECK(file->read() == std::string("some\0bytes", 10));
    fs::resize_file(path, 4);
    CHECK_FALSE(file->read());  // it was longer
    fs::create_symlink(path, directory.path() / "link");
    CHECK(base::open_regular_file(AT_FDCWD, directory.path() / "link"));
    CHECK_FALSE(base::open_regular_file(AT_FDCWD, directory.path() / "link", O_NOFOLLOW));
    CHECK_FALSE(base::open_regular_file(AT_FDCWD, directory.path() / "none"));
    CHECK(errno == ENOENT);
    REQUIRE(mkfifo((directory.path() / "pipe").c_str(), 0600) == 0);
    for (const fs::path& other : {directory.path() / "pipe", directory.path(), fs::path("/dev/zero")}) {
      CHECK_FALSE(base::open_regular_file(AT_FDCWD, other));
      CHECK(errno == 0);
    }
  }

  TEST_CASE("a temporary file becomes the target, or nothing stays") {
    const test::TemporaryDirectory directory;
    const fs::path path = directory.path() / "target";
    {
      TemporaryFile file(path);
      write(file, "half");
      CHECK_FALSE(fs::exists(path));
      CHECK(names_in(directory.path()).size() == 1);
    }
    CHECK(names_in(directory.path()).empty());
    TemporaryFile file(path);
    write(file, "whole");
    file.flush();
    file.rename_into_place();
    CHECK(read_file(path) == "whole");
    CHECK(names_in(directory.path()) == std::set<std::string>{"target"});
    check_error([&] { TemporaryFile(directory.path() / "none" / "x"); }, {"none/x", "does not exist"});
    check_error([&] { TemporaryFile("/dev/null/x", {.called = "the thing"}); }, {"cannot write the thing: "});
  }

  TEST_CASE("names are random, and the mode is what was asked for") {
    const test::TemporaryDirectory directory;
    const mode_t before = umask(0);
    std::set<std::string> names;
    for (int i = 0; i < 20; ++i) {
      const TemporaryFile file(directory.path() / "target", {.mode = 0600});
      const std::set<std::string> there = names_in(directory.path());
      REQUIRE(there.size() == 1);
      names.insert(*there.begin());
      struct stat status {};
      REQUIRE(stat((directory.path() / *there.begin()).c_str(), &status) == 0);
      CHECK((status.st_mode & 07777U) == 0600);
    }
    umask(before);
    CHECK(names.size() == 20);
  }

  TEST_CASE("a symbolic link is kept, and the file that it leads to is written; not one of another user") {
    const test::TemporaryDirectory directory;
    const fs::path link = directory.path() / "link";
    write(directory.path() / "file", "old");
    fs::create_symlink("file", link);
    {
      TemporaryFile file(link);
      write(file, "new");
      file.rename_into_place();
    }
    CHECK(fs::is_symlink(link));
    CHECK(read_file(directory.path() / "file") == "new");
    // What is replaced must be a file. Not tried with a real device, which a mistake would replace.
    const fs::path pipe = directory.path() / "pipe";
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    fs::create_symlink("pipe", directory.path() / "to pipe");
    for (const char* name : {"pipe", "to pipe"})
      check_error([&] { TemporaryFile file(directory.path() / name); }, {"pipe is no regular file"});
    CHECK(fs::is_fifo(pipe));
    fs::remove(directory.path() / "to pipe");
    fs::remove(pipe);
    {
      TemporaryFile file(link, {.follow_links = false});
      file.rename_into_place();
    }
    CHECK(fs::is_regular_file(fs::symlink_status(link)));
    CHECK(read_file(directory.path() / "file") == "new");
    if (geteuid() != 0) return;  // only root can give files away
    fs::remove(link);
    fs::create_symlink("file", link);
    REQUIRE(lchown(link.c_str(), 12345, 12345) == 0);
    check_error([&] { TemporaryFile file(link); }, {"link is a symbolic link that belongs to user 12345"});
    CHECK(names_in(directory.path()) == std::set<std::string>{"file", "link"});
  }

  TEST_CASE("what a killed process left is removed by the next one, and nothing else is") {
    const test::TemporaryDirectory directory;
    const fs::path target = directory.path() / "target";
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
      TemporaryFile file(target);
      write(file, "half");
      static_cast<void>(::write(ready[1], "x", 1));
      pause();
      _exit(0);
    }
    char byte = 0;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    const std::set<std::string> others{".sylvit-0123456789abcde.tmp",     ".sylvit-0123456789abcdeg.tmp",
                                       "sylvit-0123456789abcdef.tmp",     ".sylvit-0123456789abcdef.txt",
                                       ".sylvit-12345-67890.tmp.tmp.tmp", "target.tmp"};
    for (const std::string& name : others) write(directory.path() / name, "another's");
    fs::create_symlink("target.tmp", directory.path() / ".sylvit-00000000000000aa.tmp");
    fs::create_directory(directory.path() / ".sylvit-00000000000000bb.tmp");
    const std::size_t count = others.size() + 3;
    REQUIRE(names_in(directory.path()).size() == count);
    CHECK(base::remove_leftovers(directory.path()) == 0);  // the child is writing
    {
      const TemporaryFile mine(target);
      CHECK(base::remove_leftovers(directory.path()) == 0);  // and so is this
    }
    REQUIRE(kill(child, SIGKILL) == 0);
    REQUIRE(waitpid(child, nullptr, 0) == child);
    close(ready[0]);
    close(ready[1]);
    CHECK(names_in(directory.path()).size() == count);
    const TemporaryFile next(target);
    CHECK(names_in(directory.path()).size() == count);  // the child's has gone, this one has come
    CHECK(base::remove_leftovers(directory.path()) == 0);
    for (const std::string& name : others) CHECK(fs::exists(directory.path() / name));
  }

  TEST_CASE("a file of another user is never removed") {
    if (geteuid() != 0) return;  // only root can give files away
    const test::TemporaryDirectory directory;
    const fs::path left = directory.path() / ".sylvit-0123456789abcdef.tmp";
    write(left, "half");
    REQUIRE(lchown(left.c_str(), 12345, 12345) == 0);
    CHECK(base::remove_leftovers(directory.path()) == 0);
    REQUIRE(lchown(left.c_str(), 0, 0) == 0);
    CHECK(base::remove_leftovers(directory.path()) == 1);
  }
}
