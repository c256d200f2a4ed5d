// SPDX-License-Identifier: Apache-2.0
#include "train/output/goodput.h"

#include <nlohmann/json.hpp>

#include "core/time.h"
#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/paths.h"

using namespace aifs;
using train::Goodput;
using Json = nlohmann::ordered_json;
using std::chrono::seconds;

namespace {

Json line(int64_t step, double step_s, double data_wait_s, int64_t samples = 4) {
  return {{"step", step}, {"step_s", step_s}, {"data_wait_s", data_wait_s}, {"samples", samples}};
}

Goodput::Clock::time_point ago(int64_t s) {
  return Goodput::Clock::now() - seconds(s);
}

Json file_in(const fs::path& folder) {
  return Json::parse(read_file(folder / Goodput::kFile));
}

// Moves the time at which the file was written into the past: the job was gone since then.
void age(const fs::path& folder, double by_s) {
  Json json = file_in(folder);
  json["written_s"] = json["written_s"].get<double>() - by_s;
  write_file_atomic(folder / Goodput::kFile, json.dump());
}

}  // namespace

TEST_CASE("the time of a process is shared out without rest", "[goodput]") {
  const test::TemporaryFolder folder;
  Goodput goodput(folder.path(), ago(100));
  goodput.begin(0);
  CHECK(goodput.spent().start_s == Approx(100).margin(5));
  for (int64_t step = 1; step <= 10; ++step)
    goodput.add_step(line(step, 5.0, 1.0));
  goodput.set_pauses(7.0, 3.0);
  goodput.write();
  CHECK(goodput.spent().stepping_s == Approx(40));
  CHECK(goodput.spent().data_s == Approx(10));
  const Json file = file_in(folder.path());
  CHECK(file["starts"] == 1);
  CHECK(file["step"] == 10);
  CHECK(file["seconds"]["stepping"] == 40.0);
  CHECK(file["seconds"]["waiting_for_data"] == 10.0);
  CHECK(file["seconds"]["validation"] == 7.0);
  CHECK(file["seconds"]["checkpoints"] == 3.0);
}

TEST_CASE("a run that goes on remembers, and counts lost work and the time between jobs",
          "[goodput]") {
  const test::TemporaryFolder folder;
  double wall_s = 0.0;
  {
    Goodput first(folder.path(), ago(100));
    first.begin(0);
    first.add_step(line(1, 20.0, 0.0));
    first.add_step(line(2, 20.0, 2.0));
    first.set_pauses(5.0, 1.0);
    first.write();
    wall_s = first.wall_s();
  }
  age(folder.path(), 1000.0);
  // Step 3 was done after the file was written: 30 s of those 1000 a process was there.
  Goodput second(folder.path(), ago(0));
  second.add_former_step(line(1, 20.0, 0.0), true);
  second.add_former_step(line(2, 20.0, 2.0), false);
  second.add_former_step(line(3, 30.0, 0.0), false);
  second.begin(1);
  const train::TimeSpent spent = second.spent();
  CHECK(second.num_starts() == 2);
  CHECK(spent.stepping_s == Approx(20));
  CHECK(spent.lost_work_s == Approx(50));
  CHECK(spent.between_jobs_s == Approx(970).margin(5));
  CHECK(spent.validation_s == Approx(5));
  CHECK(spent.checkpoints_s == Approx(1));
  CHECK(second.wall_s() == Approx(wall_s + 1000).margin(5));
  CHECK(second.share() == Approx(20.0 / second.wall_s()).margin(1e-3));
  CHECK(second.samples_per_s() == Approx(4.0 / second.wall_s()).margin(1e-3));
  CHECK_THAT(second.text(), ContainsSubstring(", 2 starts; ") &&
                                ContainsSubstring("between jobs 8") &&
                                ContainsSubstring("lost work 4."));
  CHECK_THAT(second.text(), !ContainsSubstring("stepping"));
  second.add_step(line(2, 3.0, 0.0));  // once more: no time of the gap
  second.write();
  const Json file = file_in(folder.path());
  CHECK(file["seconds"]["between_jobs"].get<double>() == Approx(970).margin(5));
  CHECK(file["seconds"]["lost_work"].get<double>() == Approx(50));
  CHECK(file["seconds"]["stepping"].get<double>() == Approx(23));
}

TEST_CASE("a clock that was set back, and damaged files, do no harm", "[goodput]") {
  const test::TemporaryFolder folder;
  Goodput(folder.path(), ago(10)).begin(0);
  age(folder.path(), -1e6);
  Goodput back(folder.path(), ago(0));
  back.begin(0);
  CHECK(back.spent().between_jobs_s == 0.0);
  CHECK(back.wall_s() == Approx(10).margin(3));
  for (const char* text : {"", "[]", "{}", R"({"seconds": {}, "starts": 1})", "{\"seconds\": 3}"}) {
    write_file_atomic(folder.path() / Goodput::kFile, text);
    Goodput anew(folder.path(), ago(0));
    anew.begin(0);
    CHECK(anew.num_starts() == 1);
    CHECK(file_in(folder.path())["starts"] == 1);
  }
  const test::FileSizeLimit limit(3);
  Goodput full(folder.path(), ago(0));
  full.begin(0);
  full.write();
  CHECK(full.num_starts() == 2);
}

TEST_CASE("steps of a run that kept no such file count", "[goodput]") {
  const test::TemporaryFolder folder;
  Goodput goodput(folder.path(), ago(10));
  goodput.add_former_step(line(1, 30.0, 0.0), true);
  goodput.add_former_step(line(2, 10.0, 0.0), false);
  goodput.begin(1);
  CHECK(goodput.wall_s() == Approx(50).margin(3));
  CHECK(goodput.share() == Approx(30.0 / 50.0).margin(0.05));
  CHECK(goodput.spent().lost_work_s == Approx(10));
}
