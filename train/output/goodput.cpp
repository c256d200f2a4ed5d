// SPDX-License-Identifier: Apache-2.0
#include "train/output/goodput.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/check.h"
#include "core/json_read.h"
#include "core/log.h"
#include "core/seconds_since.h"
#include "core/time.h"

namespace aifs::train {

namespace {

using Json = nlohmann::ordered_json;

double seconds_at(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number()) return 0.0;
  return std::max(0.0, found->get<double>());
}

double now_s() {
  using std::chrono::system_clock;
  return std::chrono::duration<double>(system_clock::now().time_since_epoch()).count();
}

double rounded_ms(double seconds) {
  return std::round(seconds * 1e3) / 1e3;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100.0 * share);
  return text;
}

}  // namespace

std::array<TimeSpent::Item, 8> TimeSpent::items() const {
  return {{{"stepping", stepping_s},
           {"waiting_for_data", data_s},
           {"validation", validation_s},
           {"checkpoints", checkpoints_s},
           {"start", start_s},
           {"lost_work", lost_work_s},
           {"between_jobs", between_jobs_s},
           {"other", other_s}}};
}

Goodput::Goodput(const fs::path& run_dir, Clock::time_point program_start)
    : file_(run_dir / kFile), start_(program_start), written_(program_start) {
  first_start_s_ = static_cast<int64_t>(now_s() - seconds_since(start_));
  try {
    if (path_exists(file_)) read();
  } catch (const std::exception& error) {
    log::warning("the goodput counts from now on: ", error.what());
  }
}

void Goodput::read() {
  const std::string name = file_.string();
  const Json json = parse_json_file(read_file(file_), name);
  const JsonPlace place(json, name);
  const JsonPlace seconds = place.at("seconds");
  TimeSpent before;
  before.validation_s = seconds.at("validation").number();
  before.checkpoints_s = seconds.at("checkpoints").number();
  before.start_s = seconds.at("start").number();
  before.lost_work_s = seconds.at("lost_work").number();
  before.between_jobs_s = seconds.at("between_jobs").number();
  const int64_t first_start_s = parse_date(place.at("first_start").text());
  const int64_t num_starts = place.at("starts").integer(1), step = place.at("step").integer(-1);
  const double wall_s = place.at("wall_s").number(), written_s = place.at("written_s").number();
  before_ = before;
  first_start_s_ = first_start_s;
  num_starts_ = num_starts + 1;
  step_of_file_ = step;
  gap_s_ = std::max(0.0, now_s() - seconds_since(start_) - written_s);  // clocks may be set back
  wall_before_s_ = wall_s + gap_s_;
}

void Goodput::add_former_step(const Json& line, bool counts) {
  const double step_s = seconds_at(line, "step_s");
  if (num_starts_ > 1 && seconds_at(line, "step") > static_cast<double>(step_of_file_))
    unseen_s_ += step_s;
  // Of a run from before this file, or that has lost it: its steps took time, too.
  if (num_starts_ == 1) wall_before_s_ += step_s;
  if (counts) {
    count(line);
  } else {
    lost_work_s_ += step_s;
  }
}

void Goodput::count(const Json& line) {
  const double step_s = seconds_at(line, "step_s"), data_s = seconds_at(line, "data_wait_s");
  stepping_s_ += std::max(0.0, step_s - data_s);
  data_s_ += std::min(step_s, data_s);
  samples_ += seconds_at(line, "samples");
}

void Goodput::begin(int64_t step) {
  step_ = step;
  start_s_ = seconds_since(start_);
  write();
}

void Goodput::add_step(const Json& line) {
  constexpr double kEvery_s = 30.0;
  step_ = static_cast<int64_t>(seconds_at(line, "step"));
  count(line);
  if (seconds_since(written_) >= kEvery_s) write();
}

void Goodput::set_pauses(double validation_s, double checkpoints_s) {
  validation_s_ = validation_s;
  checkpoints_s_ = checkpoints_s;
}

double Goodput::wall_s() const {
  return wall_before_s_ + seconds_since(start_);
}

TimeSpent Goodput::spent() const {
  TimeSpent spent = before_;
  spent.stepping_s = stepping_s_;
  spent.data_s = data_s_;
  spent.validation_s += validation_s_;
  spent.checkpoints_s += checkpoints_s_;
  spent.start_s += start_s_ >= 0.0 ? start_s_ : seconds_since(start_);
  spent.lost_work_s += lost_work_s_;
  spent.between_jobs_s += std::max(0.0, gap_s_ - unseen_s_);
  double known_s = 0.0;
  for (const TimeSpent::Item& item : spent.items())
    known_s += item.seconds;
  spent.other_s = std::max(0.0, wall_s() - known_s);
  return spent;
}

double Goodput::share() const {
  const double wall = wall_s();
  return wall > 0.0 ? std::min(1.0, stepping_s_ / wall) : 0.0;
}

double Goodput::samples_per_s() const {
  const double wall = wall_s();
  return wall > 0.0 ? samples_ / wall : 0.0;
}

std::string Goodput::text() const {
  const double wall = wall_s();
  std::string text = concat("goodput ", percent(share()), " of ", format_elapsed(wall), ", ",
                            num_starts_, num_starts_ == 1 ? " start" : " starts");
  bool first = true;
  for (const TimeSpent::Item& item : spent().items()) {
    const bool is_goodput = std::string(item.key) == "stepping";
    if (is_goodput || wall <= 0.0 || item.seconds < 0.0005 * wall) continue;
    std::string name = item.key;
    std::replace(name.begin(), name.end(), '_', ' ');
    text += concat(first ? "; " : ", ", name, " ", percent(item.seconds / wall));
    first = false;
  }
  return text;
}

Json Goodput::to_json() const {
  Json seconds;
  for (const TimeSpent::Item& item : spent().items())
    seconds[item.key] = rounded_ms(item.seconds);
  return {{"goodput", std::round(share() * 1e5) / 1e5},
          {"first_start", format_date(first_start_s_)},
          {"starts", num_starts_},
          {"step", step_},
          {"wall_s", rounded_ms(wall_s())},
          {"written_s", rounded_ms(now_s())},
          {"samples_per_s", samples_per_s()},
          {"seconds", seconds}};
}

void Goodput::write() {
  written_ = Clock::now();
  try {
    write_file_atomic(file_, to_json().dump(2) + "\n");
  } catch (const std::exception& error) {
    if (!std::exchange(failed_, true))
      log::warning("cannot write '", file_.string(), "': ", error.what(), "; training goes on");
  }
}

}  // namespace aifs::train
