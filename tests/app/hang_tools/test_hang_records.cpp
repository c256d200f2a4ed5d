// SPDX-License-Identifier: Apache-2.0
#include "app/hang_tools/hang_records.h"

#include <array>
#include <chrono>
#include <thread>

#include "app/hang_tools/explain_hang.h"
#include "core/check.h"
#include "parallel/operation_ring.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::app;
using parallel::OperationRing;
using Ranks = std::vector<int64_t>;

namespace {

// A run of four ranks, two and two of which are groups of their own.
struct Ranks4 {
  test::TemporaryFolder folder;
  std::array<OperationRing, 4> rings;

  Ranks4() {
    for (int rank = 0; rank < 4; ++rank) {
      OperationRing& ring = rings[static_cast<size_t>(rank)];
      ring.add_group(-1, 0, 4, rank);
      ring.add_group(0, rank / 2, 2, rank % 2);
      ring.set_place("step 12");
      for (const int64_t group : {0, 1})
        ring.end(ring.begin(group, "all-reduce", 48));
    }
  }
  int64_t begin(int rank, int64_t group, const char* operation, int64_t bytes = 48, int peer = -1) {
    return rings[static_cast<size_t>(rank)].begin(group, operation, bytes, peer);
  }
  void leave(int rank) const {
    write_file_atomic(folder.path() / concat("rank-", rank, ".json"),
                      rings[static_cast<size_t>(rank)].to_json(
                          rank, concat("rank ", rank, " on n", rank / 2), "has waited"));
  }
  Hang hang(const Ranks& with) const {
    for (const int64_t rank : with)
      leave(static_cast<int>(rank));
    return read_hang(folder.path());
  }
};

}  // namespace

TEST_CASE("a rank that does not come is found, whatever others wait for", "[hang]") {
  Ranks4 run;
  for (const int rank : {0, 2})  // 0 waits for 1 in the group of all, 2 in its pair for 3
    run.begin(rank, rank == 0 ? 0 : 1, "all-reduce");
  run.begin(3, 0, "all-reduce");  // 3 waits for 1 and 2
  const Hang hang = run.hang({0, 1, 2, 3});
  CHECK(hang.silent.empty());
  CHECK(wait_of(hang, *hang.of(0))->ranks == Ranks{1, 2});
  CHECK(wait_of(hang, *hang.of(2))->ranks == Ranks{3});
  CHECK_FALSE(wait_of(hang, *hang.of(1)));
  CHECK(origins(hang) == Ranks{1});
  const std::string text = hang_text(hang);
  INFO(text);
  CHECK_THAT(text, ContainsSubstring("4 of 4 ranks left their last operations"));
  CHECK_THAT(text, ContainsSubstring("rank 0 on n0: ") &&
                       ContainsSubstring(" in all-reduce 2 of all ranks (48 bytes), step 12; waits "
                                         "for ranks 1, 2\n"));
  CHECK_THAT(text, ContainsSubstring("in all-reduce 2 of group all.0.1 of 2 (48 bytes), step 12; "
                                     "waits for rank 3\n"));
  CHECK_THAT(text, ContainsSubstring("it begins with rank 1 on n0: after all-reduce 1 of group "
                                     "all.0.0 of 2, step 12 it did not come to the next one"));
}

TEST_CASE("a rank that left nothing is where it begins, if others wait for it", "[hang]") {
  Ranks4 run;
  for (const int rank : {0, 1, 2})
    run.begin(rank, 0, "broadcast");
  const Hang hang = run.hang({0, 1, 2});
  CHECK(hang.silent == Ranks{3});
  CHECK(wait_of(hang, *hang.of(0))->for_silent);
  CHECK(origins(hang) == Ranks{3});
  CHECK_THAT(hang_text(hang), ContainsSubstring("it begins with rank 3, which left nothing") &&
                                  ContainsSubstring("; waits for rank 3\n"));
}

TEST_CASE("a rank that stood still and went on when it was asked to end is found", "[hang]") {
  Ranks4 run;
  for (const int rank : {0, 2, 3})
    run.begin(rank, 0, "all-reduce");
  for (const int rank : {0, 2, 3})
    run.leave(rank);
  // Woken, it does what it had to do, and ends in the next operation.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  run.rings[1].note_stop(30.0);
  run.rings[1].end(run.begin(1, 0, "all-reduce"));
  run.begin(1, 0, "barrier");
  write_file_atomic(run.folder.path() / "rank-1.json",
                    run.rings[1].to_json(1, "rank 1 on n0", "was asked to end in 'barrier'"));
  const Hang hang = read_hang(run.folder.path());
  CHECK_FALSE(hang.of(1)->waiting());
  CHECK(hang.of(1)->group_called("all")->collectives == 1);
  CHECK(wait_of(hang, *hang.of(0))->ranks == Ranks{1});
  CHECK(origins(hang) == Ranks{1});
  CHECK_THAT(hang_text(hang),
             ContainsSubstring("; stood still for 30") &&
                 ContainsSubstring("it begins with rank 1 on n0, which stood still"));
}

TEST_CASE("a rank that is in an operation which others have left is behind them", "[hang]") {
  Ranks4 run;
  run.begin(1, 0, "all-gather");
  for (const int rank : {0, 2, 3}) {
    run.rings[static_cast<size_t>(rank)].end(run.begin(rank, 0, "all-gather"));
    run.begin(rank, 0, "barrier");
  }
  const Hang hang = run.hang({0, 1, 2, 3});
  CHECK(wait_of(hang, *hang.of(0))->ranks == Ranks{1});
  CHECK(wait_of(hang, *hang.of(1))->others_left);
  CHECK(origins(hang) == Ranks{1});
  CHECK_THAT(hang_text(hang),
             ContainsSubstring("; others have left it") &&
                 ContainsSubstring("it begins with rank 1 on n0: in all-gather 2 of "
                                   "all ranks, step 12, which others have left"));
}

TEST_CASE("a message that was not sent is waited for by its receiver alone", "[hang]") {
  Ranks4 run;
  run.rings[3].end(run.begin(3, 1, "send", 8, 0));
  run.rings[2].end(run.begin(2, 1, "receive", 8, 1));
  run.begin(2, 1, "receive", 8, 1);
  const Hang hang = run.hang({0, 1, 2, 3});
  CHECK(wait_of(hang, *hang.of(2))->ranks == Ranks{3});
  CHECK(origins(hang) == Ranks{3});
  CHECK_THAT(hang_text(hang), ContainsSubstring("receive 2 from rank 1 in group all.0.1 of 2"));
}

TEST_CASE("ranks that wait for each other, and other operations at one place, are told apart",
          "[hang]") {
  Ranks4 run;
  run.begin(0, 0, "all-reduce", 48);
  for (const int rank : {1, 2, 3})
    run.begin(rank, 0, "all-reduce", 96);
  const Hang differs = run.hang({0, 1, 2, 3});
  CHECK(wait_of(differs, *differs.of(0))->differs == Ranks{1, 2, 3});
  CHECK(wait_of(differs, *differs.of(1))->differs == Ranks{0});
  CHECK_THAT(hang_text(differs), ContainsSubstring("no rank is behind the others") &&
                                     ContainsSubstring("do different things at the same place"));
  Ranks4 crossed;
  crossed.begin(0, 0, "barrier");
  crossed.begin(1, 1, "barrier");
  crossed.begin(2, 0, "barrier");
  crossed.begin(3, 0, "barrier");
  const Hang cross = crossed.hang({0, 1, 2, 3});
  CHECK(wait_of(cross, *cross.of(0))->ranks == Ranks{1});
  CHECK(wait_of(cross, *cross.of(1))->ranks == Ranks{0});
  CHECK(origins(cross).empty());
}

TEST_CASE("records of earlier hangs and other numbers of ranks are left out", "[hang]") {
  Ranks4 run;
  run.begin(0, 0, "barrier");
  run.leave(0);
  std::string old = run.rings[1].to_json(1, "rank 1 on n0", "has waited");
  const size_t at = old.find("\"written_s\": ") + 13;
  write_file_atomic(run.folder.path() / "rank-1.json", old.replace(at, 10, "1000000000"));
  OperationRing eight;
  eight.add_group(-1, 0, 8, 7);
  write_file_atomic(run.folder.path() / "rank-7.json", eight.to_json(7, "rank 7 on n3", ""));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  run.leave(0);  // the newest
  write_file_atomic(run.folder.path() / "rank-2.json", "{\"rank\": 2}");
  write_file_atomic(run.folder.path() / "notes.txt", "");
  const Hang hang = read_hang(run.folder.path());
  CHECK(hang.num_ranks == 4);
  CHECK(hang.records.size() == 1);
  CHECK(hang.num_left_out == 2);
  CHECK(hang.silent == Ranks{1, 2, 3});
  REQUIRE(hang.damaged.size() == 1);
  CHECK_THAT(hang.damaged[0], ContainsSubstring("rank-2.json"));
  const test::TemporaryFolder empty;
  CHECK_THROWS_AS(read_hang(empty.path()), DataError);
}
