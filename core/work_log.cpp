// SPDX-License-Identifier: Apache-2.0
#include "core/work_log.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "core/check.h"

namespace aifs {

namespace {

struct Log {
  std::atomic<bool> wanted = false;
  std::mutex mutex;
  std::vector<WorkOfCall> calls;
};

Log& log() {
  static Log the_log;
  return the_log;
}

}  // namespace

WorkLog::WorkLog() {
  const std::lock_guard lock(log().mutex);
  AIFS_CHECK(!log().wanted, "the work of kernels is logged already");
  log().calls.clear();
  log().wanted = true;
}

WorkLog::~WorkLog() {
  log().wanted = false;
}

bool WorkLog::is_wanted() {
  return log().wanted.load(std::memory_order_relaxed);
}

void WorkLog::add(WorkOfCall work) {
  const std::lock_guard lock(log().mutex);
  if (log().wanted) log().calls.push_back(std::move(work));
}

std::vector<WorkOfCall> WorkLog::calls() const {
  const std::lock_guard lock(log().mutex);
  return log().calls;
}

}  // namespace aifs
