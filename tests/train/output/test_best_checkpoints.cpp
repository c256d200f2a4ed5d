// SPDX-License-Identifier: Apache-2.0
#include "train/output/best_checkpoints.h"

#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/paths.h"
#include "train/output/checkpoint.h"

using namespace aifs;
using namespace aifs::train;
using Steps = std::vector<int64_t>;

namespace {

KeepBestOptions two(const std::string& score = "loss") {
  return {.number = 2, .by = {.score = score}};
}

// With the checkpoint's folder.
void add(BestCheckpoints& best, const fs::path& folder, int64_t step, double score) {
  make_directories(checkpoint_path(folder, step));
  if (best.would_keep(score)) best.add(step, score);
}

}  // namespace

TEST_CASE("those with the best scores stay on the list, the first of equal ones",
          "[best_checkpoints]") {
  const test::TemporaryFolder folder;
  BestCheckpoints best(folder.path(), two(), -1);
  REQUIRE_FALSE(best.would_keep(std::nan("")));
  add(best, folder.path(), 10, 3.0);
  add(best, folder.path(), 20, 5.0);
  REQUIRE(best.steps() == Steps{10, 20});
  add(best, folder.path(), 30, 4.0);
  REQUIRE(best.steps() == Steps{10, 30});
  add(best, folder.path(), 40, 4.0);
  REQUIRE(best.steps() == Steps{10, 30});
  add(best, folder.path(), 50, 1.0);
  REQUIRE(best.steps() == Steps{50, 10});
  REQUIRE(pointed_at(folder.path() / "best") == checkpoint_path(folder.path(), 50));
}

TEST_CASE("a resumed run goes on with the list up to its step", "[best_checkpoints]") {
  const test::TemporaryFolder folder;
  {
    BestCheckpoints best(folder.path(), two(), -1);
    add(best, folder.path(), 10, 3.0);
    add(best, folder.path(), 20, 0.1 + 0.2);
  }
  REQUIRE(BestCheckpoints(folder.path(), two(), 20).steps() == Steps{20, 10});
  BestCheckpoints again(folder.path(), two(), 20);
  again.add(20, 0.1 + 0.2);  // judged once more
  REQUIRE(again.steps() == Steps{20, 10});
  REQUIRE_FALSE(again.would_keep(3.0));
  REQUIRE(BestCheckpoints(folder.path(), two(), 19).steps() == Steps{10});
  REQUIRE(BestCheckpoints(folder.path(), two(), -1).steps().empty());
  REQUIRE(BestCheckpoints(folder.path(), two("mean_ratio_6h"), 20).steps().empty());
  fs::remove_all(checkpoint_path(folder.path(), 10));
  REQUIRE(BestCheckpoints(folder.path(), two(), 20).steps() == Steps{20});
}

TEST_CASE("a damaged list and a full disk stop nothing", "[best_checkpoints]") {
  const test::TemporaryFolder folder;
  for (const char* text : {"", "[]", "{\"score\": 3}",
                           R"({"score": "loss", "better": "auto", "kept": [{"step": "x"}]})"}) {
    write_file_atomic(folder.path() / "best.json", text);
    REQUIRE(BestCheckpoints(folder.path(), two(), 20).steps().empty());
  }
  BestCheckpoints best(folder.path(), two(), -1);
  const test::FileSizeLimit limit(3);
  add(best, folder.path(), 10, 3.0);
  REQUIRE(best.steps() == Steps{10});
}
