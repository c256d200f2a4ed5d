// SPDX-License-Identifier: Apache-2.0
#include "report/log_summary.h"

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::report;

namespace {

constexpr const char* kLog = R"(2026-01-31 10:00:00.000 info aifs-train 0.1.0 (abc)
  run            runs/a, seed 1

2026-01-31 10:00:01.000 warning 'tp' did not change: <b>
2026-01-31 10:01:00.500 info checkpoint 'x'
2026-01-31 12:00:00.000 info aifs-train 0.1.0 (def)
  run            runs/a, seed 2

2026-01-31 12:00:10.000 error the validation failed
2026-01-31 12:00:20.000 info time per part
part                   total s    ms/step   share
waiting for data          0.50       2.50    6.1%
gradients over ranks      1.25      10.92   26.7%
)";

}  // namespace

TEST_CASE("the log gives run card, processes and their time", "[log_summary]") {
  const LogSummary log = summarise_log(kLog);
  CHECK(log.num_processes == 2);
  CHECK(log.wall_s == Approx(60.5 + 20.0));
  CHECK_THAT(log.card, ContainsSubstring("(def)") && ContainsSubstring("seed 2"));
  CHECK(log.warnings == std::vector<std::string>{"'tp' did not change: <b>"});
  CHECK(log.num_errors == 1);
}

TEST_CASE("the table of parts is read from the log", "[log_summary]") {
  const LogSummary log = summarise_log(kLog);
  REQUIRE(log.parts.size() == 2);
  CHECK(log.parts[0].name == "waiting for data");
  CHECK(log.parts[0].total_s == 0.5);
  CHECK(log.parts[1].name == "gradients over ranks");
  CHECK(log.parts[1].total_s == 1.25);
}

TEST_CASE("of many messages the last are kept and all are counted", "[log_summary]") {
  std::string text;
  for (int i = 0; i < 50; ++i)
    text += concat("2026-01-31 10:00:00.000 warning number ", i, "\n");
  const LogSummary log = summarise_log(text);
  CHECK(log.num_warnings == 50);
  REQUIRE(log.warnings.size() == kMostMessages);
  CHECK(log.warnings.back() == "number 49");
}

TEST_CASE("a log of something else has nothing to say", "[log_summary]") {
  for (const char* text : {"", "\n\n", "no log at all", "2026-99-31 10:00:00.000 info x", "2026"}) {
    const LogSummary log = summarise_log(text);
    CHECK(log.num_processes == 0);
    CHECK(log.wall_s == 0.0);
    CHECK(log.card.empty());
  }
}
