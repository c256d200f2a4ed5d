// SPDX-License-Identifier: Apache-2.0
#include "forecast/write_behind.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "core/seconds_since.h"

namespace aifs::forecast {

struct WriteBehind::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> pieces;  // the first is being done
  int64_t most = 1;
  bool ends = false;
  std::exception_ptr error;
  double wait_s = 0.0;
  std::thread thread;

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return ends || !pieces.empty(); });
      if (ends || error) return;
      const std::function<void()>& piece = pieces.front();
      lock.unlock();
      std::exception_ptr failed;
      try {
        piece();
      } catch (...) {
        failed = std::current_exception();
      }
      lock.lock();
      error = failed;
      pieces.pop_front();
      changed.notify_all();
      if (error) return;
    }
  }

  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock, Ready ready) {
    const auto start = std::chrono::steady_clock::now();
    changed.wait(lock, [&] { return error || ready(); });
    wait_s += seconds_since(start);
    if (error) std::rethrow_exception(error);
  }
};

WriteBehind::WriteBehind(int64_t most) : state_(std::make_unique<State>()) {
  state_->most = most;
  state_->thread = std::thread([state = state_.get()] { state->work(); });
}

WriteBehind::~WriteBehind() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ends = true;
    state_->changed.notify_all();
  }
  state_->thread.join();
}

void WriteBehind::add(std::function<void()> piece) {
  std::unique_lock lock(state_->mutex);
  state_->wait(lock, [&] { return static_cast<int64_t>(state_->pieces.size()) < state_->most; });
  state_->pieces.push_back(std::move(piece));
  state_->changed.notify_all();
}

void WriteBehind::finish() {
  std::unique_lock lock(state_->mutex);
  state_->wait(lock, [&] { return state_->pieces.empty(); });
}

double WriteBehind::wait_s() const {
  const std::lock_guard lock(state_->mutex);
  return state_->wait_s;
}

}  // namespace aifs::forecast
