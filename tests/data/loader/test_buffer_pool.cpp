// SPDX-License-Identifier: Apache-2.0
#include "data/loader/buffer_pool.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

constexpr int64_t kBytes = 3 << 20;

}  // namespace

TEST_CASE("a buffer that was given back is used again, others are new", "[buffer_pool]") {
  BufferPool pool;
  const std::byte* first = nullptr;
  {
    const auto a = pool.take(kBytes), b = pool.take(kBytes);
    REQUIRE(a.get() != b.get());
    std::memset(a.get(), 1, kBytes);
    std::memset(b.get(), 2, kBytes);
    REQUIRE(a.get()[kBytes - 1] == std::byte{1});
    first = a.get();
  }
  REQUIRE(pool.num_allocations() == 2);
  const auto c = pool.take(kBytes), d = pool.take(kBytes / 2);
  REQUIRE((c.get() == first || d.get() == first));
  REQUIRE(pool.num_allocations() == 2);
  REQUIRE(pool.num_bytes() >= 2 * kBytes);
}

TEST_CASE("buffers that fit nobody go back to the system", "[buffer_pool]") {
  BufferPool pool;
  for (int64_t bytes = kBytes; bytes < 8 * kBytes; bytes += kBytes) {
    const auto buffer = pool.take(bytes);
    REQUIRE(pool.num_bytes() <= bytes + (2 << 20));
  }
}

TEST_CASE("a buffer outlives its pool", "[buffer_pool]") {
  std::shared_ptr<std::byte> buffer;
  {
    BufferPool pool;
    buffer = pool.take(kBytes);
  }
  std::memset(buffer.get(), 7, kBytes);
  REQUIRE(buffer.get()[kBytes - 1] == std::byte{7});
}

TEST_CASE("threads never hold the same buffer", "[buffer_pool]") {
  BufferPool pool;
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 1; t <= 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 300; ++i) {
          const auto buffer = pool.take(10000 + 100 * ((i * t) % 50));
          std::memset(buffer.get(), t, 10000);
          std::this_thread::yield();
          if (buffer.get()[0] != std::byte(t) || buffer.get()[9999] != std::byte(t)) ++wrong;
        }
      });
    }
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("memory that is not there is an error that names what sets the size", "[buffer_pool]") {
  BufferPool pool;
  REQUIRE_THROWS_WITH(pool.take(int64_t{1} << 50), ContainsSubstring("no memory for a batch of"));
}
