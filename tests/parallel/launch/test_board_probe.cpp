// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/board_probe.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "core/host.h"
#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::parallel;

namespace {

// Returns what each of four ranks finds whose boards are made like this; port of rank 0's server.
using Boards = std::function<std::shared_ptr<WorkBoard>(int rank, uint16_t port)>;
std::array<std::vector<int>, 4> probe(const Boards& board_of, bool has_server = true) {
  std::array<std::vector<int>, 4> found;
  uint16_t port = 0;
  const std::shared_ptr<WorkBoard> server = serve_work_board(port);
  run_as_threads(4, [&](Communicator& world) {
    const int rank = world.rank();
    const std::shared_ptr<WorkBoard> board =
        rank == 0 ? (has_server ? server : nullptr) : board_of(rank, port);
    found[static_cast<size_t>(rank)] = ranks_without_board(world, board.get());
  });
  return found;
}

std::array<std::vector<int>, 4> alike(const std::vector<int>& ranks) {
  return {ranks, ranks, ranks, ranks};
}

}  // namespace

TEST_CASE("all ranks know which of them cannot leave word for the others", "[board_probe]") {
  const auto good = [](int, uint16_t port) {
    return std::shared_ptr(join_work_board({{"127.0.0.1"}, port}));
  };
  REQUIRE(probe(good) == alike({}));
  REQUIRE(probe([&](int rank, uint16_t port) { return rank == 2 ? nullptr : good(rank, port); }) ==
          alike({2}));
  // An address that nobody answers at is passed over for the next.
  REQUIRE(probe([&](int rank, uint16_t port) {
            return rank == 1 ? std::shared_ptr(
                                   join_work_board({{"no.such.host.invalid", "127.0.0.1"}, port}))
                             : good(rank, port);
          }) == alike({}));
  // A server of somebody else, who happens to have the port.
  uint16_t other_port = 0;
  const std::shared_ptr<WorkBoard> other = serve_work_board(other_port);
  REQUIRE(probe([&](int rank, uint16_t port) {
            return good(rank, rank == 3 ? other_port : port);
          }) == alike({3}));
  REQUIRE(probe(good, /*has_server=*/false) == alike({0, 1, 2, 3}));
}

TEST_CASE("a server that is silent is given up within seconds, and heard when it speaks again",
          "[board_probe]") {
  int to_parent[2];
  REQUIRE(::pipe(to_parent) == 0);
  const pid_t server = ::fork();
  if (server == 0) {
    uint16_t port = 0;
    const std::unique_ptr<WorkBoard> board = serve_work_board(port);
    if (::write(to_parent[1], &port, sizeof port) != sizeof port) ::_exit(1);
    for (;;)
      ::pause();
  }
  uint16_t port = 0;
  REQUIRE(::read(to_parent[0], &port, sizeof port) == sizeof port);
  const std::unique_ptr<WorkBoard> board = join_work_board({{"127.0.0.1"}, port});
  REQUIRE(board->note("writing"));
  ::kill(server, SIGSTOP);
  const auto start = std::chrono::steady_clock::now();
  REQUIRE(board->count() == -1);
  REQUIRE_FALSE(board->note("reading"));  // at once: the first question is still open
  REQUIRE(std::chrono::steady_clock::now() - start < std::chrono::seconds(8));
  ::kill(server, SIGCONT);
  int64_t count = -1;
  for (int i = 0; i < 200 && count < 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    count = board->count();
  }
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  REQUIRE(count == 1);
}

TEST_CASE("a host has its name, the master's and its networks as addresses", "[board_probe]") {
  const char* before = std::getenv("MASTER_ADDR");
  const std::string saved = before ? before : "";
  ::setenv("MASTER_ADDR", "node7.cluster", 1);
  const std::vector<std::string> master = addresses_of_host(true), other = addresses_of_host(false);
  before ? ::setenv("MASTER_ADDR", saved.c_str(), 1) : ::unsetenv("MASTER_ADDR");
  REQUIRE(master.front() == host_name());
  REQUIRE(std::count(master.begin(), master.end(), "node7.cluster") == 1);
  REQUIRE(std::count(other.begin(), other.end(), "node7.cluster") == 0);
  REQUIRE(std::count(master.begin(), master.end(), "127.0.0.1") == 0);
}
