// SPDX-License-Identifier: Apache-2.0
// Ends the process when a collective operation waits too long: a rank that has died or hangs must
// not leave the others waiting for ever. The last message names rank, host, operation and step.
// Known work of one rank, which others wait for, is no hang: it is told through a board.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "parallel/work_board.h"

namespace aifs::parallel {

class OperationWatch {
 public:
  // `timeout_s` 0 watches nothing. `who` is the rank and host of the messages.
  OperationWatch(double timeout_s, std::string who);
  ~OperationWatch();
  OperationWatch(const OperationWatch&) = delete;
  OperationWatch& operator=(const OperationWatch&) = delete;

  // An operation in progress for as long as the object lives; `name` is a literal. Thread-safe.
  class Scope {
   public:
    Scope(OperationWatch& watch, const char* name) : watch_(watch), id_(watch_.begin(name)) {}
    ~Scope() { watch_.end(id_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    OperationWatch& watch_;
    int64_t id_;
  };

  // Work of this rank that other ranks may wait for, as long as the object lives: they are told
  // from time to time. It must not hold an operation: two ranks that wait for each other would wait
  // for ever. Thread-safe.
  class Work {
   public:
    Work(OperationWatch& watch, std::string name);
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    OperationWatch& watch_;
  };

  // Tells the other ranks once that work goes on. Thread-safe.
  void note_progress(std::string work);

  // Sets where ranks tell each other of their work; without one, known work counts as a wait.
  void set_board(std::shared_ptr<WorkBoard> board);

  // Sets what the run is at, for the message ("step 12").
  void set_place(std::string place);

  // What a rank leaves behind when it gives up, or when it is asked to end while nothing moves: by
  // a launcher that ends the others, or by somebody who has lost patience.
  struct Record {
    std::function<void(const std::string& reason)> write;  // throws nothing
    std::function<bool()> is_asked_to_end;
    std::function<double()> quiet_s;                // since it last began or ended an operation
    std::function<void(double seconds)> note_stop;  // the process stood still for so long
    std::string hint;                               // how to read it
  };
  void set_record(Record record);

  // Exit status of a process that gave up waiting; app/run/exit_codes.h documents it.
  static constexpr int kExitCode = 6;

 private:
  using Clock = std::chrono::steady_clock;
  struct Operation {
    const char* name;
    Clock::time_point since;
  };

  int64_t begin(const char* name);
  void end(int64_t id);
  void watch();
  // Tells the others of own work, if there is some to tell. `lock` is free while it does.
  void tell(std::unique_lock<std::mutex>& lock);
  // Looks for work of others while `oldest` has waited for long.
  void look(std::unique_lock<std::mutex>& lock, Clock::time_point oldest);
  [[noreturn]] void give_up(std::unique_lock<std::mutex>& lock);
  // Leaves the record if this rank is asked to end and nothing has moved for long.
  void leave_record(std::unique_lock<std::mutex>& lock);
  double seconds_since(Clock::time_point start) const;

  const double timeout_s_;
  const double pulse_s_;  // between words to the others, and looks at theirs
  const std::string who_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, Operation> operations_;  // in progress, by number; the first began first
  int64_t next_id_ = 0;
  std::string place_;
  std::shared_ptr<WorkBoard> board_;
  int num_works_ = 0;         // in progress
  bool has_to_tell_ = false;  // of progress since the last word
  std::string work_;          // the last one that was named
  int64_t count_seen_ = -1;   // of the board
  Clock::time_point told_, looked_, moved_;
  Record record_;
  bool recorded_ = false;
  bool stopping_ = false;
  std::jthread thread_;
};

}  // namespace aifs::parallel
