// SPDX-License-Identifier: Apache-2.0
// Memory in which the ranks of a host that share samples read batches together: each decodes its
// pieces of a date once for all, and takes its own cells from there. Ranks meet through counters in
// that memory only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/fields/dataset.h"

namespace aifs::data {

class HostShare {
 public:
  // This rank among those that share, and the cells of all of them.
  struct Place {
    int64_t rank = 0, ranks = 1;
    NodeRange cells;
  };

  // A segment for `slots` batches of `slot_bytes` each. The first rank creates it (with an empty
  // `name`) and tells the others its name; they open it. Null if the system has no room for it
  // (/dev/shm) or does not know the name: then everybody reads for itself.
  static std::shared_ptr<HostShare> create(const Place& place, int64_t slots, int64_t slot_bytes);
  static std::shared_ptr<HostShare> open(const std::string& name, const Place& place, int64_t slots,
                                         int64_t slot_bytes);
  ~HostShare();
  HostShare(const HostShare&) = delete;
  HostShare& operator=(const HostShare&) = delete;

  const std::string& name() const { return name_; }
  const Place& place() const { return place_; }
  int64_t num_slots() const { return slots_; }
  int64_t slot_bytes() const { return slot_bytes_; }
  // All of the memory, to be page-locked.
  std::byte* memory() const { return memory_; }
  size_t memory_bytes() const { return bytes_; }
  // Takes the name away when all have opened it: nothing is left behind however the run ends.
  void unlink_name() const;

  // Batches are numbered through the run, the same on all ranks; one loader after another takes as
  // many numbers as it has batches.
  int64_t take_numbers(int64_t count);

  std::byte* slot(int64_t batch) const;
  // True when all ranks have left the slot's earlier batch: it may be written.
  bool is_free(int64_t batch) const;
  // This rank's pieces of a batch are there.
  void finish(int64_t batch) const;
  // All pieces of all ranks are there.
  bool is_finished(int64_t batch) const;
  // This rank needs the batch no more.
  void release(int64_t batch) const;
  // A rank could not read its pieces: all learn why. The first text counts; at most a few kB.
  void fail(int64_t batch, const std::string& text) const;
  std::string failure(int64_t batch) const;  // "": none
  // A rank whose process has ended, however it did; the system knows. Nothing if all are there.
  std::optional<int64_t> lost_rank() const;

 private:
  struct Slot;
  HostShare(std::string name, const Place& place, int64_t slots, int64_t slot_bytes);
  // Takes the descriptor; holds this rank's lock in it as long as the process lives.
  bool map(int descriptor);
  Slot& header(int64_t batch) const;

  const std::string name_;
  const Place place_;
  const int64_t slots_, slot_bytes_;
  std::byte* memory_ = nullptr;
  size_t bytes_ = 0;
  int64_t next_number_ = 0;
  int descriptor_ = -1;
};

}  // namespace aifs::data
