// Runs a fuzz target (fuzz.hpp).
//
//     fuzz_NAME [--count N | --seconds N] [--seed N] [FILE…]
//                                                 without libFuzzer: tries the files, or the seeds and N changed inputs
//                                                 (as many as fit in the time), the same ones every time; what crashes
//                                                 it is left in ./crash-input
//     fuzz_NAME [libFuzzer's options] DIRECTORY   with libFuzzer: the seeds are written into the directory first
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <unistd.h>

#include "fuzz/fuzz.hpp"

#ifdef SYLVIT_LIBFUZZER

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerInitialize(int* count, char*** words) {
  const std::filesystem::path directory = (*words)[*count - 1];
  if (*count < 2 || !std::filesystem::is_directory(directory)) return 0;
  int number = 0;
  for (const std::string& seed : sylvit::fuzz::seeds())
    std::ofstream(directory / ("seed-" + std::to_string(number++)), std::ios::binary) << seed;
  return 0;
}

#else

namespace {

std::string current;  // what is being tried

void keep_current(int signal) {
  const int file = open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0 && write(file, current.data(), current.size()) == static_cast<ssize_t>(current.size()))
    std::fputs("the input that crashed it is in crash-input\n", stderr);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void try_input(std::string input) {
  current = std::move(input);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
}

class Changes {
 public:
  explicit Changes(std::uint64_t seed) : random_(seed) {}

  /// One of the seeds with one to four small changes: nobody says here which changed inputs are worth another change.
  std::string next() {
    std::string text = seeds_[below(seeds_.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(text);
    return text;
  }

 private:
  std::size_t below(std::size_t end) { return end == 0 ? 0 : static_cast<std::size_t>(random_() % end); }

  void change(std::string& text) {
    static constexpr std::array<unsigned char, 8> special = {0, 1, 8, 0x20, 0x7F, 0x80, 0xC0, 0xFF};
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = std::min(1 + below(16), text.size() - at);
    switch (below(8)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(special[below(special.size())]);
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      case 4:
        text.insert(at, words_[below(words_.size())]);
        break;
      case 5:
        text.replace(at, length, words_[below(words_.size())]);
        break;
      case 6:  // a digit, so that some numbers stay what fits others
        if (const std::size_t digit = text.find_first_of("0123456789", at); digit != std::string::npos)
          text[digit] = static_cast<char>('0' + below(10));
        break;
      default: {
        const std::string& other = seeds_[below(seeds_.size())];
        text.replace(at, std::string::npos, other, std::min(at, other.size()), std::string::npos);
      }
    }
  }

  std::mt19937_64 random_;  // whose numbers the standard fixes; its distributions are each library's own
  std::vector<std::string> seeds_ = sylvit::fuzz::seeds();
  std::vector<std::string_view> words_ = sylvit::fuzz::words();
};

}  // namespace

int main(int count, char** arguments) {
  std::uint64_t most = 50'000;
  std::uint64_t seconds = 0;
  std::uint64_t seed = 1;
  std::vector<std::string> files;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if ((word == "--count" || word == "--seconds" || word == "--seed") && i + 1 < count)
      (word == "--count" ? most : word == "--seconds" ? seconds : seed) = std::strtoull(arguments[++i], nullptr, 10);
    else
      files.push_back(word);
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) std::signal(signal, keep_current);
  for (const std::string& name : files) {
    std::ifstream file(name, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "cannot open %s\n", name.c_str());
      return 1;
    }
    try_input({std::istreambuf_iterator<char>(file), {}});
  }
  if (!files.empty()) return 0;
  for (const std::string& input : sylvit::fuzz::seeds()) try_input(input);
  Changes changes(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::uint64_t changed = 0;
  for (; seconds > 0 ? std::chrono::steady_clock::now() < end : changed < most; ++changed) try_input(changes.next());
  std::printf("%llu changed inputs\n", static_cast<unsigned long long>(changed));
  return 0;
}

#endif
