// SPDX-License-Identifier: Apache-2.0
#include "train/output/checkpoint_course.h"

#include "tests/support/catch.h"

using namespace aifs::train;
using Steps = std::vector<int64_t>;

namespace {

constexpr int64_t kHour_s = 3600;

// Checkpoints of every 10 steps, one each half hour.
CheckpointCourse half_hours(int64_t number) {
  CheckpointCourse course;
  for (int64_t i = 1; i <= number; ++i)
    course.push_back({10 * i, 1000000 + i * kHour_s / 2});
  return course;
}

Steps kept(const CheckpointCourse& course, const Retention& retention) {
  return steps_of(entries_to_keep(course, retention));
}

}  // namespace

TEST_CASE("the newest stay, those of chosen steps, and those spared", "[checkpoint_course]") {
  const CheckpointCourse course = half_hours(8);
  CHECK(kept(course, {}) == Steps{10, 20, 30, 40, 50, 60, 70, 80});
  CHECK(kept(course, {.newest = 2}) == Steps{70, 80});
  CHECK(kept(course, {.newest = 20}) == kept(course, {}));
  CHECK(kept(course, {.newest = 1, .every_steps = 30}) == Steps{30, 60, 80});
  CHECK(kept(course, {.newest = 1, .spared = {50, 55}}) == Steps{50, 80});
}

TEST_CASE("one of every so many hours stays for good", "[checkpoint_course]") {
  CHECK(kept(half_hours(8), {.newest = 1, .every_hours = 1.0}) == Steps{10, 30, 50, 70, 80});
  CHECK(kept(half_hours(8), {.newest = 1, .every_hours = 1.2}) == Steps{10, 40, 70, 80});
  // What was removed on the way changes nothing.
  const Retention retention{.newest = 2, .every_hours = 1.2};
  CheckpointCourse grown;
  for (const CourseEntry& entry : half_hours(40))
    grown = entries_to_keep(extended(grown, entry), retention);
  CHECK(grown == entries_to_keep(half_hours(40), retention));
}

TEST_CASE("a course that begins again at an earlier step loses what came later",
          "[checkpoint_course]") {
  const CheckpointCourse course = extended(half_hours(4), {25, 7});
  CHECK(steps_of(course) == Steps{10, 20, 25});
  CHECK(course.back() == CourseEntry{25, 7});
  CHECK(steps_of(extended(course, {25, 8})) == Steps{10, 20, 25});
}
