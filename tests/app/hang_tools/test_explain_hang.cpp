// SPDX-License-Identifier: Apache-2.0
// `aifs-train explain-hang` as a user runs it. tests/app/faults.py has it of a rank that stands
// still.
#include "core/file_io.h"
#include "parallel/operation_ring.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;

namespace {

test::CommandResult explain(const fs::path& run) {
  return test::run_command(
      concat("'", test::program("aifs-train").string(), "' explain-hang '", run.string(), "'"));
}

}  // namespace

TEST_CASE("the records of a run folder are explained", "[hang]") {
  const test::TemporaryFolder folder;
  make_directories(folder.path() / "hang");
  for (const int rank : {0, 1}) {
    parallel::OperationRing ring;
    const int64_t all = ring.add_group(-1, 0, 2, rank);
    ring.set_place("step 3");
    if (rank == 0) ring.begin(all, "all-gather", 96);
    write_file_atomic(folder.path() / "hang" / concat("rank-0000", rank, ".json"),
                      ring.to_json(rank, concat("rank ", rank, " on here"), "has waited"));
  }
  const auto result = explain(folder.path());
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK_THAT(result.out,
             ContainsSubstring("all-gather 1 of all ranks (96 bytes), step 3; waits for "
                               "rank 1"));
  CHECK_THAT(result.out, ContainsSubstring("it begins with rank 1 on here, which has not begun"));
}

TEST_CASE("a folder without records is named", "[hang]") {
  const test::TemporaryFolder folder;
  const auto none = explain(folder.path());
  CHECK(none.exit_code == 3);
  CHECK_THAT(none.err, ContainsSubstring("there are no records of a hang"));
  const auto nowhere = explain(folder.path() / "nowhere");
  CHECK(nowhere.exit_code == 3);
  CHECK_THAT(nowhere.err, ContainsSubstring("there is no run folder"));
}
