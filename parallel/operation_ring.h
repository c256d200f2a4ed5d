// SPDX-License-Identifier: Apache-2.0
// The last operations of a rank with others, for the case that one never ends: which, in what
// group, of how many bytes, in what step, when begun and when ended. Collective operations of a
// group are numbered, and ranks number them alike, so that the records of all ranks say who has
// not come (`aifs-train explain-hang`). On a GPU an operation has ended here when it was given to
// the card.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace aifs::parallel {

// A group of ranks that was made by splitting others: its name is the same on all of its ranks.
struct RingGroup {
  std::string name;  // "all", "all.0.1": the first split of it, colour 1
  int size = 1, rank = 0;
  int64_t collectives = 0;              // that this rank has begun
  std::vector<int64_t> sent, received;  // messages to and from each rank of the group
};

struct RingEntry {
  int64_t group = 0;
  int64_t number = 0;  // of the group's collective operations, or of messages to or from `peer`
  const char* operation = "";  // a literal
  int64_t bytes = 0;
  int peer = -1;         // in the group, of a message; -1: all of the group take part
  std::string place;     // "step 12"
  double begun_s = 0.0;  // since 1970
  double ended_s = 0.0;  // 0: not ended
};

// Thread-safe.
class OperationRing {
 public:
  explicit OperationRing(size_t capacity = 256);

  // Returns the number of a new group. `parent` -1: all ranks.
  int64_t add_group(int64_t parent, int colour, int size, int rank);
  void set_place(std::string place);
  // Returns a ticket for end(). `peer`: of a message, else -1.
  int64_t begin(int64_t group, const char* operation, int64_t bytes, int peer = -1);
  void end(int64_t ticket);
  // The process has stood still as a whole, and goes on now: stopped, swapped out, or its host.
  void note_stop(double seconds);

  // Since the last operation began or ended; since the ring was made, without any.
  double seconds_since_last() const;
  // The last ones, the oldest first.
  std::vector<RingEntry> entries() const;
  std::vector<RingGroup> groups() const;
  // What a rank leaves behind as JSON: `who` ("rank 3 on n1"), why, groups and operations.
  std::string to_json(int rank, const std::string& who, const std::string& reason) const;

  // One operation, from the constructor to the destructor; nothing without a ring.
  class Scope {
   public:
    Scope(OperationRing* ring, int64_t group, const char* operation, int64_t bytes, int peer = -1)
        : ring_(ring), ticket_(ring ? ring->begin(group, operation, bytes, peer) : 0) {}
    ~Scope() {
      if (ring_) ring_->end(ticket_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    OperationRing* ring_;
    int64_t ticket_;
  };

 private:
  mutable std::mutex mutex_;
  std::vector<RingEntry> entries_;
  int64_t next_ = 0;  // ticket
  std::vector<RingGroup> groups_;
  std::vector<int64_t> splits_;  // of each group
  std::string place_;
  double stopped_s_ = 0.0, woken_s_ = 0.0;  // the last time that it stood still, since 1970
  double last_s_;                           // when something began or ended, since 1970
};

}  // namespace aifs::parallel
