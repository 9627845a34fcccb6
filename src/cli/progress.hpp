// How far a long command has come, on standard error. Nothing is shown where that is no terminal, nor for what is done
// within half a second.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fmt/core.h>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

#include "terminal/print.hpp"

namespace sylvit::cli {

/// "1:05", "2:00:00".
inline std::string readable_time(double seconds) {
  const auto whole = static_cast<long>(std::lround(std::min(seconds, 3.6e8)));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

/// "[=====     ] 50/100 images, 10.0/s, 0:05 left, best 3 ms", cut to `width` bytes.
inline std::string progress_line(std::string_view what, std::size_t done, std::size_t total, double seconds,
                                 std::string_view note, std::size_t width) {
  constexpr std::size_t cells = 20;
  const std::size_t full = total > 0 ? std::min(cells, done * cells / total) : cells;
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string line = fmt::format("[{:<{}}] {}/{} {}", std::string(full, '='), cells, done, total, what);
  if (rate > 0) {
    line += fmt::format(", {:.1f}/s", rate);
    if (done < total) line += fmt::format(", {} left", readable_time(static_cast<double>(total - done) / rate));
  }
  if (!note.empty()) line += fmt::format(", {}", base::printable(note));
  // Between characters: what begins with these bits continues one.
  while (width < line.size() && width > 0 && (static_cast<unsigned char>(line[width]) & 0xC0U) == 0x80U) --width;
  return line.substr(0, width);
}

class Progress {
 public:
  /// `what` is counted: "images".
  Progress(std::string what, std::size_t total)
      : what_(std::move(what)), total_(total), shown_(isatty(STDERR_FILENO) == 1) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `note` stands after the numbers until the next call, e.g. the best result so far.
  void advance(std::size_t count, std::string_view note = {}) {
    done_ += count;
    const Clock::time_point now = Clock::now();
    if (!shown_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    const double seconds = std::chrono::duration<double>(now - start_).count();
    terminal::print(stderr, "\r{}\033[K", progress_line(what_, done_, total_, seconds, note, terminal_width() - 1));
    std::fflush(stderr);
    drawn_ = true;
  }

  /// Makes room for something else; the next advance() draws again.
  void clear() {
    if (!drawn_) return;
    terminal::print(stderr, "\r\033[K");
    std::fflush(stderr);
    drawn_ = false;
  }

 private:
  using Clock = std::chrono::steady_clock;

  static std::size_t terminal_width() {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
  }

  std::string what_;
  std::size_t total_;
  std::size_t done_ = 0;
  bool shown_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_ + std::chrono::milliseconds(500);
};

}  // namespace sylvit::cli
