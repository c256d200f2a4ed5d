// SPDX-License-Identifier: Apache-2.0
// Tells ranks that wait in a collective operation that another one is at known work (it writes a
// checkpoint, builds a graph, reads) and not lost. One counter of the whole job, on a small server
// of rank 0 beside whatever carries tensors: a rank at work raises it now and then, one that waits
// looks whether it grows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace aifs::parallel {

class WorkBoard {
 public:
  virtual ~WorkBoard() = default;

  // None of these throws, and each returns within seconds, whatever has become of the server.

  // Raises the counter and leaves word ("rank 0 on n1: writing a checkpoint"). False if the board
  // cannot be reached.
  virtual bool note(const std::string& who_and_what) = 0;
  // The counter, -1 if the board cannot be reached.
  virtual int64_t count() = 0;
  // The word of the last rank that raised the counter, "" if there is none.
  virtual std::string last_word() = 0;
};

// Says where the server is, tried in this order.
struct BoardAddress {
  std::vector<std::string> hosts;
  uint16_t port = 0;
};

// A server for the boards of all ranks, on a port that the system chooses. Lives as long as the
// board that is returned; null if none can be started.
std::unique_ptr<WorkBoard> serve_work_board(uint16_t& port);
// A board on that server. It connects when it is first used, within a few seconds or not at all: a
// job goes on without.
std::unique_ptr<WorkBoard> join_work_board(BoardAddress address);

}  // namespace aifs::parallel
