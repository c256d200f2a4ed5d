// SPDX-License-Identifier: Apache-2.0
#include "parallel/operation_watch.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <system_error>
#include <thread>

#include "core/check.h"
#include "core/log.h"

namespace aifs::parallel {

OperationWatch::OperationWatch(double timeout_s, std::string who)
    : timeout_s_(timeout_s), pulse_s_(std::min(timeout_s / 4, 5.0)), who_(std::move(who)) {
  told_ = looked_ = moved_ = Clock::now();
  if (timeout_s_ > 0) thread_ = std::jthread([this] { watch(); });
}

OperationWatch::~OperationWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

OperationWatch::Work::Work(OperationWatch& watch, std::string name) : watch_(watch) {
  const std::lock_guard lock(watch_.mutex_);
  ++watch_.num_works_;
  watch_.work_ = std::move(name);
}

OperationWatch::Work::~Work() {
  const std::lock_guard lock(watch_.mutex_);
  --watch_.num_works_;
}

void OperationWatch::note_progress(std::string work) {
  const std::lock_guard lock(mutex_);
  has_to_tell_ = true;
  work_ = std::move(work);
}

void OperationWatch::set_board(std::shared_ptr<WorkBoard> board) {
  const std::lock_guard lock(mutex_);
  board_ = std::move(board);
}

void OperationWatch::set_record(Record record) {
  const std::lock_guard lock(mutex_);
  record_ = std::move(record);
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

double OperationWatch::seconds_since(Clock::time_point start) const {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void OperationWatch::tell(std::unique_lock<std::mutex>& lock) {
  if (!board_ || seconds_since(told_) < pulse_s_) return;
  if (num_works_ == 0 && !has_to_tell_) return;
  has_to_tell_ = false;
  const std::string word = who_ + ": " + work_;
  const std::shared_ptr<WorkBoard> board = board_;
  lock.unlock();  // an answer may take seconds
  board->note(word);
  lock.lock();
  told_ = Clock::now();
}

void OperationWatch::look(std::unique_lock<std::mutex>& lock, Clock::time_point oldest) {
  // Not for short waits: there are many, and all ranks would ask one server.
  if (!board_ || seconds_since(oldest) < timeout_s_ / 3 || seconds_since(looked_) < pulse_s_)
    return;
  const std::shared_ptr<WorkBoard> board = board_;
  lock.unlock();
  const int64_t count = board->count();
  const std::string word = count != count_seen_ && count > 0 ? board->last_word() : "";
  lock.lock();
  looked_ = Clock::now();
  if (count < 0 || count == count_seen_) return;
  // A first look says nothing of whether the counter moves: work may have ended long ago.
  const bool moves = count_seen_ >= 0;
  count_seen_ = count;
  if (!moves) return;
  if (seconds_since(moved_) > timeout_s_) log::info("waiting for ", word);
  moved_ = looked_;
}

namespace {

// Gives up on a file system that hangs as everything else does.
void write_within_seconds(const std::function<void(const std::string&)>& write,
                          const std::string& reason) {
  const auto done = std::make_shared<std::promise<void>>();
  const std::future<void> written = done->get_future();
  try {
    std::thread([=] {
      write(reason);
      done->set_value();
    }).detach();
  } catch (const std::system_error&) {  // no thread is to be had, and no time to wait for one
    return;
  }
  written.wait_for(std::chrono::seconds(3));
}

}  // namespace

void OperationWatch::give_up(std::unique_lock<std::mutex>& lock) {
  const Operation& oldest = operations_.begin()->second;
  const std::string waited =
      concat("has waited ", static_cast<int64_t>(seconds_since(oldest.since)), " s in '",
             oldest.name, "'", place_.empty() ? "" : " of " + place_);
  log::error(who_, " ", waited,
             ": another rank has died, hangs or does something else; this run ends here");
  log::error(
      "hint: look for the rank whose log stops first; go on from the last checkpoint with "
      "--resume, or raise parallel.timeout_s if ranks are only slow",
      record_.hint);
  log::close_file();
  const auto write = recorded_ ? nullptr : record_.write;
  lock.unlock();
  if (write) write_within_seconds(write, waited);
  // The launcher ends the others: let them speak first.
  std::this_thread::sleep_for(std::chrono::duration<double>(std::min(timeout_s_ / 5, 2.0)));
  std::_Exit(kExitCode);  // MPI cannot be left in order from here; the launcher ends the others
}

void OperationWatch::leave_record(std::unique_lock<std::mutex>& lock) {
  if (recorded_ || !record_.write || !record_.is_asked_to_end()) return;
  if (record_.quiet_s() < timeout_s_ / 4) return;
  recorded_ = true;
  const Record record = record_;
  const std::string reason = operations_.empty()
                                 ? "was asked to end, in no operation with others"
                                 : concat("was asked to end in '", operations_.begin()->second.name,
                                          "'", place_.empty() ? "" : " of " + place_);
  lock.unlock();
  record.write(reason);
  lock.lock();
}

void OperationWatch::watch() {
  // A launcher that ends this rank leaves it a second.
  const auto poll = std::chrono::duration<double>(std::clamp(timeout_s_ / 10, 0.01, 0.25));
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Clock::time_point before = Clock::now();
    changed_.wait_for(lock, poll);
    // This thread has nothing else to do: if it is late, so is the process.
    if (record_.note_stop && seconds_since(before) > poll.count() + timeout_s_ / 3)
      record_.note_stop(seconds_since(before));
    tell(lock);
    leave_record(lock);
    if (stopping_ || operations_.empty()) continue;
    const Clock::time_point since = operations_.begin()->second.since;
    look(lock, since);
    if (operations_.empty() || operations_.begin()->second.since != since) continue;
    if (seconds_since(std::max(since, moved_)) >= timeout_s_) give_up(lock);
  }
}

}  // namespace aifs::parallel
