// SPDX-License-Identifier: Apache-2.0
#include "app/watch_tools/watch_command.h"

#include <langinfo.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <memory>

#include "app/run/exit_codes.h"
#include "app/run/signals.h"
#include "app/watch_tools/run_frame.h"
#include "app/watch_tools/run_watch.h"
#include "core/check.h"
#include "core/seconds_since.h"

namespace aifs::app {

namespace {

using Watches = std::vector<std::unique_ptr<RunWatch>>;

constexpr int kColumnsOfFiles = 100;

Watches open_runs(const std::vector<std::string>& folders) {
  Watches watches;
  std::vector<fs::path> opened;
  for (const std::string& folder : folders) {
    watches.push_back(std::make_unique<RunWatch>(folder));
    for (const fs::path& other : opened) {
      std::error_code ignored;
      if (fs::equivalent(folder, other, ignored))
        throw ConfigError("watch", concat("the run '", folder, "' is named twice"),
                          "leave one of them out");
    }
    opened.emplace_back(folder);
  }
  return watches;
}

std::vector<std::string> next_frame(const Watches& watches, const FrameSize& size) {
  const double now_s =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::vector<const RunView*> views;
  for (const auto& watch : watches)
    views.push_back(&watch->update(now_s));
  return frame_of(views, size);
}

bool terminal_has_utf8() {
  return std::setlocale(LC_CTYPE, "") && std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

// The terminal as a screen of its own, with keys that are read at once; as it was before at the
// end.
class Screen {
 public:
  Screen() : has_keys_(::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (has_keys_) {
      termios keys = before_;
      keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      has_keys_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
    }
    std::fputs("\033[?1049h\033[?25l", stdout);  // other screen, no cursor
  }
  ~Screen() {
    std::fputs("\033[?25h\033[?1049l", stdout);
    std::fflush(stdout);
    if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  static winsize size() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
      size = {.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    return size;
  }

  // False if nobody is there to see it.
  static bool draw(const std::vector<std::string>& lines) {
    std::string text = "\033[H";
    for (const std::string& line : lines)
      text += line + "\033[K\r\n";
    text += "\033[2mq: leave\033[0m\033[K\033[J";
    return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  }

  // Waits; true as soon as somebody wants to leave.
  bool wait_for_end(double seconds) const {
    const auto start = std::chrono::steady_clock::now();
    for (double left = seconds; left > 0.0 && !stop_requested();
         left = seconds - seconds_since(start)) {
      pollfd keys{.fd = has_keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
      if (::poll(&keys, 1, static_cast<int>(left * 1e3) + 1) <= 0) continue;
      char key = 'q';  // of a terminal that is gone
      const ssize_t count = ::read(STDIN_FILENO, &key, 1);
      if (count <= 0 || key == 'q' || key == 'Q') return true;
    }
    return stop_requested();
  }

 private:
  termios before_{};
  bool has_keys_;
};

void watch_until_end(const Watches& watches, const WatchCommand& command) {
  install_signal_handlers();
  defer_stops();
  const Screen screen;
  const bool utf8 = terminal_has_utf8();
  do {
    const winsize size = Screen::size();
    const FrameSize frame{.columns = command.columns > 0 ? command.columns : size.ws_col,
                          .rows = size.ws_row - 1,
                          .utf8 = utf8};
    if (!Screen::draw(next_frame(watches, frame))) return;
  } while (!screen.wait_for_end(command.every_s));
}

}  // namespace

int run_watch_command(const WatchCommand& command) {
  const Watches watches = open_runs(command.runs);
  if (!command.once && ::isatty(STDOUT_FILENO) == 1) {
    watch_until_end(watches, command);
    return kSuccess;
  }
  FrameSize size{.columns = kColumnsOfFiles, .rows = 0, .utf8 = terminal_has_utf8()};
  if (::isatty(STDOUT_FILENO) == 1) size.columns = Screen::size().ws_col;
  if (command.columns > 0) size.columns = command.columns;
  for (const std::string& line : next_frame(watches, size))
    std::printf("%s\n", line.c_str());
  return kSuccess;
}

}  // namespace aifs::app
