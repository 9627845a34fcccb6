// What several tests need.
#pragma once

#include <sylvit/sylvit.hpp>

#include <cstddef>
#include <cstring>
#include <doctest/doctest.h>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace sylvit::test {

/// The device that tests run on (SYLVIT_DEVICE chooses), opened once.
const Device& device();

/// A directory of its own, removed with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Sets an environment variable for the length of a test.
class Setting {
 public:
  Setting(const char* name, const std::string& value);
  ~Setting();
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
  std::string old_;
};

/// A file's bytes; fails the test when there is none.
std::string read_file(const std::filesystem::path& path);

/// tests/ of the source tree.
std::filesystem::path test_directory();

/// The directory of image files that make_images.py wrote.
std::filesystem::path image_directory();

struct CommandResult {
  int exit_code;       ///< -1 when a signal ended it
  std::string output;  ///< standard output
  std::string errors;  ///< standard error
  double seconds;
};

/// Runs the program (build/sylvit) with these words after it, and "NAME=value" settings in front of it.
CommandResult run_sylvit(const std::string& arguments, const std::string& environment = "");

/// The program running in the background, its output in files. Ended with the object.
class RunningSylvit {
 public:
  explicit RunningSylvit(const std::vector<std::string>& arguments);
  ~RunningSylvit();
  RunningSylvit(const RunningSylvit&) = delete;
  RunningSylvit& operator=(const RunningSylvit&) = delete;
  /// Waits until standard output has this text; false when the program ended without it.
  bool wait_for_output(const std::string& text);
  void signal(int number) const;
  /// Waits for its end.
  CommandResult wait();

 private:
  bool ended(int options);
  TemporaryDirectory directory_;
  int process_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

/// Device memory filled from, and read back to, the host.
template <class T>
class OnDevice {
 public:
  OnDevice(std::span<const T> values, const Shape& shape) : OnDevice(values.size(), shape) { write(values); }
  OnDevice(std::size_t count, const Shape& shape)
      : memory_(device(), count * sizeof(T), "a test"), view_(memory_.data(), dtype_of<T>, shape), count_(count) {}

  const TensorView& view() const { return view_; }
  T* data() const { return memory_.template as<T>(); }
  void write(std::span<const T> values) {
    device().queue().memcpy(memory_.data(), values.data(), values.size_bytes());
    device().wait();
  }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    device().wait();
    device().queue().memcpy(values.data(), memory_.data(), count_ * sizeof(T));
    device().wait();
    return values;
  }

 private:
  Memory memory_;
  TensorView view_;
  std::size_t count_;
};

/// The numbers, widened.
template <class T>
std::vector<double> exact(const std::vector<T>& values) {
  std::vector<double> result;
  for (const T value : values) result.push_back(static_cast<double>(static_cast<float>(value)));
  return result;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Half a unit in the last place of a storage type, relative.
template <class T>
constexpr double half_unit = sizeof(T) == 4 ? 6e-8 : (dtype_of<T> == DType::bf16 ? 1.0 / 256 : 1.0 / 2048);

/// Checks that a text of one line has all of these parts.
inline void check_contains(const std::string& text, std::initializer_list<std::string> parts) {
  CAPTURE(text);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(text.find('\n') == std::string::npos);
}

/// Checks that the call throws an Error whose sentence contains every one of these parts.
template <class Call>
void check_error(Call&& call, std::initializer_list<std::string> parts) {
  std::string sentence;
  try {
    call();
  } catch (const Error& error) {
    sentence = error.what();
  }
  CHECK_MESSAGE(!sentence.empty(), "no Error was thrown");
  for (const std::string& part : parts)
    CHECK_MESSAGE(sentence.find(part) != std::string::npos, "'" << part << "' is not in: " << sentence);
}

}  // namespace sylvit::test
