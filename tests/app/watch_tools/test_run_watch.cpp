// SPDX-License-Identifier: Apache-2.0
#include "app/watch_tools/run_watch.h"

#include <cmath>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using app::RunWatch;
using State = app::RunView::State;

namespace {

struct Folder {
  test::TemporaryFolder folder;
  fs::path path() const { return folder.path(); }

  void add(const char* file, const std::string& text) const {
    REQUIRE(append_whole(path() / file, text).empty());
  }
  void add_steps(int64_t first, int64_t last) const {
    for (int64_t step = first; step <= last; ++step)
      add("metrics.jsonl",
          concat(R"({"step": )", step, R"(, "epoch": 2, "loss": )", 1.0 / static_cast<double>(step),
                 R"(, "lr": 1e-4, "step_s": 0.5, "data_wait_s": 0.1, "rollout": 1})", "\n"));
  }
  void log(const std::string& level, const std::string& text) const {
    add("train.log", concat("2026-12-01 10:20:30.123 ", level, " ", text, "\n"));
  }
  // Seconds since 1970 of the last change of a file.
  double written_s(const char* file) const {
    app::LineTail tail(path() / file);
    tail.next();
    return tail.written_s();
  }
};

}  // namespace

TEST_CASE("goodput and arithmetic are those that the run has written", "[watch]") {
  const Folder run;
  run.add_steps(1, 3);
  RunWatch watch(run.path());
  CHECK_FALSE(watch.update(0.0).goodput);
  run.add("metrics.jsonl",
          R"({"step": 4, "step_s": 1, "rates": {"tflops_per_s": 12.5, "mfu": 0.25}})"
          "\n");
  run.add("goodput.json", R"({"goodput": 0.75, "wall_s": 100, "starts": 3,
                             "seconds": {"stepping": 75, "lost_work": 25}})");
  const app::RunView& view = watch.update(0.0);
  CHECK(view.tflops_per_s == Approx(12.5));
  CHECK(view.mfu == Approx(0.25));
  REQUIRE(view.goodput);
  CHECK(view.goodput->text() == "75.0 % of 1 min 40 s, 3 starts; lost work 25.0 %");
}

TEST_CASE("rate, waiting and time left follow from the steps", "[watch]") {
  const Folder run;
  run.log("info", "run card\n  line without a time");
  run.log("info", "step 10/40  loss 0.1  lr 1e-04");
  run.add_steps(1, 30);
  RunWatch watch(run.path());
  const app::RunView& view = watch.update(run.written_s("metrics.jsonl"));
  REQUIRE(view.step == 30);
  REQUIRE(view.epoch == 2);
  REQUIRE(view.last_step == 40);
  REQUIRE(view.losses.size() == 30);
  REQUIRE(view.losses.back() == Approx(1.0 / 30.0));
  REQUIRE(view.mean_step_s() == Approx(0.5));
  REQUIRE(view.share_of_waiting() == Approx(0.2));
  REQUIRE(view.left_s() == Approx(5.0));
  REQUIRE(view.state == State::kRunning);
  REQUIRE(view.damaged_lines == 0);
  run.add_steps(31, 32);
  REQUIRE(watch.update(0.0).step == 32);
  REQUIRE(watch.update(0.0).losses.size() == 32);
}

TEST_CASE("a resumed run takes back the steps that it does again", "[watch]") {
  const Folder run;
  run.add_steps(1, 30);
  RunWatch watch(run.path());
  watch.update(0.0);
  fs::rename(run.path() / "metrics.jsonl", run.path() / "old");
  run.add_steps(1, 7);
  const app::RunView& view = watch.update(0.0);
  REQUIRE(view.step == 7);
  REQUIRE(view.losses.size() == 7);
}

TEST_CASE("the log says how a run has ended, and files how long it has been silent", "[watch]") {
  const Folder run;
  run.log("info", "run card");
  RunWatch watch(run.path());
  REQUIRE(watch.update(run.written_s("train.log")).state == State::kStarting);
  run.add_steps(1, 3);
  const double now_s = run.written_s("metrics.jsonl");
  REQUIRE(watch.update(now_s + 29.0).state == State::kRunning);
  REQUIRE(watch.update(now_s + 31.0).state == State::kSilent);
  REQUIRE(watch.update(now_s + 31.0).quiet_s == Approx(31.0).margin(0.1));
  REQUIRE(watch.update(now_s - 50.0).quiet_s == 0.0);
  run.log("info", "stopped after a checkpoint; go on with --resume");
  REQUIRE(watch.update(now_s).state == State::kStopped);
  run.log("info", "training has ended after 3.0 s");
  REQUIRE(watch.update(now_s).state == State::kFinished);
}

TEST_CASE("an error is the end of a run only if no step follows it", "[watch]") {
  const Folder run;
  run.add_steps(1, 3);
  run.log("warning", "slow reading");
  run.log("error", "the validation at step 3 failed: x");
  run.log("error", "hint: y");
  RunWatch watch(run.path());
  const app::RunView& view = watch.update(run.written_s("train.log"));
  REQUIRE(view.state == State::kFailed);
  REQUIRE(view.num_warnings == 1);
  REQUIRE(view.num_errors == 1);
  REQUIRE(view.last_remark == "10:20:30 error: the validation at step 3 failed: x");
  const auto written = fs::last_write_time(run.path() / "train.log");
  run.add_steps(4, 4);
  fs::last_write_time(run.path() / "metrics.jsonl", written + std::chrono::seconds(1));
  REQUIRE(watch.update(run.written_s("train.log")).state == State::kRunning);
}

TEST_CASE("the last validation is shown, of one dataset or several, or why it failed", "[watch]") {
  const Folder run;
  run.add("validation.jsonl",
          R"({"step": 7, "epoch": 1, "loss": 0.25, "lead_times": {"6h": {"mean_ratio": 0.5},)"
          R"( "12h": {"mean_ratio": null}}})"
          "\n");
  RunWatch watch(run.path());
  REQUIRE(watch.update(0.0).validation->step == 7);
  REQUIRE(watch.update(0.0).validation->loss == 0.25);
  REQUIRE(watch.update(0.0).validation->ratios == std::vector<std::string>{"6h 0.500", "12h nan"});
  run.add("validation.jsonl",
          R"({"step": 9, "loss": null, "datasets": {"a": {"lead_times": {"6h": )"
          R"({"mean_ratio": 0.25}}}, "b": 3}})"
          "\n");
  REQUIRE(watch.update(0.0).validation->ratios == std::vector<std::string>{"a 6h 0.250"});
  REQUIRE_FALSE(watch.update(0.0).validation->loss);
  run.add("validation.jsonl", R"({"step": 10, "failure": "no such file"})"
                              "\n");
  REQUIRE(watch.update(0.0).validation->failure == "no such file");
  REQUIRE(watch.update(0.0).failed_validations == 1);
}

TEST_CASE("damaged lines are counted and left out, whatever is in them", "[watch]") {
  const Folder run;
  for (const char* line : {"", "{", "[]", "null", "\xff\xfe", R"({"loss": 1})", R"({"step": "x"})",
                           R"({"step": -1})", "{\"step\": 1e300}"})
    run.add("metrics.jsonl", concat(line, "\n"));
  run.add("metrics.jsonl", R"({"step": 3, "loss": "x", "lr": [], "step_s": {}, "rollout": "y"})"
                           "\n");
  run.add("validation.jsonl", "{\"step\": 3, \"lead_times\": 7, \"datasets\": [1]}\n}\n");
  run.add("train.log", std::string("\0\xff\n2026-12-01 10:20:30.123\n"
                                   "2026-12-01 10:20:30.123 info step 7/99999999999999999999 x\n",
                                   86));
  RunWatch watch(run.path());
  const app::RunView& view = watch.update(0.0);
  REQUIRE(view.damaged_lines == 10);
  REQUIRE(view.step == 3);
  REQUIRE(view.last_step == 0);
  REQUIRE(std::isnan(view.losses.at(0)));
  REQUIRE(view.validation->ratios.empty());
}

TEST_CASE("a file that cannot be read is a fault of the view, the others are read", "[watch]") {
  const Folder run;
  run.add_steps(1, 2);
  make_directories(run.path() / "train.log");
  RunWatch watch(run.path());
  const app::RunView& view = watch.update(0.0);
  REQUIRE(view.step == 2);
  REQUIRE(view.faults.size() == 1);
  REQUIRE_THAT(view.faults[0], ContainsSubstring("train.log"));
}

TEST_CASE("what is no run folder is refused, with the runs inside", "[watch]") {
  const Folder run;
  const auto refused = [&](const fs::path& path) {
    try {
      const RunWatch watch(path);
    } catch (const DataError& error) {
      return concat(error.what(), " | ", error.hint());
    }
    return std::string("taken");
  };
  REQUIRE_THAT(refused(run.path() / "nowhere"), ContainsSubstring("there is no run folder"));
  REQUIRE_THAT(refused(run.path()), ContainsSubstring("is no run folder"));
  make_directories(run.path() / "a");
  run.add("a/metrics.jsonl", "");
  REQUIRE_THAT(refused(run.path()), ContainsSubstring((run.path() / "a").string()));
  REQUIRE_THAT(refused(run.path() / "a" / "metrics.jsonl"), ContainsSubstring("name its folder"));
  REQUIRE(refused(run.path() / "a") == "taken");
}
