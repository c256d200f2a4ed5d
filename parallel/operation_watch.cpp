// SPDX-License-Identifier: Apache-2.0
#include "parallel/operation_watch.h"

#include <algorithm>
#include <cstdlib>

#include "core/log.h"

namespace aifs::parallel {

using Clock = std::chrono::steady_clock;

OperationWatch::OperationWatch(double timeout_s, std::string who)
    : timeout_s_(timeout_s), who_(std::move(who)) {
  if (timeout_s_ > 0) thread_ = std::jthread([this] { watch(); });
}

OperationWatch::~OperationWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void OperationWatch::set_place(std::string place) {
  const std::lock_guard lock(mutex_);
  place_ = std::move(place);
}

int64_t OperationWatch::begin(const char* name) {
  const std::lock_guard lock(mutex_);
  operations_[next_id_] = {name, Clock::now()};
  return next_id_++;
}

void OperationWatch::end(int64_t id) {
  const std::lock_guard lock(mutex_);
  operations_.erase(id);
}

void OperationWatch::watch() {
  const auto poll = std::chrono::duration<double>(std::clamp(timeout_s_ / 10, 0.01, 1.0));
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, poll);
    if (operations_.empty()) continue;
    const Operation& oldest = operations_.begin()->second;
    const double waited_s = std::chrono::duration<double>(Clock::now() - oldest.since).count();
    if (waited_s < timeout_s_) continue;
    log::error(who_, " has waited ", static_cast<int64_t>(waited_s), " s in '", oldest.name, "'",
               place_.empty() ? "" : " of " + place_,
               ": another rank has died, hangs or does something else; this run ends here");
    log::error(
        "hint: look for the rank whose log stops first; go on from the last checkpoint with "
        "--resume, or raise parallel.timeout_s if ranks are only slow");
    log::close_file();
    std::this_thread::sleep_for(2 * poll);  // the launcher ends the others: let them speak first
    std::_Exit(kExitCode);  // MPI cannot be left in order from here; the launcher ends the others
  }
}

}  // namespace aifs::parallel
