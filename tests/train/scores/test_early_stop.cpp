// SPDX-License-Identifier: Apache-2.0
#include "train/scores/early_stop.h"

#include <cmath>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::train;

namespace {

const EarlyStopOptions kOptions{.by = {.score = "loss"}, .patience = 2, .min_delta = 0.25};

StopCount counted(std::initializer_list<double> scores) {
  StopCount count;
  int64_t step = 0;
  for (const double score : scores)
    count_score(kOptions, score, step += 10, count);
  return count;
}

}  // namespace

TEST_CASE("validations without a gain are counted until there is one", "[early_stop]") {
  REQUIRE(counted({}).without_gain == 0);
  REQUIRE(counted({4.0}).without_gain == 0);
  REQUIRE(counted({4.0, 3.8}).without_gain == 1);  // not better by more than min_delta
  REQUIRE(counted({4.0, 3.8}).best == 4.0);
  REQUIRE(counted({4.0, 3.8, 3.7}).without_gain == 0);
  REQUIRE_FALSE(stops_early(kOptions, counted({4.0, 3.8, 3.7, 5.0})));
  REQUIRE(stops_early(kOptions, counted({4.0, 3.8, 5.0})));
  REQUIRE(stops_early(kOptions, counted({4.0, std::nan(""), std::nan("")})));
  REQUIRE_FALSE(stops_early(EarlyStopOptions(), counted({4.0, 5.0, 6.0})));
}

TEST_CASE("a validation counts once, whoever tells of it", "[early_stop]") {
  StopCount count = counted({4.0, 5.0});
  count_score(kOptions, 5.0, 20, count);
  REQUIRE(count.without_gain == 1);
  REQUIRE(count.last_step == 20);
}

TEST_CASE("lines of a file count like the validations that they are of", "[early_stop]") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "validation.jsonl";
  StopCount count;
  count_lines(kOptions, file, count);
  REQUIRE(count.last_step == -1);
  write_file_atomic(file,
                    "{\"step\": 10, \"loss\": 4.0}\n{\"step\": 20, \"loss\": 0.1}\n"
                    "{\"step\": 30, \"failure\": \"x\"}\nnonsense\n[1]\n{\"loss\": 1}\n"
                    "{\"step\": \"x\", \"loss\": 1}\n{\"step\": 40, \"loss\": null}\n{\"st");
  count_lines(kOptions, file, count);
  REQUIRE(count.best == 0.1);
  REQUIRE(count.without_gain == 1);
  REQUIRE(count.last_step == 40);
  // A number comes back to the bit.
  write_file_atomic(file, "{\"step\": 50, \"loss\": -0.30000000000000004}\n");
  count_lines(kOptions, file, count);
  REQUIRE(count.best == -(0.1 + 0.2));
}
