// SPDX-License-Identifier: Apache-2.0
#include "train/epoch_requests.h"

#include <set>

#include "core/check.h"
#include "core/time.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::train;

namespace {

data::DatasetInfo dataset_of(int64_t rows) {
  data::DatasetInfo info;
  info.name = "rows";
  info.frequency_s = 6 * 3600;
  for (int64_t row = 0; row < rows; ++row)
    info.dates_s.push_back(row * info.frequency_s);
  return info;
}

TrainOptions options_of(const RolloutOptions& rollout, int64_t accumulate = 1) {
  TrainOptions train;
  train.rollout = rollout;
  train.accumulate_batches = accumulate;
  train.max_steps = 0;
  return train;
}

const Window kWindow{2, 1, 1};

}  // namespace

TEST_CASE("every request lies in the data, however far the rollout grows in the epoch",
          "[epoch_requests]") {
  const data::DatasetInfo info = dataset_of(20);
  for (const int64_t increment : {1, 3, 7, 100}) {
    for (const int64_t accumulate : {1, 2, 5}) {
      const TrainOptions train =
          options_of({.start = 1, .maximum = 9, .step_increment = increment}, accumulate);
      for (const int64_t first_step : {0, 4, 40}) {
        CAPTURE(increment, accumulate, first_step);
        const auto requests =
            requests_of_epoch({info, kWindow, {.seed = 1}, train}, {.step = first_step});
        const auto count = static_cast<int64_t>(requests.size());
        for (int64_t i = 0; i < count; ++i) {
          const auto& request = requests[static_cast<size_t>(i)];
          const int64_t rollout = rollout_at(train.rollout, 0, first_step + i / accumulate);
          REQUIRE(request.offsets == kWindow.offsets(rollout));
          for (const int64_t anchor : request.anchors)
            REQUIRE((anchor >= 1 && anchor + request.offsets.back() < 20));
        }
        // As many samples as the last and longest of them allows.
        const int64_t last = rollout_at(train.rollout, 0, first_step + (count - 1) / accumulate);
        REQUIRE(count >= 20 - 1 - 9);
        REQUIRE(count <= 20 - 1 - last);
      }
    }
  }
}

TEST_CASE("a rollout that an epoch does not reach takes no sample from it", "[epoch_requests]") {
  const data::DatasetInfo info = dataset_of(20);
  const TrainOptions train = options_of({.start = 1, .maximum = 9, .step_increment = 1000});
  REQUIRE(requests_of_epoch({info, kWindow, {.seed = 1}, train}, {}).size() == 18);
  // By epochs: the one at hand.
  const TrainOptions by_epoch = options_of({.start = 1, .epoch_increment = 1, .maximum = 9});
  REQUIRE(requests_of_epoch({info, kWindow, {.seed = 1}, by_epoch}, {.epoch = 2}).size() == 16);
}

TEST_CASE("the order of an epoch does not depend on where it is resumed or where the run ends",
          "[epoch_requests]") {
  const data::DatasetInfo info = dataset_of(30);
  for (const int64_t accumulate : {1, 3}) {
    TrainOptions train = options_of({.start = 1, .maximum = 6, .step_increment = 2}, accumulate);
    const auto whole = requests_of_epoch({info, kWindow, {.seed = 5}, train}, {.step = 3});
    for (const int64_t done : {1, 2, 4}) {
      train.max_steps = 3 + done;  // where it was stopped: of no matter
      const LoopState state{.step = 3 + done, .batch_in_epoch = done * accumulate};
      const auto rest = requests_of_epoch({info, kWindow, {.seed = 5}, train}, state);
      REQUIRE(rest.size() == whole.size() - static_cast<size_t>(done * accumulate));
      for (size_t i = 0; i < rest.size(); ++i) {
        const auto& same = whole[i + static_cast<size_t>(done * accumulate)];
        REQUIRE(rest[i].anchors == same.anchors);
        REQUIRE(rest[i].offsets == same.offsets);
      }
    }
  }
}

TEST_CASE("data for the longest rollout of a run suffice, data for none of a replica do not",
          "[epoch_requests]") {
  const data::DatasetInfo info = dataset_of(4);  // up to two steps
  TrainOptions train = options_of({.start = 1, .maximum = 9, .step_increment = 1});
  train.max_steps = 2;
  REQUIRE(train.longest_rollout() == 2);
  REQUIRE_NOTHROW(check_training_samples(info, kWindow, train.longest_rollout()));
  const auto requests = requests_of_epoch({info, kWindow, {.seed = 1}, train}, {});
  REQUIRE(requests.size() >= 1);
  REQUIRE_THROWS_AS(requests_of_epoch({info, kWindow, {.num_groups = 7}, train}, {}), DataError);
}
