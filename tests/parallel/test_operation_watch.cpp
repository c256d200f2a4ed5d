// SPDX-License-Identifier: Apache-2.0
#include "parallel/operation_watch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "tests/support/catch.h"

using namespace aifs::parallel;

namespace {

constexpr double kTimeout_s = 0.4;

void wait_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// The exit status of a process of its own that runs this.
int status_of(const std::function<void()>& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    action();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Two ranks in one process: one that waits for four time limits, and one that does what is given.
void wait_while_other(const std::function<void(OperationWatch& other)>& works) {
  uint16_t port = 0;
  const std::shared_ptr<WorkBoard> server = serve_work_board(port);
  OperationWatch waiting(kTimeout_s, "rank 0"), other(kTimeout_s, "rank 1");
  waiting.set_board(server);
  other.set_board(join_work_board({{"127.0.0.1"}, port}));
  const OperationWatch::Scope scope(waiting, "all-reduce");
  works(other);
}

}  // namespace

TEST_CASE("a rank that waits too long leaves, and one that waits less does not",
          "[operation_watch]") {
  const auto wait = [](double seconds) {
    return [seconds] {
      OperationWatch watch(kTimeout_s, "rank 0");
      const OperationWatch::Scope scope(watch, "all-reduce");
      wait_for(seconds);
    };
  };
  REQUIRE(status_of(wait(8 * kTimeout_s)) == OperationWatch::kExitCode);
  REQUIRE(status_of(wait(0.3 * kTimeout_s)) == 0);
}

TEST_CASE("known work of another rank is waited for, as long as it takes", "[operation_watch]") {
  const auto work = [](OperationWatch& other) {
    const OperationWatch::Work writing(other, "writing a checkpoint");
    wait_for(8 * kTimeout_s);
  };
  REQUIRE(status_of([&] { wait_while_other(work); }) == 0);
}

TEST_CASE("progress that is told now and then is waited for", "[operation_watch]") {
  const auto forecast = [](OperationWatch& other) {
    for (int step = 0; step < 16; ++step) {
      other.note_progress("forecasting");
      wait_for(0.5 * kTimeout_s);
    }
  };
  REQUIRE(status_of([&] { wait_while_other(forecast); }) == 0);
}

TEST_CASE("a rank that has ended its work and does not come is lost", "[operation_watch]") {
  const auto hang = [](OperationWatch& other) {
    {
      const OperationWatch::Work reading(other, "reading");
      wait_for(2 * kTimeout_s);
    }
    wait_for(10 * kTimeout_s);
  };
  REQUIRE(status_of([&] { wait_while_other(hang); }) == OperationWatch::kExitCode);
}

TEST_CASE("a board whose server has gone is no board, and says so at once", "[work_board]") {
  uint16_t port = 0;
  std::unique_ptr<WorkBoard> server = serve_work_board(port);
  REQUIRE(port > 0);
  const std::unique_ptr<WorkBoard> board = join_work_board({{"127.0.0.1"}, port});
  REQUIRE(board->count() == 0);
  REQUIRE(board->note("rank 1: reading"));
  REQUIRE(board->count() == 1);
  REQUIRE(server->count() == 1);
  REQUIRE(server->last_word() == "rank 1: reading");
  server.reset();
  REQUIRE(board->count() == -1);
  REQUIRE_FALSE(board->note("rank 1: reading"));
}
