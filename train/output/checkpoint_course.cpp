// SPDX-License-Identifier: Apache-2.0
#include "train/output/checkpoint_course.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace aifs::train {

CheckpointCourse extended(CheckpointCourse course, CourseEntry last) {
  std::erase_if(course, [&](const CourseEntry& entry) { return entry.step >= last.step; });
  course.push_back(last);
  return course;
}

CheckpointCourse entries_to_keep(const CheckpointCourse& course, const Retention& retention) {
  if (retention.newest == 0) return course;
  const double period_s = 3600.0 * retention.every_hours;
  const size_t old = course.size() - std::min(course.size(), static_cast<size_t>(retention.newest));
  std::optional<int64_t> kept_s;  // when the last one was written that stays for its time
  CheckpointCourse kept;
  for (size_t i = 0; i < course.size(); ++i) {
    const CourseEntry& entry = course[i];
    const bool by_step = retention.every_steps > 0 && entry.step % retention.every_steps == 0;
    const bool by_time =
        period_s > 0 && (!kept_s || static_cast<double>(entry.time_s - *kept_s) >= period_s);
    if (by_time) kept_s = entry.time_s;
    const auto& spared = retention.spared;
    const bool is_spared = std::find(spared.begin(), spared.end(), entry.step) != spared.end();
    if (i >= old || by_step || by_time || is_spared) kept.push_back(entry);
  }
  return kept;
}

nlohmann::ordered_json to_json(const CheckpointCourse& course) {
  auto list = nlohmann::ordered_json::array();
  for (const CourseEntry& entry : course)
    list.push_back({{"step", entry.step}, {"time_s", entry.time_s}});
  return list;
}

std::optional<CheckpointCourse> course_from(const JsonPlace& manifest) {
  const auto found = manifest.find("course");
  if (!found) return std::nullopt;
  CheckpointCourse course;
  for (const nlohmann::ordered_json& entry : found->list()) {
    const JsonPlace place(entry, "manifest.json: course");
    course.push_back({place.at("step").integer(0), place.at("time_s").integer()});
  }
  return course;
}

std::vector<int64_t> steps_of(const CheckpointCourse& course) {
  std::vector<int64_t> steps;
  for (const CourseEntry& entry : course)
    steps.push_back(entry.step);
  return steps;
}

}  // namespace aifs::train
