// SPDX-License-Identifier: Apache-2.0
#include "app/watch_tools/run_frame.h"

#include <cmath>

#include "core/join.h"
#include "tests/support/catch.h"

using namespace aifs;
using app::cut_to;
using app::frame_of;
using app::RunView;
using app::sparkline;

namespace {

RunView some_run(const std::string& name) {
  RunView run;
  run.name = name;
  run.state = RunView::State::kRunning;
  run.step = 10;
  run.last_step = 40;
  run.losses = {1.0, 0.5, 0.25};
  run.recent = {{0.5, 0.05}};
  run.lr = 1e-4;
  run.validation = app::ValidationView{
      .step = 8, .failure = "", .loss = 0.3, .ratios = {"6h 0.250", "12h 0.500"}};
  run.num_warnings = 2;
  run.last_remark = "10:20:30 warning: slow";
  return run;
}

}  // namespace

TEST_CASE("a sparkline has the means of equal parts, on a logarithmic scale if it can", "[watch]") {
  const std::vector<double> falling{16, 8, 4, 2, 1, 0.5, 0.25, 0.125};
  REQUIRE(sparkline(falling, 8, false) == "#*+=~-._");
  REQUIRE(sparkline(falling, 8, true) == "█▇▆▅▄▃▂▁");
  REQUIRE(sparkline(falling, 100, false) == "#*+=~-._");
  REQUIRE(sparkline(falling, 2, false) == "#_");
  const std::vector<double> linear{0, 1, 2, 4};
  REQUIRE(sparkline(linear, 4, false) == "_-=#");
  REQUIRE(sparkline(std::vector<double>{3, 3, 3}, 3, false) == "___");
  REQUIRE(sparkline({}, 3, false).empty());
  REQUIRE(sparkline(falling, -1, false).empty());
}

TEST_CASE("values that are not finite are seen, and hide no others", "[watch]") {
  REQUIRE(sparkline(std::vector<double>{4, NAN, 1, INFINITY}, 4, false) == "#x_x");
  REQUIRE(sparkline(std::vector<double>{4, NAN, 1, INFINITY}, 2, false) == "#_");
  REQUIRE(sparkline(std::vector<double>{NAN, NAN}, 2, false) == "xx");
}

TEST_CASE("texts are cut between characters, and cannot steer the terminal", "[watch]") {
  REQUIRE(cut_to("abcdef", 6) == "abcdef");
  REQUIRE(cut_to("abcdefg", 6) == "abc...");
  REQUIRE(cut_to("äöüäöü█", 6) == "äöü...");
  REQUIRE(cut_to("abc", 2) == "..");
  REQUIRE(cut_to("abc", 0).empty());
  REQUIRE(cut_to("a\033[2Jb\t\xff\xc2\x9b", 20) == "a?[2Jb????");
  REQUIRE(cut_to("\xe2\x96", 20) == "??");
}

TEST_CASE("a block says state, loss, speed, validation and remarks", "[watch]") {
  const RunView run = some_run("runs/a");
  const std::string text = join(frame_of({&run}, {.columns = 120, .rows = 0, .utf8 = false}), "\n");
  REQUIRE_THAT(text,
               ContainsSubstring("runs/a: running, step 10 of 40 (25 %), epoch 0, about 15 "));
  REQUIRE_THAT(text, ContainsSubstring("0.25  #=_  lowest 0.25"));
  REQUIRE_THAT(text, ContainsSubstring("2.0 steps/s, 10.0 % waiting for data, learning rate"));
  REQUIRE_THAT(text, ContainsSubstring("step 8: loss 0.3, RMSE / persistence 6h 0.250, 12h 0.500"));
  REQUIRE_THAT(text, ContainsSubstring("2 warnings; 10:20:30 warning: slow"));
}

TEST_CASE("a run that has not begun or has ended says no time that is left", "[watch]") {
  RunView run = some_run("a");
  run.state = RunView::State::kFinished;
  const auto text = [&] { return join(frame_of({&run}, {.columns = 200}), "\n"); };
  REQUIRE_THAT(text(), ContainsSubstring("a: finished") && !ContainsSubstring(" left"));
  REQUIRE_THAT(join(frame_of({&run}, {.columns = 200, .rows = 1}), "\n"),
               !ContainsSubstring(" left"));
  run = RunView();
  run.name = "a";
  REQUIRE(text() == "a: starting, no step yet");
  run.faults = {"cannot read 'x'"};
  run.damaged_lines = 3;
  REQUIRE_THAT(text(), ContainsSubstring("cannot read 'x'") && ContainsSubstring("3 lines"));
}

TEST_CASE("many runs have a line each, and a screen that is too small says so", "[watch]") {
  const RunView a = some_run("runs/a"), b = some_run("runs/b"), c = some_run("runs/c");
  const std::vector<const RunView*> runs{&a, &b, &c};
  REQUIRE(frame_of(runs, {.columns = 100}).size() > 12);
  const std::vector<std::string> lines = frame_of(runs, {.columns = 100, .rows = 5, .utf8 = false});
  REQUIRE(lines.size() == 3);
  REQUIRE_THAT(lines[1], ContainsSubstring("runs/b: running, step 10 of 40 (25 %), loss 0.25 #=_"));
  const std::vector<std::string> few = frame_of(runs, {.columns = 100, .rows = 2});
  REQUIRE(few.size() == 2);
  REQUIRE(few.back() == "and 2 more");
  for (const std::string& line : frame_of(runs, {.columns = 20, .rows = 0, .utf8 = false}))
    REQUIRE(line.size() <= 20);
}
