// SPDX-License-Identifier: Apache-2.0
// `aifs-train watch` as a user runs it: on runs of the program, printed once and in a terminal.
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <map>
#include <thread>

#include "core/file_io.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;

namespace {

test::CommandResult watch(const std::string& arguments) {
  return test::run_command(
      concat("LC_ALL=C '", test::program("aifs-train").string(), "' watch ", arguments));
}

// All files below a folder with their content and time.
std::map<std::string, std::string> state_of(const fs::path& folder) {
  std::map<std::string, std::string> state;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      state[entry.path().string()] =
          concat(entry.last_write_time().time_since_epoch().count(), read_file(entry.path()));
  }
  return state;
}

// The program in a terminal of its own, 24 lines of 80 columns.
class Terminal {
 public:
  explicit Terminal(const fs::path& run) {
    const std::string program = test::program("aifs-train").string(), folder = run.string();
    winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    process_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
    REQUIRE(process_ >= 0);
    if (process_ == 0) {
      ::setenv("LC_ALL", "C", 1);
      ::execl(program.c_str(), program.c_str(), "watch", folder.c_str(), "--every", "0.1",
              static_cast<char*>(nullptr));
      ::_exit(127);
    }
  }
  ~Terminal() {
    if (process_ > 0) ::kill(process_, SIGKILL), ::waitpid(process_, nullptr, 0);
    ::close(terminal_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Reads what is drawn until `text` is there, for a minute at most.
  void wait_for(const std::string& text) {
    for (int turn = 0; turn < 600 && drawn_.find(text) == std::string::npos; ++turn)
      read_for(100);
    INFO(drawn_);
    REQUIRE(drawn_.find(text) != std::string::npos);
  }
  void press(char key) const { REQUIRE(::write(terminal_, &key, 1) == 1); }
  int exit_code() {
    int status = 0;
    for (int turn = 0; turn < 600; ++turn) {
      read_for(100);
      if (::waitpid(process_, &status, WNOHANG) != process_) continue;
      process_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return -1;
  }
  const std::string& drawn() const { return drawn_; }
  void forget() { drawn_.clear(); }

 private:
  void read_for(int milliseconds) {
    pollfd ready{.fd = terminal_, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, milliseconds) <= 0) return;
    if (!(ready.revents & POLLIN)) {  // closed at the other end, which is not to be a busy wait
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      return;
    }
    std::array<char, 4096> bytes{};
    const ssize_t count = ::read(terminal_, bytes.data(), bytes.size());
    if (count > 0) drawn_.append(bytes.data(), static_cast<size_t>(count));
  }

  pid_t process_ = -1;
  int terminal_ = -1;
  std::string drawn_;
};

}  // namespace

TEST_CASE("a run that has ended is shown from its files, which stay as they are", "[watch]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const auto trained = test::run_train(run);
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const auto before = state_of(folder.path());
  const auto shown = watch(concat("'", run.string(), "' --width 200"));
  INFO(shown.out << shown.err);
  REQUIRE(shown.exit_code == 0);
  REQUIRE(shown.err.empty());
  REQUIRE_THAT(shown.out, ContainsSubstring("run: finished, step 40 of 40 (100 %)"));
  REQUIRE_THAT(shown.out, ContainsSubstring("learning rate") && ContainsSubstring(" TFLOP/s"));
  REQUIRE_THAT(shown.out, ContainsSubstring("goodput     ") && ContainsSubstring(", 1 start; "));
  REQUIRE_THAT(shown.out, ContainsSubstring("validation  step 40: loss ") &&
                              ContainsSubstring("RMSE / persistence 6h ") &&
                              ContainsSubstring(", 12h "));
  REQUIRE(state_of(folder.path()) == before);
}

TEST_CASE("a run that was stopped says how to go on, and several runs are shown", "[watch]") {
  const test::TemporaryFolder folder;
  const fs::path stopped = folder.path() / "a", bare = folder.path() / "b";
  REQUIRE(test::run_train(stopped, "--set train.max_minutes=1e-6").exit_code == 5);
  make_directories(bare);
  write_file_atomic(bare / "metrics.jsonl", "{\"step\": 1, \"loss\": 2.5}\n{\"st\n");
  const auto shown =
      watch(concat("--once '", stopped.string(), "' '", bare.string(), "' --width 200"));
  INFO(shown.out << shown.err);
  REQUIRE(shown.exit_code == 0);
  REQUIRE_THAT(shown.out, ContainsSubstring("a: stopped, --resume goes on"));
  REQUIRE_THAT(shown.out, ContainsSubstring("b: running, step 1"));
  REQUIRE_THAT(shown.out, ContainsSubstring("1 lines of metrics.jsonl"));
}

TEST_CASE("folders that cannot be watched are named, with their exit codes", "[watch]") {
  const test::TemporaryFolder folder;
  const auto none = watch(concat("'", (folder.path() / "nowhere").string(), "'"));
  REQUIRE(none.exit_code == 3);
  REQUIRE_THAT(none.err,
               ContainsSubstring("there is no run folder") && ContainsSubstring("nowhere"));
  REQUIRE(watch("").exit_code == 2);
  write_file_atomic(folder.path() / "metrics.jsonl", "");
  const std::string name = concat("'", folder.path().string(), "' ");
  const auto twice = watch(name + name);
  REQUIRE(twice.exit_code == 2);
  REQUIRE_THAT(twice.err, ContainsSubstring("is named twice"));
  REQUIRE(watch(name + "--every 0").exit_code == 2);
  REQUIRE(watch(name + "--width 3").exit_code == 2);
}

TEST_CASE("in a terminal new steps appear until somebody leaves", "[watch]") {
  const test::TemporaryFolder folder;
  const fs::path metrics = folder.path() / "metrics.jsonl";
  write_file_atomic(metrics, "{\"step\": 1, \"loss\": 2.5, \"step_s\": 0.5}\n");
  Terminal terminal(folder.path());
  terminal.wait_for("step 1");
  REQUIRE(append_whole(metrics, "{\"step\": 2, \"loss\": 1.5, \"step_s\": 0.5}\n").empty());
  terminal.wait_for("step 2");
  const char key = GENERATE('q', '\003');  // ctrl-c
  terminal.forget();
  terminal.press(key);
  REQUIRE(terminal.exit_code() == 0);
  // The cursor and the former screen are back.
  REQUIRE(terminal.drawn().ends_with("\033[?25h\033[?1049l"));
}
