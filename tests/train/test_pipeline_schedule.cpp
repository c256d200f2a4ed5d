// SPDX-License-Identifier: Apache-2.0
#include "train/pipeline_schedule.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::train;

namespace {

std::string text_of(int64_t stage, int64_t stages, int64_t batches) {
  std::string text;
  for (const Pass pass : one_forward_one_backward(stage, stages, batches))
    text += pass == Pass::kForward ? 'F' : 'B';
  return text;
}

// Steps of one pass each until all stages are done, where a pass waits for its neighbour's; -1 if
// they wait for each other.
int64_t makespan(int64_t stages, int64_t batches) {
  std::vector<std::string> left;
  for (int64_t s = 0; s < stages; ++s)
    left.push_back(text_of(s, stages, batches));
  std::vector<int64_t> forward(left.size(), 0), backward(left.size(), 0);
  for (int64_t step = 0;; ++step) {
    if (std::all_of(left.begin(), left.end(), [](const auto& text) { return text.empty(); }))
      return step;
    const auto forward_before = forward, backward_before = backward;
    bool any = false;
    for (size_t s = 0; s < left.size(); ++s) {
      if (left[s].empty()) continue;
      const bool goes_forward = left[s][0] == 'F';
      const bool ready = goes_forward
                             ? s == 0 || forward_before[s - 1] > forward[s]
                             : s + 1 == left.size() || backward_before[s + 1] > backward[s];
      if (!ready) continue;
      any = true;
      ++(goes_forward ? forward : backward)[s];
      left[s].erase(0, 1);
    }
    if (!any) return -1;
  }
}

}  // namespace

TEST_CASE("a stage runs ahead by the stages after it, then forward and backward take turns",
          "[pipeline_schedule]") {
  REQUIRE(text_of(0, 1, 3) == "FBFBFB");
  REQUIRE(text_of(0, 3, 4) == "FFFBFBBB");
  REQUIRE(text_of(1, 3, 4) == "FFBFBFBB");
  REQUIRE(text_of(2, 3, 4) == "FBFBFBFB");
  REQUIRE(text_of(0, 4, 2) == "FFBB");
  REQUIRE(text_of(0, 4, 1) == "FB");
}

TEST_CASE("stages never wait for each other in a circle, and the bubble is that of the theory",
          "[pipeline_schedule]") {
  for (const int64_t stages : {1, 2, 3, 4, 7}) {
    for (const int64_t batches : {1, 2, 3, 5, 8, 20}) {
      INFO(stages << " stages, " << batches << " batches");
      REQUIRE(makespan(stages, batches) == 2 * (batches + stages - 1));
    }
  }
}

TEST_CASE("every batch goes back with what its pass forward has left", "[pipeline_schedule]") {
  int64_t given = 0, most = 0, in_flight = 0;
  std::vector<int64_t> back;
  run_passes(
      one_forward_one_backward(1, 4, 6),
      [&](int64_t batch) {
        REQUIRE(batch == given++);
        most = std::max(most, ++in_flight);
        return at::full({1}, 10 * batch, at::kLong);
      },
      [&](const at::Tensor& total, int64_t batch) {
        REQUIRE(total.item<int64_t>() == 10 * batch);
        back.push_back(batch);
        --in_flight;
      });
  REQUIRE(back == std::vector<int64_t>{0, 1, 2, 3, 4, 5});
  REQUIRE(most == 3);
}
