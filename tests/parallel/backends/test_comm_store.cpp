// SPDX-License-Identifier: Apache-2.0
// The ranks are threads; test_runtime.cpp has them as processes.
#include "parallel/backends/comm_store.h"

#include <ATen/ATen.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "core/check.h"
#include "tests/parallel/communicator_laws.h"
#include "tests/support/catch.h"

using namespace aifs;
using parallel::Communicator;

namespace {

// A port of this host that nobody listens at.
uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* general = reinterpret_cast<sockaddr*>(&address);
  const bool is_bound = ::bind(fd, general, size) == 0 && ::getsockname(fd, general, &size) == 0;
  ::close(fd);
  REQUIRE(is_bound);
  return ntohs(address.sin_port);
}

std::unique_ptr<Communicator> join(const parallel::StoreAddress& address, int rank, int size,
                                   double timeout_s) {
  return parallel::make_store_world(address, rank, size, timeout_s,
                                    std::make_shared<parallel::OperationWatch>(0.0, "rank"));
}

// Runs `body` on each of so many ranks, and rethrows the error of one of them.
void run_through_store(int ranks, const std::function<void(Communicator&)>& body) {
  const parallel::StoreAddress address{"127.0.0.1", free_port()};
  std::vector<std::exception_ptr> errors(static_cast<size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(*join(address, rank, ranks, 20.0));
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  threads.clear();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace

TEST_CASE("ranks that meet at a store obey the laws of communicators", "[parallel]") {
  for (const int ranks : {1, 2}) {
    run_through_store(ranks, [&](Communicator& group) {
      for (const auto& [name, law] : test::communicator_laws()) {
        try {
          law(group);
        } catch (const std::exception& error) {
          throw Error(concat(name, ", ", ranks, " ranks: ", error.what()));
        }
      }
    });
  }
}

TEST_CASE("a tensor larger than a value of the store arrives whole", "[parallel]") {
  const at::Tensor values = at::arange((int64_t{1} << 20) + 7, at::kLong);  // 8 MiB and 56 bytes
  run_through_store(2, [&](Communicator& group) {
    const at::Tensor own = group.rank() == 0 ? values.clone() : at::zeros_like(values);
    group.broadcast(own, 0);
    if (!at::equal(own, values)) throw Error("a long message is not what was sent");
  });
}

TEST_CASE("two processes that say that they are the same rank are told", "[parallel]") {
  const parallel::StoreAddress address{"127.0.0.1", free_port()};
  std::string told;
  {
    const std::jthread first([&] { join(address, 0, 2, 20.0); });
    const auto second = join(address, 1, 2, 20.0);
    try {
      join(address, 1, 2, 20.0);
    } catch (const ConfigError& error) {
      told = error.what();
    }
  }
  REQUIRE_THAT(told, ContainsSubstring("two processes say that they are rank 1"));
}

TEST_CASE("an address where nobody listens is named", "[parallel]") {
  const uint16_t port = free_port();
  REQUIRE_THROWS_WITH(join({"127.0.0.1", port}, 1, 2, 0.2),
                      ContainsSubstring(concat("rank 1 of 2 does not reach the others through "
                                               "127.0.0.1:",
                                               port)));
}
