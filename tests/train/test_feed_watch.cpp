// SPDX-License-Identifier: Apache-2.0
#include "train/feed_watch.h"

#include "tests/support/catch.h"

using aifs::train::FeedWatch;

namespace {

// Returns what is said in the course of `steps` steps of one second.
std::string said(FeedWatch watch, double wait_s, double busy_a_step_s, int steps = 40) {
  std::string all;
  for (int step = 1; step <= steps; ++step)
    all += watch.add_step(1.0, wait_s, busy_a_step_s * step);
  return all;
}

}  // namespace

TEST_CASE("a run that waits is told once, with what would help", "[feed_watch]") {
  const FeedWatch four_of_eight(4, 8), eight_of_eight(8, 8);
  REQUIRE_THAT(said(four_of_eight, 0.4, 3.9), ContainsSubstring("waits for data 40 %") &&
                                                  ContainsSubstring("busy 98 %") &&
                                                  ContainsSubstring("raise data.threads"));
  REQUIRE_THAT(said(eight_of_eight, 0.4, 7.9), ContainsSubstring("no more cores"));
  REQUIRE_THAT(said(four_of_eight, 0.4, 0.5), ContainsSubstring("faster disk"));
  const std::string text = said(four_of_eight, 0.4, 3.9);
  REQUIRE(text.find("waits") == text.rfind("waits"));
}

TEST_CASE("a run that is fed, or is too short to know, is told nothing", "[feed_watch]") {
  REQUIRE(said(FeedWatch(4, 8), 0.04, 3.9).empty());
  REQUIRE(said(FeedWatch(4, 8), 0.4, 3.9, 22).empty());
  // The first steps wait for the first batches.
  FeedWatch watch(4, 8);
  for (int step = 1; step <= 40; ++step)
    REQUIRE(watch.add_step(1.0, step <= 3 ? 0.9 : 0.0, 1.0).empty());
}
