// SPDX-License-Identifier: Apache-2.0
// Which checkpoints belong to the present course of a run, and which of them stay. A run that went
// on from an earlier checkpoint leaves later ones of its former course behind: they count for
// nothing here. Every checkpoint holds the course that led to it (manifest.json, "course").
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "core/json_read.h"

namespace aifs::train {

struct CourseEntry {
  int64_t step = 0;
  int64_t time_s = 0;  // when it was written, since 1970

  friend bool operator==(const CourseEntry&, const CourseEntry&) = default;
};

// By step, the first one first.
using CheckpointCourse = std::vector<CourseEntry>;

// Returns the course with one more at its end. Those of that step and later ones are of a former
// course, and leave it.
CheckpointCourse extended(CheckpointCourse course, CourseEntry last);

struct Retention {
  int64_t newest = 0;                // 0: all
  int64_t every_steps = 0;           // of steps that it divides; 0: none
  double every_hours = 0.0;          // the first of every so many; 0: none
  std::vector<int64_t> spared = {};  // steps that stay for another reason
};

// The entries that stay; all of them if the newest are not limited. What stays once stays as the
// course grows, but for the newest and those spared.
CheckpointCourse entries_to_keep(const CheckpointCourse& course, const Retention& retention);

// Their steps, in their order.
std::vector<int64_t> steps_of(const CheckpointCourse& course);

// The list of a manifest, and back; nothing if it has none. Throws DataError naming what is wrong.
nlohmann::ordered_json to_json(const CheckpointCourse& course);
std::optional<CheckpointCourse> course_from(const JsonPlace& manifest);

}  // namespace aifs::train
