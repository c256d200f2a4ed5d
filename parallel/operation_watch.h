// SPDX-License-Identifier: Apache-2.0
// Ends the process when a collective operation waits too long: a rank that has died or hangs must
// not leave the others waiting for ever. The last message names rank, host, operation and step.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>

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

  // What the run is at, for the message ("step 12").
  void set_place(std::string place);

  // Exit status of a process that gave up waiting; app/exit_codes.h documents it.
  static constexpr int kExitCode = 6;

 private:
  struct Operation {
    const char* name;
    std::chrono::steady_clock::time_point since;
  };

  int64_t begin(const char* name);
  void end(int64_t id);
  void watch();

  const double timeout_s_;
  const std::string who_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, Operation> operations_;  // in progress, by number; the first began first
  int64_t next_id_ = 0;
  std::string place_;
  bool stopping_ = false;
  std::jthread thread_;
};

}  // namespace aifs::parallel
