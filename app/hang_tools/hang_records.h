// SPDX-License-Identifier: Apache-2.0
// What ranks have left of a run in which nothing moved any more (<run.dir>/hang/rank-<n>.json,
// parallel/operation_ring.h), and what follows from it: who waits for whom.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/file_io.h"

namespace aifs::app {

struct HangRecord {
  struct Group {
    std::string name;
    int64_t size = 1, rank = 0, collectives = 0;
    std::vector<int64_t> sent;  // by rank of the group; empty: none
  };
  struct Operation {
    size_t group = 0;
    int64_t number = 0;
    std::string name;
    int64_t bytes = 0;
    std::optional<int64_t> peer;  // of a message
    std::string place;
    double begun_s = 0.0;
    std::optional<double> ended_s;  // none: it has not ended
  };

  int64_t rank = 0;
  std::string who, reason;
  double written_s = 0.0;
  // When it last stood still as a whole process, if it did.
  std::optional<double> stopped_s, woken_s;
  std::vector<Group> groups;
  std::vector<Operation> operations;  // the oldest first

  // The newest operation that has not ended; null: none.
  const Operation* waiting() const;
  const Group* group_called(const std::string& name) const;
  // Takes back what came after `time_s`: a rank that was stopped goes on when it is asked to end.
  void rewind(double time_s);
  bool stood_still_at(double time_s) const;
};

// Throws DataError naming file and key.
HangRecord read_hang_record(const fs::path& file);

// The records of one hang, by rank: those of an earlier one or of another number of ranks, which
// are still in the folder, are left out and counted. Throws DataError if there are none.
struct Hang {
  double time_s = 0.0;  // when the first rank gave up, since 1970: records are as of then
  int64_t num_ranks = 0;
  std::vector<HangRecord> records;
  std::vector<int64_t> silent;  // ranks that left nothing
  int64_t num_left_out = 0;
  std::vector<std::string> damaged;  // what is wrong with records that cannot be read

  const HangRecord* of(int64_t rank) const;
};
Hang read_hang(const fs::path& folder);

// What a rank waits for in the operation that it is in.
struct Wait {
  std::vector<int64_t> ranks;    // that have not come, but left a record
  bool for_silent = false;       // for some that left none, too
  bool others_left = false;      // some have ended the operation: this rank is behind them
  std::vector<int64_t> differs;  // ranks that came to it with another operation or size
};
// Nothing if the rank is in no operation.
std::optional<Wait> wait_of(const Hang& hang, const HangRecord& record);

// Where it begins: ranks that stood still; else those that others wait for and that wait for nobody
// themselves, those without a record included.
std::vector<int64_t> origins(const Hang& hang);

}  // namespace aifs::app
