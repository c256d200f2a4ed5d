// SPDX-License-Identifier: Apache-2.0
#include "core/run_on_threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace aifs {

void run_on_threads(int64_t count, int64_t threads, const std::function<void(int64_t)>& body) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  int64_t error_item = count;
  const auto work = [&] {
    for (int64_t item = next++; item < count; item = next++) {
      try {
        body(item);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (item < error_item) {
          error = std::current_exception();
          error_item = item;
        }
        next = count;
      }
    }
  };
  std::vector<std::thread> helpers;
  try {
    for (int64_t i = 1; i < std::min(threads, count); ++i)
      helpers.emplace_back(work);
  } catch (const std::system_error&) {  // no more threads, or no memory for them: these do it all
  } catch (const std::bad_alloc&) {
  }
  work();
  for (std::thread& helper : helpers)
    helper.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace aifs
